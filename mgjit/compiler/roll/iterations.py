"""The iterations of a statement: a box, or what is executed of one where counts depend on the loops around.

1. In a box, every loop has its count (roll/columns.py).
2. Otherwise, the iterations are rows: what one of the loops runs through, while the others stand still.  The loop is
   one that no count depends on, so that each row is a strided slice of a column.
3. A column is affine if its first entries of all rows are, and each row is an arithmetic progression.
4. What is not affine becomes a table over the loops along which it is not; what is not executed repeats an entry.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from ...base.cached import cached_property
from ...ir.opcodes import KIND_SHIFT
from .columns import Dimension, affine_column, positions_of, without_affine_dimensions
from .forest import count_at

Point = tuple[int, ...]


class Separated(NamedTuple):
    """Entries as a sum: `base + sum of step * iteration + entry of a table`.

    Attributes:
        steps: along each loop; None for those of the table.
        table: the entries of these loops, the last one side by side.
    """

    base: int
    steps: list[int | None]
    table: list[int]


class Box:
    """Iterations of loops of constant counts."""

    def __init__(self, dimensions: Sequence[Dimension]) -> None:
        self.dimensions = dimensions
        self.origin = tuple(d.low for d in dimensions)

    def is_empty(self) -> bool:
        """Whether there is no iteration at all."""
        return False

    @cached_property
    def points(self) -> list[Point]:
        """All iterations, in the order of `positions`."""
        return list(product(*(range(d.low, d.high) for d in self.dimensions)))

    def affine(self, column: array[int], base: int, known: frozenset[int]) -> tuple[int, list[int]] | None:
        first = base + sum(d.low * d.period for d in self.dimensions)
        return affine_column(column, first, self.dimensions, known)

    def span(self, steps: Sequence[int]) -> tuple[int, int]:
        spans = [step * (d.high - 1 - d.low) for d, step in zip(self.dimensions, steps)]
        return sum(min(0, s) for s in spans), sum(max(0, s) for s in spans)

    def neighbours(self, k: int) -> tuple[int, int, int]:
        first = sum(d.low * d.period for d in self.dimensions)
        return first, first + self.dimensions[k].period, 1

    def is_single(self, k: int) -> bool:
        return self.dimensions[k].high - self.dimensions[k].low == 1

    def positions(self, base: int) -> list[int]:
        return positions_of(base, self.dimensions)

    def separated(self, entries: Sequence[int]) -> Separated:
        found, steps = without_affine_dimensions(list(entries), [d.high - d.low for d in self.dimensions])
        shift = sum(step * d.low for d, step in zip(self.dimensions, steps) if step is not None)
        if None in steps:
            return Separated(-shift, steps, found)
        return Separated(found[0] - shift, steps, [])

    def table(self, entries: Sequence[int]) -> list[int]:
        return list(entries)


class _Row(NamedTuple):
    """The first iteration of a row, its position from `base` on, and the number of iterations."""

    point: Point
    offset: int
    length: int


class Bounded:
    """Iterations of loops whose counts depend on the loops around them; there is at least one.

    Args:
        dimensions: the loops.
        hole: see `domain_of`.
    """

    def __init__(self, dimensions: Sequence[Dimension], hole: int | None = None) -> None:
        self.dimensions, self._hole = dimensions, hole
        bounded = max(k for k, d in enumerate(dimensions) if d.counts is not None)
        free = [k for k, d in enumerate(dimensions) if not d.grows or k >= bounded]
        self._along = max(free, key=lambda k: dimensions[k].high - dimensions[k].low)
        self._rows = list(self._all_rows(0, (), (), 0, 1))
        self.origin = self._rows[0].point if self._rows else ()

    def is_empty(self) -> bool:
        """Whether there is no iteration at all."""
        return not self._rows

    def _all_rows(self, k: int, point: Point, growing: Point, offset: int, length: int) -> Iterator[_Row]:
        if k == len(self.dimensions):
            yield _Row(point, offset, length)
            return
        d = self.dimensions[k]
        high = d.high if d.counts is None else min(d.high, count_at(d.counts, growing))
        if k == self._along:
            if d.low < high:
                yield from self._all_rows(k + 1, (*point, d.low), growing, offset + d.low * d.period, high - d.low)
            return
        for i in range(d.low, high):
            inner = (*growing, i) if d.grows else growing
            yield from self._all_rows(k + 1, (*point, i), inner, offset + i * d.period, length)

    def affine(self, column: array[int], base: int, known: frozenset[int]) -> tuple[int, list[int]] | None:
        rows = self._rows
        steps = [0] * len(self.dimensions)
        for k, pair in enumerate(self._pairs):
            if pair is not None:
                change = column[base + pair[1]] - column[base + pair[0]]
                steps[k] = change // pair[2]
        step, period = steps[self._along], self.dimensions[self._along].period
        if abs(step) * self.dimensions[self._along].high >= 1 << KIND_SHIFT:
            return None  # the kind of operand changes on the way
        first = column[base + rows[0].offset]
        values = self._in_rows(steps)
        constant = first - values[0]
        for (_, offset, length), value in zip(rows, values):
            expected = constant + value
            start = base + offset
            if column[start] != expected:
                return None
            if length > 1:
                entries = column[start : start + (length - 1) * period + 1 : period]
                numbers = range(expected, expected + step * length, step) if step else [expected] * length
                if entries != array("i", numbers):
                    return None
        return first, steps

    def span(self, steps: Sequence[int]) -> tuple[int, int]:
        if not self._rows:
            return 0, 0
        firsts, step = self._in_rows(steps), steps[self._along]
        lasts = [first + step * (row.length - 1) for first, row in zip(firsts, self._rows)] if step else firsts
        return min(*firsts, *lasts) - firsts[0], max(*firsts, *lasts) - firsts[0]

    def _in_rows(self, steps: Sequence[int]) -> list[int]:
        """The sum of steps times iterations at the start of each row."""
        found = [0] * len(self._rows)
        for step, coordinates in zip(steps, self._coordinates):
            if step:
                found = [value + step * i for value, i in zip(found, coordinates)]
        return found

    @cached_property
    def _coordinates(self) -> list[Point]:
        """For each loop, its iteration at the start of each row."""
        return list(zip(*(row.point for row in self._rows)))

    def neighbours(self, k: int) -> tuple[int, int, int]:
        pair = self._pairs[k]
        assert pair is not None
        return pair

    def is_single(self, k: int) -> bool:
        if k == self._along:
            return all(row.length == 1 for row in self._rows) and len({row.point[k] for row in self._rows}) == 1
        return len(set(self._coordinates[k])) == 1

    @cached_property
    def _pairs(self) -> list[tuple[int, int, int] | None]:
        """For each loop two iterations that differ in nothing else: their positions, and by how much they differ."""
        found: list[tuple[int, int, int] | None] = [None] * len(self.dimensions)
        period = self.dimensions[self._along].period
        for row in self._rows:
            if row.length > 1:
                found[self._along] = row.offset, row.offset + period, 1
                break
        for k in range(len(self.dimensions)):
            seen: dict[Point, _Row] = {}
            for row in self._rows if k != self._along else ():
                rest = row.point[:k] + row.point[k + 1 :]
                before = seen.setdefault(rest, row)
                if before is not row:
                    found[k] = before.offset, row.offset, row.point[k] - before.point[k]
                    break
        return found

    @cached_property
    def points(self) -> list[Point]:
        """All iterations, in the order of `positions`."""
        k = self._along
        return [(*point[:k], point[k] + i, *point[k + 1 :]) for point, _, length in self._rows for i in range(length)]

    def positions(self, base: int) -> list[int]:
        period = self.dimensions[self._along].period
        return [base + offset + i * period for _, offset, length in self._rows for i in range(length)]

    def separated(self, entries: Sequence[int]) -> Separated:
        steps, rest = separate(self.points, entries)
        if None not in steps:
            return Separated(next(iter(rest.values())), steps, [])
        return Separated(0, steps, self._filled(rest, [k for k, step in enumerate(steps) if step is None]))

    def table(self, entries: Sequence[int]) -> list[int]:
        return self._filled(dict(zip(self.points, entries)), range(len(self.dimensions)))

    def _filled(self, entries: dict[Point, int], kept: Sequence[int]) -> list[int]:
        places: list[list[int]] = [[0] * len(self.dimensions)]
        for k in kept:
            d = self.dimensions[k]
            low = d.low if self._hole is None else 0
            places = [[*place[:k], i, *place[k + 1 :]] for place in places for i in range(low, d.high)]
        found, last = [], next(iter(entries.values()))
        for place in places:
            last = entries.get(tuple(place), last if self._hole is None else self._hole)
            found.append(last)
        return found


def domain_of(dimensions: Sequence[Dimension], hole: int | None = None) -> Box | Bounded:
    """The iterations of a statement inside of these loops.

    Args:
        hole: the entry of tables for what is not executed; by default it repeats one.
    """
    return Box(dimensions) if all(d.counts is None for d in dimensions) else Bounded(dimensions, hole)


def separate(points: Sequence[Point], entries: Sequence[int]) -> tuple[list[int | None], dict[Point, int]]:
    """The steps along the coordinates in which entries are affine, None for others, and what is left without them.

    Returns:
        The steps; and entries of points whose affine coordinates are 0.
    """
    steps: list[int | None] = []
    rest = dict(zip(points, entries))
    for k in range(len(points[0])):
        lines: dict[Point, list[tuple[int, int]]] = {}
        for point, entry in rest.items():
            lines.setdefault((*point[:k], 0, *point[k + 1 :]), []).append((point[k], entry))
        step = 0
        for line in lines.values():
            if len(line) > 1:
                (i, one), (j, other) = line[:2]
                step = (other - one) // (j - i)
                break
        if all(entry == line[0][1] + step * (i - line[0][0]) for line in lines.values() for i, entry in line):
            rest = {point: line[0][1] - step * line[0][0] for point, line in lines.items()}
            steps.append(step)
        else:
            steps.append(None)
    return steps, rest
