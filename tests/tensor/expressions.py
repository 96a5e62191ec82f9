"""Random expressions over tensors: shapes, broadcasting, views, indices, reductions, products, einsum strings.

`python -m tests.tensor.expressions 2000` computes so many, each by Python loops, by C, and in a compiled step (by
generated Python, by tcc and by gcc, in turn), and compares results and gradients bit for bit; in float64 also with
differences, along a random direction.  A seed gives the same expression everywhere.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from typing import Any

import mgjit
from mgjit import tensor as T
from tests.tensor.cases import numbers

Expression = Callable[[list[Any]], Any]
_UNARY = (
    "tanh",
    "sigmoid",
    "relu",
    "softplus",
    "square",
    "gelu",
    "silu",
    "exp",
    "abs",
    "neg",
    "sin",
    "cos",
    "leaky_relu",
)
_REDUCTIONS = ("sum", "mean", "max", "min", "prod", "logsumexp", "softmax", "var", "std")


class Expressions:
    """Makes one expression: a list of steps, each of which appends a tensor to those that there are.

    Args:
        seed: decides everything.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.dtype = self.random.choice(("float64", "float64", "float32"))
        self.shapes = [tuple(self._extent() for _ in range(self.random.randint(0, 3))) for _ in range(3)]
        self.steps: list[Expression] = []

    def _extent(self) -> int:
        return self.random.choice((1, 2, 3, 4))

    def operands(self) -> list[T.Tensor]:
        """The tensors that it begins with."""
        return [T.randn(shape, generator=self.random).astype(self.dtype) for shape in self.shapes]

    def grow(self, given: list[T.Tensor], count: int) -> None:
        """Add steps that fit the shapes of the results before them."""
        found = list(given)
        while len(self.steps) < count:
            step = self._step(found)
            made = step(found)
            if made.size > 200:
                continue
            self.steps.append(step)
            found.append(made)

    def run(self, given: list[Any]) -> Any:
        """All steps; the sum of what the last ones have computed."""
        found = list(given)
        for step in self.steps:
            found.append(step(found))
        total = found[-1].sum()
        for one in found[len(given) : -1]:
            total = total + (one * 0.5).mean()
        return total

    def _step(self, found: list[T.Tensor]) -> Expression:
        choose = self.random.choice
        a = self.random.randrange(len(found))
        x = found[a]
        kinds = [self._unary, self._binary, self._number]
        if x.ndim:
            kinds += [self._reduction, self._slice, self._reshape, self._permute, self._take, self._concat, self._where]
            kinds += [self._einsum, self._matmul, self._index, self._index]
        return choose(kinds)(a, x, found)

    def _unary(self, a: int, x: T.Tensor, found: list[T.Tensor]) -> Expression:
        name = self.random.choice(_UNARY)
        if name in ("abs", "neg"):
            return (lambda f: abs(f[a])) if name == "abs" else (lambda f: -f[a])
        return lambda f: getattr(f[a].clip(-3.0, 3.0), name)()

    def _number(self, a: int, x: T.Tensor, found: list[T.Tensor]) -> Expression:
        k, kind = self.random.uniform(-2.0, 2.0), self.random.randrange(6)
        return [
            lambda f: f[a] * k, lambda f: k - f[a], lambda f: f[a] / (2.5 + k), lambda f: (f[a] + k) ** 2,
            lambda f: (abs(f[a]) + 0.5) ** (k * 0.5), lambda f: (0.5 + abs(k)) ** f[a].clip(-2.0, 2.0),
        ][kind]  # fmt: skip

    def _binary(self, a: int, x: T.Tensor, found: list[T.Tensor]) -> Expression:
        fitting = [k for k, other in enumerate(found) if _fits(x.shape, other.shape)]
        b, kind = self.random.choice(fitting), self.random.randrange(7)
        return [
            lambda f: f[a] + f[b], lambda f: f[a] - f[b], lambda f: f[a] * f[b], lambda f: f[a] / (f[b] * f[b] + 1.0),
            lambda f: T.maximum(f[a], f[b]), lambda f: T.minimum(f[b], f[a]),
            lambda f: (f[a] * f[a] + 0.3) ** f[b].tanh(),
        ][kind]  # fmt: skip

    def _where(self, a: int, x: T.Tensor, found: list[T.Tensor]) -> Expression:
        b = self.random.choice([k for k, other in enumerate(found) if _fits(x.shape, other.shape)])
        return lambda f: T.where(f[a] > f[b], f[a], f[b] * 0.5)

    def _axis(self, x: T.Tensor) -> Any:
        axes = self.random.sample(range(x.ndim), self.random.randint(1, x.ndim))
        return self.random.choice((None, axes[0] - x.ndim, axes[0], tuple(axes)))

    def _reduction(self, a: int, x: T.Tensor, found: list[T.Tensor]) -> Expression:
        name, keep = self.random.choice(_REDUCTIONS), self.random.random() < 0.5
        axis = self._axis(x)
        if name == "softmax":
            last = self.random.randrange(x.ndim)
            return lambda f: f[a].softmax(axis=last)
        if name == "std":  # whose derivative is nan where all elements are equal
            return lambda f: (f[a].var(axis=axis, keepdims=keep) + 0.1).sqrt()
        return lambda f: getattr(f[a], name)(axis=axis, keepdims=keep)

    def _slice(self, a: int, x: T.Tensor, found: list[T.Tensor]) -> Expression:
        index: list[Any] = []
        for extent in x.shape:
            start, step = self.random.randrange(extent), self.random.choice((1, 1, 2, -1))
            part = self.random.choice((slice(None, None, step), slice(start, None), start, slice(None)))
            index.append(part)
        if self.random.random() < 0.2:
            index.insert(0, None)
        return lambda f: f[a][tuple(index)]

    def _index(self, a: int, x: T.Tensor, found: list[T.Tensor]) -> Expression:
        """Lists that choose, pairs among them, beside slices, ints and None."""
        length, parts = self.random.randint(1, 3), []
        for extent in x.shape:
            chosen = [self.random.randrange(-extent, extent) for _ in range(length)]
            kinds: list[Any] = [chosen, chosen, slice(None, None, self.random.choice((1, -1))), chosen[0]]
            parts.append(self.random.choice(kinds))
        if self.random.random() < 0.2:
            parts.insert(self.random.randrange(len(parts) + 1), None)
        index = tuple(parts)
        return lambda f: f[a][index]

    def _reshape(self, a: int, x: T.Tensor, found: list[T.Tensor]) -> Expression:
        if self.random.random() < 0.5:
            return lambda f: f[a].flip().flatten()
        return lambda f: f[a].expand_dims(0).reshape((-1, x.shape[-1], 1))

    def _permute(self, a: int, x: T.Tensor, found: list[T.Tensor]) -> Expression:
        order = self.random.sample(range(x.ndim), x.ndim)
        return lambda f: f[a].permute_dims(order)

    def _take(self, a: int, x: T.Tensor, found: list[T.Tensor]) -> Expression:
        axis = self.random.randrange(x.ndim)
        if self.random.random() < 0.5:
            size = self.random.randint(1, x.shape[axis])
            return lambda f: f[a].unfold(axis, size, 1) * 0.5
        widths = [(self.random.randrange(2), self.random.randrange(2)) for _ in x.shape]
        return lambda f: T.pad(f[a], widths, 0.25)

    def _concat(self, a: int, x: T.Tensor, found: list[T.Tensor]) -> Expression:
        axis = self.random.randrange(x.ndim)
        if self.random.random() < 0.5:
            return lambda f: T.stack([f[a], f[a] * 2.0], axis=axis)
        return lambda f: T.concat([f[a], f[a].flip(), f[a]], axis=axis)

    def _matmul(self, a: int, x: T.Tensor, found: list[T.Tensor]) -> Expression:
        fitting = [k for k, y in enumerate(found) if y.ndim and y.shape[-min(y.ndim, 2)] == x.shape[-1]]
        fitting = [k for k in fitting if _fits(x.shape[:-2], found[k].shape[:-2])]
        if not fitting:
            return lambda f: f[a] @ (f[a].mT if x.ndim > 1 else f[a])
        b = self.random.choice(fitting)
        return lambda f: f[a] @ f[b]

    def _einsum(self, a: int, x: T.Tensor, found: list[T.Tensor]) -> Expression:
        labels = "ijkpqrs"[: x.ndim]
        other = [k for k, y in enumerate(found) if y.ndim and y.shape[0] == x.shape[-1]]
        kept = "".join(self.random.sample(labels, self.random.randint(0, x.ndim)))
        if not other:
            return lambda f: T.einsum(f"{labels}->{kept}", f[a])
        b = self.random.choice(other)
        theirs = labels[-1] + "lmnabcd"[: found[b].ndim - 1]
        result = kept + "".join(label for label in theirs[1:] if self.random.random() < 0.7)
        return lambda f: T.einsum(f"{labels},{theirs}->{result}", f[a], f[b])


def _fits(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(one), reversed(other)))


def mismatch(seed: int, backends: tuple[dict[str, Any], ...]) -> str:
    """What differs between the ways to compute an expression; empty if nothing does."""
    expressions = Expressions(seed)
    given = expressions.operands()
    expressions.grow(given, expressions.random.randint(2, 7))

    def compute(x: Any, y: Any, z: Any) -> Any:
        return mgjit.value_and_grad(lambda *leaves: expressions.run(list(leaves)), (0, 1, 2))(x, y, z)

    os.environ["MGJIT_DISABLE"] = "1"
    try:
        expected = numbers(compute(*given))
    finally:
        del os.environ["MGJIT_DISABLE"]
    if numbers(compute(*given)) != expected:
        return "eager C"
    if expressions.dtype == "float64" and (difference := _off_by(expressions, given)):
        return difference
    options = backends[seed % len(backends)]
    step = mgjit.compile(compute, background=False, dtype=expressions.dtype, **options)
    if numbers(step(*given)) != expected or numbers(step(*given)) != expected:
        return f"the step with {options}"
    return "" if not step.stats.plain_calls else f"a plain call: {step.stats.plain_reasons}"


def _off_by(expressions: Expressions, given: list[T.Tensor]) -> str:
    """How the derivative along a direction differs from that by differences; empty where a kink is as near."""
    draw = random.Random(len(expressions.steps))
    directions = [T.randn(x.shape, generator=draw) for x in given]

    def value(shift: float) -> float:
        return float(expressions.run([x + v * shift for x, v in zip(given, directions)]).item())

    gradients = mgjit.grad(lambda *leaves: expressions.run(list(leaves)), (0, 1, 2))(*given)
    slope = sum((g * v).sum().item() for g, v in zip(gradients, directions))
    by = [(value(h) - value(-h)) / (2.0 * h) for h in (1e-5, 1e-6)]
    near = 1e-4 * max(1.0, abs(slope), abs(by[0]))
    is_smooth = abs(by[0] - by[1]) < near
    return f"slope {slope}, by differences {by}" if is_smooth and not abs(slope - by[0]) < near else ""


def main() -> None:
    """Compare as many expressions as the first argument says."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    backends: tuple[dict[str, Any], ...] = ({"backend": "python"}, {"compiler": "tcc"}, {"compiler": "gcc"})
    found = [(seed, what) for seed in range(first, first + count) if (what := mismatch(seed, backends))]
    print(f"{count} expressions, {len(found)} mismatches {found[:10]}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
