"""Tables that differ between members: what is said about members that are not known."""

from __future__ import annotations

from mgjit.ir.program import Bound, Given, Loop, TableEntry
from mgjit.passes.varying import HOLE, Sliding, last_rows, steps_between, without_holes


def test_01_entries_that_grow_with_the_number() -> None:
    one, other = [3, 7, HOLE], [7, 7, HOLE]
    table = Sliding(0, 3, 2, steps_between(one, other, 2))
    assert table.at(0, other) == one
    assert table.at(1, other) == [5, 7, HOLE]
    assert table.at(5, other) == [13, 7, HOLE]


def test_02_the_last_rows_are_counted_from_the_end() -> None:
    """Two entries a row; rows go on as they began, but for the last one."""
    given = Given(8)
    loop, inner = Loop(6, [], bound=Bound(2, ((given, 1),))), Loop(2, [])
    entry = TableEntry(0, ((loop, 2), (inner, 1)))
    known = [0, 1, 10, 11, 20, 21, 90, 91, *[HOLE] * 4]
    table = next(way for way in last_rows(entry, 12, given, 2, 0) if way.last == 1)
    assert table.at(2, known) == known
    assert table.at(1, known) == [0, 1, 10, 11, 90, 91, *[HOLE] * 6]
    assert table.at(4, known) == [0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 90, 91]


def test_03_holes_repeat_an_entry_that_exists() -> None:
    assert without_holes([HOLE, 4, HOLE, 5]) == [4, 4, 4, 5]
    assert without_holes([HOLE]) == [0]
