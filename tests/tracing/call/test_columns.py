"""The columns of .loop: what is a column, and what is the same for every row."""

from __future__ import annotations

import inspect
from array import array
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from mgjit import Value, zeros
from mgjit.errors import ColumnError
from mgjit.tracing.call.columns import Columns, read_columns


class Pair(NamedTuple):
    """Two things."""

    a: Any
    b: Any


@dataclass
class Sample:
    """Two things, too."""

    a: Any
    b: Any


def read(*given: Any, static: frozenset[str] = frozenset(), **named: Any) -> Columns:
    """Columns of a step f(x, y=7.0, *rest, **named)."""

    def step(x: Any, y: Any = 7.0, *rest: Any, **named: Any) -> None:
        pass

    return read_columns(inspect.signature(step), given, named, static)


def test_04_what_is_the_same_for_every_row() -> None:
    """Everything that is no sequence or buffer; defaults; what static= names."""
    value, state, thing = Value(1.0), zeros(3), object()
    for argument in (1.0, 2, True, None, "text", value, state, thing, {"a": [1.0]}, Pair(1.0, 2.0), Sample([1.0], 2)):
        columns = read([1.0, 2.0], argument)
        assert [row[1] for row in columns.rows()] == [argument, argument]
    assert read([1.0, 2.0]).row(1) == (2.0, 7.0, (), {})
    assert read([1.0, 2.0], [1, 2, 3], static=frozenset("y")).row(1)[1] == [1, 2, 3]
    assert read([1.0, 2.0], 0, [3.0, 4.0], "s", k=[5, 6], j=None).row(1) == (2.0, 0, (4.0, "s"), {"k": 6, "j": None})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ((iter([1.0]),), r"the column x is a \w+.*list\(x\)"),
        (([1.0], {1.0}), "the column y is a set"),
        (([1.0], 2.0, map(abs, [1])), r"the column rest\[0\] is a map"),
        ((1.0, "abc"), "needs a column"),
        (([1.0, 2.0], b"abc"), r"x has 2 rows, y has 3.*\[y\] \* steps"),
        (([1.0, 2.0], 1.0, [1.0]), "x has 2 rows, rest has 1"),
    ],
)
def test_05_no_columns(given: tuple[Any, ...], why: str) -> None:
    """Iterators, sets, only constants, different lengths."""
    with pytest.raises(ColumnError, match=why):
        read(*given)


def test_20_objects() -> None:
    """Of columns that are buffers, or the same for all rows, one row stands for all."""
    pixels = memoryview(bytes(12)).cast("B", (4, 3))
    found = read_columns(
        inspect.signature(lambda x, y, lr: None), (pixels, array("d", [1.0] * 4), 0.1), {}, frozenset()
    )
    assert [bytes(found.objects(0)[0]), found.objects(1), found.objects(2)] == [bytes(3), [1.0], [0.1]]
    lists = [[1.0], [2.0], [3.0], [4.0]]
    found = read_columns(inspect.signature(lambda x, y: None), (pixels, lists), {}, frozenset())
    assert all(one is other for one, other in zip(found.objects(1), lists))
