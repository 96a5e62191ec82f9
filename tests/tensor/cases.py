"""Every operation on tensors, as a function of some tensors, for the tests that compare ways to compute it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import mgjit
from mgjit import tensor as T


class Case(NamedTuple):
    """A function of tensors of these shapes; `positive` for operands above 0."""

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    positive: bool = False


A, B, V, M = (2, 3), (3,), (4,), (3, 4)
CASES = {
    "add broadcast": Case(lambda x, y: x + y, (A, B)),
    "add to itself": Case(lambda x: x + x.mT.mT + x, (A,)),
    "subtract number": Case(lambda x: 1.5 - x - 2, (A,)),
    "multiply broadcast": Case(lambda x, y: x * y, ((2, 1, 3), (4, 1))),
    "square by product": Case(lambda x: x * x, (A,)),
    "divide": Case(lambda x, y: x / y, (A, B), True),
    "divide number": Case(lambda x: 2.0 / x, (A,), True),
    "power": Case(lambda x: x**3, (A,)),
    "power half": Case(lambda x: x**0.5 + x**-1.0 + x**1.7, (A,), True),
    "power of tensors": Case(lambda x, y: x**y + 2.0**y, (A, B), True),
    "power of some zeros": Case(lambda x, y: x ** (y * T.asarray([0.0, 1.0, 2.0], dtype=y.dtype)), (A, B), True),
    "negate": Case(lambda x: -x, (A,)),
    "absolute": Case(abs, (A,)),
    "exp": Case(lambda x: x.exp(), (A,)),
    "log": Case(mgjit.log, (A,), True),
    "sin": Case(lambda x: x.sin() * x.cos(), (A,)),
    "tanh": Case(lambda x: x.tanh(), (A,)),
    "sqrt": Case(lambda x: x.sqrt(), (A,), True),
    "relu": Case(lambda x: x.relu(), (A,)),
    "leaky relu": Case(lambda x: x.leaky_relu(0.1), (A,)),
    "sigmoid": Case(lambda x: x.sigmoid(), (A,)),
    "silu": Case(lambda x: x.silu(), (A,)),
    "softplus": Case(lambda x: x.softplus(), (A,)),
    "gelu": Case(lambda x: x.gelu(), (A,)),
    "square": Case(lambda x: x.square() + x.reciprocal(), (A,), True),
    "maximum": Case(T.maximum, (A, B)),
    "minimum": Case(lambda x, y: T.minimum(x, y).clip(-1.0, 0.5), (A, B)),
    "where": Case(lambda x, y: T.where(x < y, x * 2.0, y), (A, B)),
    "sum": Case(lambda x: x.sum(), (M,)),
    "sum first axis": Case(lambda x: x.sum(axis=0, keepdims=True), (M,)),
    "sum two axes": Case(lambda x: x.sum(axis=(0, 2)), ((2, 3, 4),)),
    "mean": Case(lambda x: x.mean(axis=1), (M,)),
    "var": Case(lambda x: x.var(axis=-1, correction=1) + x.std(axis=1), (M,)),
    "max": Case(lambda x: x.max(axis=1), (M,)),
    "max of all": Case(lambda x: x.max() + x.min(), (M,)),
    "max two axes": Case(lambda x: x.max(axis=(0, 2)), ((2, 3, 4),)),
    "min": Case(lambda x: x.min(axis=0), (M,)),
    "prod": Case(lambda x: x.prod(axis=1), (M,)),
    "logsumexp": Case(lambda x: x.logsumexp(axis=1), (M,)),
    "softmax": Case(lambda x: x.softmax(), (M,)),
    "log softmax": Case(lambda x: x.log_softmax(axis=0), (M,)),
    "matmul": Case(lambda x, y: x @ y, (A, M)),
    "matmul vectors": Case(lambda x, y: x @ y, (V, V)),
    "matmul vector matrix": Case(lambda x, y: x @ y + (y @ y.mT @ x).sum(), (B, M)),
    "matmul batched": Case(lambda x, y: x @ y, ((2, 1, 2, 3), (3, 3, 2))),
    "matmul with itself": Case(lambda x: x @ x, ((3, 3),)),
    "einsum": Case(lambda x, y: T.einsum("ij,kj->ki", x, y), ((2, 3), (4, 3))),
    "einsum diagonal": Case(lambda x: T.einsum("ii->i", x), ((3, 3),)),
    "einsum three": Case(lambda x, y, z: T.einsum("ij,jk,k->i", x, y, z), (A, M, V)),
    "einsum sum": Case(lambda x: T.einsum("ij->j", x), (A,)),
    "vecdot": Case(T.vecdot, (A, A)),
    "outer": Case(T.outer, (B, V)),
    "tensordot": Case(lambda x, y: T.tensordot(x, y, axes=1), (A, M)),
    "reshape": Case(lambda x: x.reshape(3, 2) * 2.0, (A,)),
    "reshape copy": Case(lambda x: x.mT.reshape(-1), (A,)),
    "flatten": Case(lambda x: x.flatten(1), ((2, 3, 2),)),
    "permute": Case(lambda x: x.permute_dims((2, 0, 1)).exp(), ((2, 3, 2),)),
    "expand": Case(lambda x: x.expand_dims(1).broadcast_to((2, 4, 3)).squeeze() * 1.5, (A,)),
    "flip": Case(lambda x: x.flip() * x, (A,)),
    "slice": Case(lambda x: x[1:, ::2] + x[0, 1], (M,)),
    "slice backwards": Case(lambda x: x[::-1, None, -1], (M,)),
    "unfold": Case(lambda x: x.unfold(0, 3, 1).sum(axis=1), ((6,),)),
    "unfold windows overlap": Case(lambda x: (x.unfold(1, 2, 1).unfold(0, 2, 1) ** 2).sum(axis=(2, 3)), ((4, 4),)),
    "concat": Case(lambda x, y: T.concat([x, y * 2.0, x]), (A, (1, 3))),
    "stack": Case(lambda x, y: T.stack([x, y], axis=1), (A, A)),
    "split": Case(lambda x: T.split(x, [1, 3], axis=1)[1] * 2.0, (M,)),
    "pad": Case(lambda x: T.pad(x, [(1, 0), (2, 1)], 0.5), (A,)),
    "take": Case(lambda x: x[T.asarray([0, 2, 2, 1])] if False else T.take(x, 1), (M,)),
    "one number": Case(lambda x: x * 0.5, ((),)),
    "detached": Case(lambda x: x * x.detach() + x, (A,)),
    "unused": Case(lambda x, y: x * 2.0, (A, B)),
}


def operands(case: Case, seed: int, dtype: str = "float64") -> list[T.Tensor]:
    """Random tensors for a case."""
    generator = random.Random(seed)
    made = [T.randn(shape, generator=generator) for shape in case.shapes]
    made = [abs(x) + 0.3 for x in made] if case.positive else made
    return [x.astype(dtype) for x in made]


def weighted(case: Case) -> Callable[..., T.Tensor]:
    """The sum of the results of a case, with different weights, so that each has a derivative of its own."""

    def function(*given: T.Tensor) -> T.Tensor:
        found = case.function(*given)
        weights = (T.arange(found.size, dtype=found.dtype) * 0.25 + 0.5).reshape(found.shape)
        return (found * weights).sum()

    return function


def numbers(thing: Any) -> Any:
    """A result as something in which bits can be compared."""
    if isinstance(thing, (list, tuple)):
        return [numbers(part) for part in thing]
    return thing.shape, thing.dtype.name, [float(x).hex() for x in thing.tolist_flat()]


def computed(case: Case, given: list[T.Tensor]) -> list[Any]:
    """The result of a case, the weighted sum, and its gradients."""
    both = mgjit.value_and_grad(weighted(case), tuple(range(len(given))))
    value, gradients = both(*given)
    return [case.function(*given), value, *gradients]
