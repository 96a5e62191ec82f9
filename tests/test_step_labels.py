"""Ints among the floats of a table: floats for a step, until it uses one as an index, such as a label."""

from __future__ import annotations

import random
from typing import Any, Callable

import pytest

import mgjit
from mgjit.errors import IndexRangeError

CLASSES = 3


def made(count: int, features: int = 6) -> list[list[Any]]:
    """Rows of floats with a label at their ends."""
    rng = random.Random(1)
    return [[rng.uniform(-1, 1) for _ in range(features)] + [k % CLASSES] for k in range(count)]


def epoch_of(weights: list[list[float]]) -> Callable[[list[list[Any]], float], float]:
    """An epoch of softmax without exp: any step with labels would do."""

    def epoch(rows: list[list[Any]], rate: float) -> float:
        total = 0.0
        for row in rows:
            scores = [sum(w * x for w, x in zip(of_class, row[:-1])) for of_class in weights]
            expected = [0 for _ in range(CLASSES)]
            expected[row[-1]] = 1
            for k in range(CLASSES):
                error = scores[k] - expected[k]
                total += error * error
                for j in range(len(row) - 1):
                    weights[k][j] -= rate * error * row[j]
        return total

    return epoch


@pytest.mark.parametrize("count", [2, 30])  # as single conditions, and as a table
def test_01_labels_are_indices(count: int) -> None:
    """One kernel for all labels, in whatever order they come."""
    plain, ours = ([[0.0] * 6 for _ in range(CLASSES)] for _ in range(2))
    step, expected = mgjit.compile(epoch_of(ours), verify="never"), epoch_of(plain)
    rows, rng = made(count), random.Random(2)
    for _ in range(40):
        rng.shuffle(rows)
        rows[0][-1] = rng.randrange(-CLASSES, CLASSES)
        if rows[0][-1] < 0:
            rows[0][-1] = 0
        assert step(rows, 0.01) == expected(rows, 0.01)
        assert ours == plain
    assert step.stats.traces == 1


def test_02_others_than_ints_and_out_of_range() -> None:
    """As plain Python would have it: bools are ints, floats are none; and nothing is changed by an error."""
    plain, ours = ([[0.0] * 6 for _ in range(CLASSES)] for _ in range(2))
    step, expected = mgjit.compile(epoch_of(ours), verify="never"), epoch_of(plain)
    rows = made(30)
    for _ in range(12):
        assert step(rows, 0.01) == expected(rows, 0.01)
    rows[5][-1] = True
    assert step(rows, 0.01) == expected(rows, 0.01)
    assert ours == plain
    rows[5][-1] = CLASSES
    with pytest.raises((IndexError, IndexRangeError)):
        step(rows, 0.01)
    assert ours == plain
    rows[5][-1] = 2
    rows[7][0] = 1  # another structure
    assert step(rows, 0.01) == expected(rows, 0.01)
    assert ours == plain


def test_03_rows_of_loop() -> None:
    """`.loop` takes rows with labels as well."""
    plain, ours = ([[0.0] * 6 for _ in range(CLASSES)] for _ in range(2))
    of_row = lambda epoch: lambda row, rate: epoch([row], rate)  # noqa: E731 - used twice
    step = mgjit.compile(of_row(epoch_of(ours)), verify="never")
    expected = of_row(epoch_of(plain))
    rows = made(30)
    assert list(step.loop(rows, [0.01] * 30)) == [expected(row, 0.01) for row in rows]
    assert ours == plain
