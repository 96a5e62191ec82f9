"""Lists and dicts of which a traced number says which one is meant."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import mgjit

rows = [[0.5, 1.5], [2.5, 3.5]]
named = [{"a": 0.5}, {"a": 1.5}]


def is_changed(x: float) -> Any:
    row = rows[0] if x > 0 else rows[1]
    row[0] = 7.0
    return row[0]


def is_added_to(x: float) -> Any:
    row = rows[0] if x > 0 else rows[1]
    row[1] += x
    return sum(row)


def is_a_dict_that_is_changed(x: float) -> Any:
    one = named[0] if x > 0 else named[1]
    one["a"] = x
    return one["a"]


def is_read_after_a_change(x: float) -> Any:
    row = rows[0] if x > 0 else rows[1]
    rows[0][0] = x
    return row[0]


def is_asked_for_identity(x: float) -> Any:
    row = rows[0] if x > 0 else rows[1]
    return row is rows[0]


def is_returned(x: float) -> Any:
    return rows[0] if x > 0 else rows[1]


def is_returned_further_in(x: float) -> Any:
    return [x, [rows[0] if x > 0 else rows[1]]]


def is_kept(x: float) -> Any:
    rows[0] = rows[0] if x > 0 else rows[1]
    return rows[0][0]


def has_two_names_on_one_side(x: float) -> Any:
    if x > 0:
        row = [x, 1.0]
        other = row
    else:
        row = [1.0, x]
        other = [2.0, x]
    row[0] = 5.0
    return other[0]


def was_there_before(x: float) -> Any:
    row = [1.0, 2.0]
    first = row
    if x > 0:
        row = [x, x]
    row[0] = 3.0
    return first[0]


PLAIN = [
    is_changed, is_added_to, is_a_dict_that_is_changed, is_read_after_a_change, is_asked_for_identity, is_returned,
    is_returned_further_in, is_kept, has_two_names_on_one_side, was_there_before,
]  # fmt: skip


def is_only_read(x: float) -> Any:
    row = rows[0] if x > 0 else rows[1]
    one = named[0] if x > 0 else named[1]
    return sum(q * x for q in row) + one["a"]


def is_written_out(x: float) -> Any:
    row = [x, 1.0] if x > 0 else [2.0, x]
    row[0] = row[0] + 1.0
    if x > 0.5:
        other = [q for q in row]  # noqa: C416
    else:
        other = [1.0, 2.0]
    other[1] += 1.0
    return row, other


COMPILED = [is_only_read, is_written_out]


def doubled(x: float) -> list[float]:
    return [x, x * 2.0]


def is_returned_by_functions(x: float) -> Any:
    if x > 0.5:
        return doubled(x)
    if x > 0:
        return doubled(-x)
    return doubled(x + 1.0)


@pytest.fixture(autouse=True)
def goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that cannot be compiled are plain."""
    monkeypatch.delenv("MGJIT_REFUSE")


def seen(step: Callable[[float], Any]) -> list[Any]:
    """What calls return and leave behind, also which lists are the same."""
    rows[:] = [[0.5, 1.5], [2.5, 3.5]]
    named[:] = [{"a": 0.5}, {"a": 1.5}]
    found = []
    for x in (-0.5, 0.75, 0.0, 0.25, -1.0, 2.0):
        returned = step(x)
        same = [returned is row for row in rows], rows[0] is rows[1]
        found.append(repr((returned, same, rows, named)))
    return found


@pytest.mark.parametrize("function", PLAIN)
def test_01_a_list_that_python_would_have_changed_or_kept(function: Callable[[float], Any]) -> None:
    """The call is plain, and says so."""
    step = mgjit.compile(function, backend="python", background=False, verify="never")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert seen(step) == seen(function)
    assert step.stats.last.made_by == "plain Python"
    assert len([w for w in said if "which of two lists or dicts is meant" in str(w.message)]) == 1


@pytest.mark.parametrize("function", COMPILED)
def test_02_a_list_that_is_read_or_written_out(function: Callable[[float], Any]) -> None:
    """It is compiled."""
    step = mgjit.compile(function, backend="python", background=False, verify="never")
    assert seen(step) == seen(function)
    assert step.stats.last.made_by == "kernel"


def test_03_new_lists_of_functions_are_returned() -> None:
    """Where references are counted, nothing else is seen to mean them."""
    step = mgjit.compile(is_returned_by_functions, backend="python", background=False, verify="never")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert seen(step) == seen(is_returned_by_functions)
    counts = platform.python_implementation() == "CPython"
    assert step.stats.last.made_by == ("kernel" if counts else "plain Python")
