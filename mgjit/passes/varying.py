"""Index tables that are other ones in other members of a family, as functions of the number of a member.

1. All entries may be affine functions of the number.
2. Or the rows of a table, which are iterations of a loop, go on as they began, but for the last ones.

Both are guesses where no member is known: each new one compares its tables with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from ..ir.program import Given, TableEntry

#: How many of the last iterations of a loop may be unlike the others in what they look up.
_MOST_LAST = 2
#: The entry of tables that no known member uses.
HOLE = -(1 << 31)


class Varying(NamedTuple):
    """A table that has something else in its last rows; the others go on as they began.

    Attributes:
        offset, end: its place among the tables.
        row: the size of a row; a row is an iteration of a loop.
        room: how many rows follow each other, for each iteration of the loops around.
        base, step: how many iterations that has: `base + step * number`.
        known: how many it has in the member whose table is known.
        last: how many rows are counted from the end.
    """

    offset: int
    end: int
    row: int
    room: int
    base: int
    step: int
    known: int
    last: int

    def at(self, number: int, tables: Sequence[int]) -> list[int]:
        """The table for a number; it is a guess where no member is known."""
        rows = self.base + self.step * number
        regular = self.known - self.last
        found: list[int] = []
        for around, k in product(range(self.offset, self.end, self.row * self.room), range(self.room)):
            if k >= rows:
                found += [HOLE] * self.row
            elif k >= rows - self.last:
                found += self._row(tables, around, self.known - rows + k)
            elif k < regular:
                found += self._row(tables, around, k)
            else:
                one, other = (self._row(tables, around, place) for place in (regular - 2, regular - 1))
                found += [HOLE if HOLE in (x, y) else y + (k - regular + 1) * (y - x) for x, y in zip(one, other)]
        return found

    def _row(self, tables: Sequence[int], around: int, place: int) -> Sequence[int]:
        start = around + place * self.row
        return tables[start : start + self.row] if place >= 0 else [HOLE] * self.row


class Sliding(NamedTuple):
    """A table whose entries are affine functions of the number.

    Attributes:
        offset, end: its place among the tables.
        known: the number for which they are known.
        steps: by how much each grows.
    """

    offset: int
    end: int
    known: int
    steps: Sequence[int]

    def at(self, number: int, tables: Sequence[int]) -> list[int]:
        """The table for a number."""
        here = tables[self.offset : self.end]
        return [HOLE if x == HOLE else x + step * (number - self.known) for x, step in zip(here, self.steps)]


def steps_between(one: Sequence[int], other: Sequence[int], unit: int) -> list[int]:
    """By how much entries grow with the number, rounded down."""
    return [0 if HOLE in (x, y) else (y - x) // unit for x, y in zip(one, other)]


def last_rows(entry: TableEntry, end: int, given: Given, unit: int, least: int) -> Iterator[Varying]:
    """How the last rows of a table may be unlike the others."""
    for loop, row in entry.terms:
        bound = loop.bound
        if bound is not None and bound.table is None and [other for other, _ in bound.terms] == [given]:
            step = bound.terms[0][1]
            base = bound.base - step * least
            for last in range(_MOST_LAST + 1):
                yield Varying(entry.offset, end, row, loop.count, base, step, base + step * unit, last)


def without_holes(entries: Sequence[int]) -> list[int]:
    """Entries, where holes repeat one that exists."""
    found = []
    last = next((entry for entry in entries if entry != HOLE), 0)
    for entry in entries:
        last = last if entry == HOLE else entry
        found.append(last)
    return found
