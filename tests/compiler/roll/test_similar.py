"""Runs that are wired alike: what is remembered of one is what would be found in the other."""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest

import mgjit
from mgjit.compiler.roll import roll as rolling
from mgjit.compiler.roll.roll import roll
from mgjit.compiler.roll.similar import Changes, SimilarRuns
from mgjit.ir.opcodes import INPUT, PARAMETER, leaf
from tests.lowering import Example


def rows(count: int, width: int) -> Example:
    """Sums of products, as many as there are rows; some rows read their inputs backwards."""
    weights = [mgjit.Value(0.1 * k) for k in range(width)]

    def step(xs: Any) -> Any:
        total: Any = 0.0
        for row in range(count):
            inputs = xs[row * width : (row + 1) * width]
            score = sum(w * x for w, x in zip(weights, reversed(inputs) if row % 7 == 3 else inputs))
            total = total + (score if row % 5 else score * score)
        return total

    return Example(step, [0.5] * (count * width))


@pytest.mark.parametrize("width", [4, 5, 9])
def test_01_the_same_loops_as_without(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not anything is remembered, the forest is the same."""
    made = rows(60, width)
    forest = roll(made.trace, made.reach.marks)
    monkeypatch.setattr(SimilarRuns, "lengths", lambda *_: None)
    assert roll(made.trace, made.reach.marks) == forest


def test_02_few_runs_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of searches does not depend on the number of rows."""
    counted = []
    for count in (70, 140):
        searches = 0
        search = rolling.Roller._search

        def counting(self: Any, *given: Any, search: Any = search) -> Any:
            nonlocal searches
            searches += 1
            return search(self, *given)

        with monkeypatch.context() as patch:
            patch.setattr(rolling.Roller, "_search", counting)
            made = rows(count, 6)
            roll(made.trace, made.reach.marks)
        counted.append(searches)
    assert counted[1] <= counted[0] + 10


def test_03_changes_by_definition() -> None:
    """Differences of two leaves or two records; of a leaf and a record how far it lies back; else nothing."""
    draw = random.Random(7)

    def operand(position: int) -> int:
        kinds = leaf(PARAMETER, draw.randrange(1 << 26)), leaf(INPUT, draw.randrange(1 << 26)), -1
        return draw.choice((draw.randrange(position + 1), *kinds))

    for width, step in ((1, 4), (2, 6), (3, 3)):
        operands = array("i", [operand(k // width) for k in range(300 * width)])
        found = array("i", Changes(300 * width, width).of(operands[:], step, step // width))
        assert len(found) == len(operands) - step
        for k, (x, y, change) in enumerate(zip(operands, operands[step:], found), step):
            expected = y - x if (x < 0) == (y < 0) else k // width - y if x < 0 else 0
            assert change == (expected + (1 << 31)) % (1 << 32) - (1 << 31)
