"""Which arguments have stand-ins, and how these are made."""

from __future__ import annotations

import collections
import dataclasses
import os
import time
from typing import Any, NamedTuple

import pytest

from mgjit.tracing.call.stand_ins import elements, instance, is_frozen, is_rebuilt, sequence


class Row(list):  # type: ignore[type-arg]
    """A list of a class of its own, with a constructor of its own."""

    def __init__(self, count: int) -> None:
        super().__init__([1.0] * count)


class Doubling(list):  # type: ignore[type-arg]
    """A list that says something else than it holds."""

    def __iter__(self) -> Any:
        return iter([2.0 * x for x in list.__iter__(self)])


class Pair(NamedTuple):
    """A pair."""

    a: float
    b: float


@dataclasses.dataclass
class Slotted:
    """A dataclass without a dict."""

    __slots__ = ("w",)
    w: float


@dataclasses.dataclass(eq=False)
class Single:
    """A dataclass that is equal to itself only."""

    w: float


@dataclasses.dataclass(frozen=True)
class Frozen:
    """A dataclass to which nothing is assigned."""

    w: float


@pytest.mark.parametrize("thing", [[1.0], (1.0,), {}, Row(2), Pair(1.0, 2.0), Slotted(1.0), Frozen(1.0)], ids=repr)
def test_01_rebuilt(thing: Any) -> None:
    assert is_rebuilt(thing)


@pytest.mark.parametrize(
    "thing",
    [Doubling([1.0]), Single(1.0), collections.OrderedDict(), collections.Counter(), collections.deque(), object(),
     time.localtime(), os.stat("."), "text", 1.0],
    ids=lambda thing: type(thing).__name__,
)  # fmt: skip
def test_02_known_by_identity(thing: Any) -> None:
    assert not is_rebuilt(thing)


def test_03_attributes_of_a_list() -> None:
    row: Any = Row(1)
    row.scale = 2.0
    assert not is_rebuilt(row)


def test_04_made_past_the_methods_of_the_class() -> None:
    row, pair, slotted = sequence(Row, [3.0, 4.0]), sequence(Pair, [5.0, 6.0]), instance(Slotted, {"w": 7.0})
    assert (type(row), list(row), type(pair), pair.b, slotted) == (Row, [3.0, 4.0], Pair, 6.0, Slotted(7.0))
    assert list(elements(Doubling([1.0]))) == [1.0]


def test_05_frozen() -> None:
    assert is_frozen(Frozen)
    assert not is_frozen(Slotted)
