"""Tables that differ between members: what is said about members that are not known."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mgjit.compiler.lengths.varying import (
    HOLE,
    Pieces,
    Rows,
    Run,
    Sliding,
    Varying,
    continued,
    runs,
    ways,
    without_holes,
)
from mgjit.ir.program import Bound, Given, Loop, TableEntry

#: Programs count from the least number, which is 2 less than that of the first of both members.
GIVEN, LEAST = Given(8), -2


def table(one: Sequence[int], other: Sequence[int], terms: Sequence[tuple[Loop, int]], unit: int) -> Varying:
    """The rule that says most; it is right about both members."""
    entry = TableEntry(0, tuple(terms))
    found = next(ways(entry, one, other, GIVEN, unit, LEAST))
    assert found.at(0, other) == list(one)
    assert found.at(unit, other) == list(other)
    return found


def rows(room: int, base: int, step: int = 1) -> Loop:
    """A loop of so many iterations for number 0, and some more for each number."""
    return Loop(room, [], bound=Bound(base + step * LEAST, ((GIVEN, step),)))


def test_01_the_last_rows_are_counted_from_the_end() -> None:
    """Two entries a row; rows go on as they began, but for the last one."""
    one = [0, 1, 10, 11, 90, 91, *[HOLE] * 6]
    other = [0, 1, 10, 11, 20, 21, 30, 31, 90, 91, *[HOLE] * 2]
    found = table(one, other, [(rows(6, 3), 2), (Loop(2, []), 1)], 2)
    assert isinstance(found, Rows)
    assert found.last == 2
    assert found.at(1, other) == [0, 1, 10, 11, 20, 21, 90, 91, *[HOLE] * 4]
    assert found.at(3, other) == [0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 90, 91]
    assert found.at(-1, other) == [0, 1, 90, 91, *[HOLE] * 8]


def test_02_rows_that_count_down_begin_higher_in_longer_members() -> None:
    one, other = [45, 30, 15, 0, 0, HOLE, HOLE], [75, 60, 45, 30, 15, 0, 0]
    found = table(one, other, [(rows(7, 5), 1)], 2)
    assert found.at(1, other) == [60, 45, 30, 15, 0, 0, HOLE]
    assert found.at(-2, other) == [15, 0, 0, *[HOLE] * 4]


def test_03_a_loop_of_several_more_iterations_for_each_number() -> None:
    """A head of one entry; three for each number; a tail of two."""
    one = [7, 1, 2, 2, 1, 2, 2, 8, 9, *[HOLE] * 6]
    other = [7, 1, 2, 2, 1, 2, 2, 1, 2, 2, 8, 9, *[HOLE] * 3]
    found = table(one, other, [(rows(15, 9, 3), 1)], 1)
    assert found.at(2, other) == [7, *[1, 2, 2] * 4, 8, 9]


def test_04_a_loop_around() -> None:
    one, other = [0, 1, HOLE, 5, 6, HOLE], [0, 1, 2, 5, 6, 7]
    found = table(one, other, [(Loop(2, []), 3), (rows(3, 2), 1)], 1)
    assert isinstance(found, Rows)
    assert found.last == 0


def test_05_a_boundary_that_moves_with_the_number() -> None:
    one, other = [0] * 4 + [1] * 6, [0] * 8 + [1] * 2
    found = table(one, other, [(Loop(10, []), 1)], 2)
    assert isinstance(found, Pieces)
    assert found.at(1, other) == [0] * 6 + [1] * 4
    assert found.at(-1, other) == [0] * 2 + [1] * 8
    assert set(found.at(4, other)) == {HOLE}  # there is no such member


def test_06_progressions_whose_first_entries_follow_the_number() -> None:
    one, other = [9, 8, 7, 0, 1, 2, 3, 4, 5], [11, 10, 9, 8, 7, 0, 1, 2, 3]
    found = table(one, other, [(Loop(9, []), 1)], 2)
    assert found.at(1, other) == [10, 9, 8, 7, 0, 1, 2, 3, 4]


def test_07_entries_that_follow_the_number_by_themselves() -> None:
    one, other = [3, 7, HOLE, 2], [7, 7, HOLE, 4]
    found = table(one, other, [(Loop(4, []), 1)], 2)
    assert isinstance(found, Sliding)
    assert found.at(1, other) == [5, 7, HOLE, 3]


@pytest.mark.parametrize("unit", [2, 3])
def test_08_what_follows_no_rule_is_not_what_it_was(unit: int) -> None:
    one, other = [3, 7, 1, 9], [4, 7, 2, 1]
    terms = ((Loop(4, []), 1),)
    for way in ways(TableEntry(0, terms), one, other, GIVEN, unit, LEAST):
        assert way.at(0, other) != one


def test_09_runs_are_progressions_of_three() -> None:
    assert runs([5, 5, 5, 1, 4, 7, 10, HOLE, HOLE, 3]) == [
        Run(0, 5, 0), Run(3, 1, 3), Run(7, HOLE, 0), Run(9, 3, 0),
    ]  # fmt: skip
    assert runs([1, 9, 10, 11]) == [Run(0, 1, 0), Run(1, 9, 1)]


def test_10_holes_repeat_an_entry_that_exists() -> None:
    assert without_holes([HOLE, 4, HOLE, 5]) == [4, 4, 4, 5]
    assert without_holes([HOLE]) == [0]


def triangle(known: int, room: int) -> tuple[TableEntry, list[int], list[int]]:
    """Two triangles side by side, of which so many rows are known: a use of the table, these rows, and all."""
    outer = rows(room, 4)
    inner = Loop(room + 1, [], bound=Bound(2, ((outer, 1),)))
    every = []
    for row in range(room):
        for side in range(2):
            line = [row, *(13 * row + k for k in range(row)), 90 + row]
            every += [side + x for x in line] + [HOLE] * (room + 1 - len(line))
    stride = 2 * (room + 1)
    entry = TableEntry(0, ((outer, stride), (Loop(2, []), room + 1), (inner, 1)))
    return entry, [*every[: known * stride], *[HOLE] * ((room - known) * stride)], every


def test_11_rows_of_a_triangle_go_on_between_their_ends() -> None:
    """Entries at the start of a row, and the last one, go on as in the rows before; between them there is one more."""
    entry, known, every = triangle(6, 9)
    assert continued(entry, known, GIVEN, LEAST) == every


def test_12_rows_that_follow_no_rule_are_left_as_they_are() -> None:
    """The last row is unlike those before; there are too few of them; no loop depends on the number."""
    entry, known, _ = triangle(6, 9)
    odd = known.copy()
    odd[5 * 20 + 3] += 1
    assert continued(entry, odd, GIVEN, LEAST)[6 * 20] == HOLE
    entry, few, _ = triangle(2, 9)
    assert continued(entry, few, GIVEN, LEAST) == few
    assert continued(TableEntry(0, ((Loop(4, []), 1),)), [1, 2, 3, HOLE], GIVEN, LEAST) == [1, 2, 3, HOLE]


def test_13_rows_of_one_entry_go_on_after_other_ones() -> None:
    """The first row is unlike the others; known rows are few, but enough."""
    entry = TableEntry(0, ((rows(7, 3), 1),))
    assert continued(entry, [9, 1, 3, 5, HOLE, HOLE, HOLE], GIVEN, LEAST) == [9, 1, 3, 5, 7, 9, 11]


def test_14_rows_after_the_first_one_are_counted_from_the_end() -> None:
    """As where gradients flow back through time: the first row is the end of the graph, the others go down to 0."""

    def counted(rows: int) -> list[int]:
        behind = [10 * row + k for row in range(rows - 2, -1, -1) for k in range(2)]
        return [1, 0, *behind, *[HOLE] * (14 - 2 * rows)]

    for unit in (1, 2):
        found = table(counted(4), counted(4 + unit), [(rows(7, 4), 2), (Loop(2, []), 1)], unit)
        assert [found.at(number, counted(4 + unit)) for number in range(-2, 4)] == [*map(counted, range(2, 8))]
