"""Forests are kept: a trace is rolled once, and one that reads other places is rolled by itself."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from mgjit.compiler.roll import growing, kept
from mgjit.compiler.roll.forest import print_forest
from mgjit.compiler.roll.growing import roll_growing
from mgjit.compiler.roll.reach import reach
from tests.lowering import Example, numbers


@pytest.fixture(autouse=True)
def rolled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of records of each trace that is rolled; nothing is kept before."""
    monkeypatch.setattr(kept, "_kept", OrderedDict())
    found: list[int] = []
    original = growing.Roller

    def counting(trace: Any, *arguments: Any) -> Any:
        found.append(len(trace))
        return original(trace, *arguments)

    monkeypatch.setattr(growing, "Roller", counting)
    return found


def trace(length: int, stride: int = 1) -> Any:
    """A triangle of products; `stride` changes what is read, and nothing else."""

    def step(xs: Any, y: Any) -> Any:
        return [sum((xs[k * stride % length] * y for k in range(i + 1)), 0.0) for i in range(length)]

    return Example(step, numbers(length), 0.5).trace


def forest(given: Any, alike: bool = False) -> str:
    found = roll_growing(given, reach(given), alike=alike)
    return print_forest(found.forest, found.trace)


def test_01_the_same_trace_is_rolled_once(rolled: list[int]) -> None:
    expected = forest(trace(12))
    count = len(rolled)
    assert forest(trace(12)) == expected
    assert len(rolled) == count > 0


def test_02_a_trace_that_reads_other_places_is_rolled_by_itself_unless_any_like_it_will_do(rolled: list[int]) -> None:
    expected = forest(trace(12))
    count = len(rolled)
    assert forest(trace(12, 5), alike=True) == expected
    assert len(rolled) == count
    forest(trace(12, 5))
    assert len(rolled) > count


def test_03_only_some_are_kept(rolled: list[int]) -> None:
    for length in range(12, 18):
        forest(trace(length))
    assert len(kept._kept) == 4
    count = len(rolled)
    forest(trace(17))
    assert len(rolled) == count
    forest(trace(12))
    assert len(rolled) > count
