"""Random models of equal layers over tensors, plain and compiled: the weights of layers are one array of a loop.

    python tests/fuzz/layers.py --programs 200 --seed 1

Layers are few or many, run in order, backwards, or in any order, some of them twice; they read weights whole,
transposed, by rows or elements; some weights have another size, or are shared; updates have momentum or none.
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import mgjit
from mgjit import optim
from mgjit import tensor as T

CALLS = 3
WAYS: list[dict[str, Any]] = [
    {"compiler": "tcc"}, {"backend": "python"}, {"compiler": "tcc"}, {"compiler": "gcc"}, {"backend": "python"},
    {"compiler": "tcc"}, {"compiler": "gcc", "threads": 2},
]  # fmt: skip
#: What a layer may do with its input, a matrix, a vector, and the number of the layer.
PARTS: list[Callable[[Any, Any, Any, int], Any]] = [
    lambda x, w, b, k: x @ w,
    lambda x, w, b, k: x @ w.T,
    lambda x, w, b, k: x + b,
    lambda x, w, b, k: x * b[1],
    lambda x, w, b, k: T.tanh(x),
    lambda x, w, b, k: T.relu(x) - 0.1 * x,
    lambda x, w, b, k: x - x.mean(axis=-1, keepdims=True),
    lambda x, w, b, k: x + w[k % 3],
    lambda x, w, b, k: T.softmax(x) * 2.0,
    lambda x, w, b, k: x + w[1:2] * w[:, 0].sum(),
    lambda x, w, b, k: T.concatenate([x[1:], x[:1] * b]),
    lambda x, w, b, k: x * (1.0 + 0.01 * k),
]


class Model:
    """A random model, the same for each seed; `step` trains it."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        width, layers = draw.choice([3, 4, 8, 17]), draw.choice([2, 3, 4, 5, 6, 9])

        def made(*shape: int) -> Any:
            return T.uniform(shape, -0.6, 0.6, requires_grad=True, generator=draw)

        self.matrices = [made(width + 2 * (draw.random() < 0.04), width) for _ in range(layers)]
        self.vectors = [made(width) for _ in range(layers)]
        if draw.random() < 0.2:
            self.matrices[draw.randrange(layers)] = self.matrices[0]
        self.parts = [draw.choice(PARTS) for _ in range(draw.randrange(2, 10))]
        order = list(range(layers))
        kind = draw.randrange(5)
        shuffled = draw.sample(order, layers)
        self.order = [order, order[::-1], shuffled, order + order[::-1], [*order, *order]][kind]
        self.rows = draw.randrange(2, 6)
        found = list(dict.fromkeys([*self.matrices, *self.vectors]))
        mixed = [p for pair in zip(self.matrices, self.vectors) for p in pair]
        self.parameters = found if draw.random() < 0.5 else list(dict.fromkeys(mixed))
        makers = [lambda p: optim.SGD(p, lr=0.01), lambda p: optim.SGD(p, lr=0.01, momentum=0.9)]
        self.optimizer = draw.choice([*makers, lambda p: optim.Adam(p, lr=0.01)])(self.parameters)
        self.width = width

    def step(self, x: Any) -> Any:
        """A call."""
        for k in self.order:
            w, b = self.matrices[k][: self.width], self.vectors[k]
            y = x
            for part in self.parts:
                y = part(y, w, b, k)
            x = x * 0.5 + y * b
        loss = (x * x).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def numbers(self) -> list[str]:
        """All that is learned, and its gradients."""
        return [repr(part.tolist()) for p in self.parameters for part in (p, p.grad)]


def check(seed: int, **options: Any) -> int:
    """Compare a program with plain Python, bit for bit; returns how many statements it has."""
    plain, other = Model(seed), Model(seed)
    step = mgjit.compile(other.step, background=False, verify="never", **options)
    for call in range(CALLS):
        x = T.uniform((plain.rows, plain.width), -1.0, 1.0, generator=random.Random(call))
        one, two = float(plain.step(x)), float(step(x))
        assert repr(one) == repr(two), (seed, call, one, two)
        assert plain.numbers() == other.numbers(), (seed, call)
    return int(step.stats.statements)


def main() -> int:
    """Compare many programs; returns how many failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore", mgjit.errors.PlainWarning)
    warnings.simplefilter("error", mgjit.errors.DefectWarning)
    failed = 0
    for seed in range(options.seed, options.seed + options.programs):
        way = WAYS[seed % len(WAYS)]
        try:
            check(seed, **way)
        except Exception as error:
            failed += 1
            print(f"seed {seed}, {way}: {type(error).__name__}: {error}", flush=True)
    print(f"{options.programs} programs, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(min(main(), 1))
