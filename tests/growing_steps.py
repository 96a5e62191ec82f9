"""Steps whose loops grow, for the tests of several passes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import mgjit
from tests.lowering import numbers, sgd
from tests.workload import values

#: A step and the arguments of a call.
Made = tuple[Callable[..., Any], tuple[Any, ...]]


def prefix_sums(count: int = 9) -> Made:
    """Row i sums i + 1 products."""
    weights = values(random.Random(1), count)

    def step(xs: Any, rate: Any) -> Any:
        sums = [sum(weights[k] * xs[k] for k in range(i + 1)) for i in range(count)]
        loss = sum(y * y for y in sums)
        for w in weights:
            w.grad = 0.0
        loss.backward()
        sgd(weights, rate)
        return loss

    return step, (numbers(count), 0.01)


def suffix_products(count: int = 9) -> Made:
    """The loops shrink, down to one of a single iteration; plain numbers."""

    def step(xs: Any, ys: Any) -> Any:
        found = []
        for i in range(count):
            total = xs[i] * 0.5
            for k in range(i, count):
                total = total - xs[k] * ys[i]
            found.append(total * ys[0])
        return found

    return step, (numbers(count), numbers(count, 2))


def causal_attention(positions: int = 7, width: int = 4, shifted: bool = False) -> Made:
    """Each position attends to itself and those before it, over `mgjit.Value`.

    Args:
        shifted: whether the greatest score is subtracted from all.
    """
    square = width * width
    weights = values(random.Random(2), 4 * square)
    matrices = [
        [weights[m * square + r * width : m * square + (r + 1) * width] for r in range(width)] for m in range(4)
    ]

    def times(matrix: Sequence[Sequence[Any]], x: Sequence[Any]) -> list[Any]:
        return [sum((a * b for a, b in zip(row, x)), 0.0) for row in matrix]

    def step(xs: Any, rate: Any) -> Any:
        keys: list[Any] = []
        found: list[Any] = []
        loss = 0.0
        for t in range(positions):
            x = [xs[t * width + i] for i in range(width)]
            query = times(matrices[0], x)
            keys.append(times(matrices[1], x))
            found.append(times(matrices[2], x))
            scores = (sum(a * b for a, b in zip(query, key)) for key in keys)
            if shifted:
                kept = list(scores)
                greatest = reduce(mgjit.maximum, [score.data for score in kept])
                scores = (score - greatest for score in kept)
            powers = [mgjit.exp(score) for score in scores]
            total = sum(powers)
            shares = [power / total for power in powers]
            mixed = [sum(share * v[j] for share, v in zip(shares, found)) for j in range(width)]
            loss = loss + sum(y * y for y in times(matrices[3], mixed))
        for w in weights:
            w.grad = 0.0
        loss.backward()
        sgd(weights, rate)
        return loss

    return step, (numbers(positions * width), 0.01)


def cholesky(size: int = 9) -> Made:
    """Three loops, two of which grow."""
    entries = numbers(size * size)
    matrix = [
        sum(entries[i * size + k] * entries[j * size + k] for k in range(size)) + (size if i == j else 0)
        for i in range(size)
        for j in range(size)
    ]

    def step(a: Any) -> Any:
        rows: list[list[Any]] = [[0.0] * size for _ in range(size)]
        for i in range(size):
            for j in range(i + 1):
                s = a[i * size + j]
                for k in range(j):
                    s = s - rows[i][k] * rows[j][k]
                rows[i][j] = mgjit.sqrt(s) if i == j else s / rows[j][j]
        return [rows[i][j] for i in range(size) for j in range(i + 1)]

    return step, (matrix,)


def ragged_batch(lengths: Sequence[int] = (5, 7, 2, 4, 9, 1, 6, 3), width: int = 4) -> Made:
    """A recurrent cell over sequences of different lengths."""
    square = width * width
    weights = values(random.Random(3), 2 * square + 2 * width)
    inner = [weights[r * width : (r + 1) * width] for r in range(width)]
    outer = [weights[square + r * width : square + (r + 1) * width] for r in range(width)]
    first, last = weights[2 * square : 2 * square + width], weights[-width:]

    def step(xs: Any, ys: Any, rate: Any) -> Any:
        loss, place = 0.0, 0
        for y, length in zip(ys, lengths):
            h: Any = first
            for _ in range(length):
                x = xs[place : place + width]
                place += width
                h = [
                    mgjit.tanh(sum(a * b for a, b in zip(inner[r], x)) + sum(a * b for a, b in zip(outer[r], h)))
                    for r in range(width)
                ]
            loss = loss + (sum(a * b for a, b in zip(last, h)) - y) ** 2
        for w in weights:
            w.grad = 0.0
        loss.backward()
        sgd(weights, rate)
        return loss

    return step, (numbers(width * sum(lengths)), numbers(len(lengths)), 0.01)


STEPS = {
    "prefix sums": prefix_sums,
    "suffix products": suffix_products,
    "causal attention": causal_attention,
    "shifted attention": partial(causal_attention, shifted=True),
    "cholesky": cholesky,
    "ragged batch": ragged_batch,
}
