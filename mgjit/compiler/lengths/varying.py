"""Index tables that are other ones in other members of a family, as functions of the number of a member.

1. `Rows`: iterations of a loop whose count depends on the number go on as they began, but for the first one, perhaps,
   and the last ones.
2. `Pieces`: as many arithmetic progressions in each, whose first entries and places follow the number.
3. `Sliding`: each entry follows the number by itself.

All are guesses where no member is known: each new one compares its tables with them.  Two tables fit many rules, so
the one that says most about others is taken.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Union

from ...ir.program import Given, Loop, TableEntry

#: The entry of tables that no known member uses.
HOLE = -(1 << 31)


class Rows(NamedTuple):
    """A table whose entries along a loop go on as they began, but for the last ones, which are counted from the end.

    Attributes:
        offset, end: its place among the tables.
        stretch: how many entries there is room for, for each iteration of the loops around.
        base, step: how many entries that has: `base + step * number`.
        known: the number for which the table is known.
        first: how many entries at the start are unlike the others: none, or an iteration.
        period: after how many entries each is as much more than the one before.
        last: how many entries are counted from the end.
        slopes: by how much each known entry grows with the number.
    """

    offset: int
    end: int
    stretch: int
    base: int
    step: int
    known: int
    first: int
    period: int
    last: int
    slopes: array[int]

    def at(self, number: int, tables: Sequence[int]) -> list[int]:
        """The table for a number; it is a guess where no member is known."""
        size, known = (self.base + self.step * n for n in (number, self.known))
        regular, delta = known - self.last, number - self.known
        found: list[int] = []
        for around in range(self.offset, self.end, self.stretch):
            here = tables[around : around + known]
            slopes = self.slopes[around - self.offset :]
            values = [x if x == HOLE else x + slope * delta for x, slope in zip(here, slopes)]
            row = values[: max(0, min(regular, size - self.last))]
            while len(row) < size - self.last:
                row.append(_next(row, self.first, self.period))
            row += values[max(regular, known - size) :]
            found += row
            found += [HOLE] * (self.stretch - len(row))
        return found


class Pieces(NamedTuple):
    """A table of arithmetic progressions.

    Attributes:
        offset, end: its place among the tables.
        known: the number for which they are known.
        runs: the progressions, one after the other.
        moves: for each, by how much its first place and its first entry grow with the number.
    """

    offset: int
    end: int
    known: int
    runs: Sequence[Run]
    moves: Sequence[tuple[int, int]]

    def at(self, number: int, tables: Sequence[int]) -> list[int]:
        """The table for a number."""
        size, delta = self.end - self.offset, number - self.known
        starts = [run.start + start * delta for run, (start, _) in zip(self.runs, self.moves)]
        found: list[int] = []
        for run, (_, move), start, end in zip(self.runs, self.moves, starts, [*starts[1:], size]):
            if start != len(found) or not start <= end <= size:
                return [HOLE] * size  # there is no such member
            first = run.first + move * delta
            found += [HOLE] * (end - start) if run.first == HOLE else [first + run.step * k for k in range(end - start)]
        return found


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


Varying = Union[Rows, Pieces, Sliding]


def ways(
    entry: TableEntry, one: Sequence[int], other: Sequence[int], given: Given, unit: int, least: int
) -> Iterator[Varying]:
    """How a table may vary, which says most about other members first.

    Args:
        entry: a use of the table.
        one, other: its contents for the numbers 0 and `unit`.
        given: the number in the Program, which is `least` less.
    """
    sizes = [
        _Sizes(row * loop.count, row, *size)
        for loop, row in entry.terms
        if (size := _size(loop, given, least)) is not None
    ]
    rows = [
        found
        for is_first_unlike in (False, True)
        for is_sloped in (False, True)
        for size in sizes
        if (found := _rows(entry.offset, one, other, unit, size, is_first_unlike, is_sloped)) is not None
    ]
    yield from sorted(rows, key=lambda found: found.first + found.last)
    pieces = _pieces(entry.offset, one, other, unit)
    if pieces is not None:
        yield pieces
    steps = [0 if HOLE in (x, y) else (y - x) // unit for x, y in zip(one, other)]
    yield Sliding(entry.offset, entry.offset + len(one), unit, steps)


def continued(entry: TableEntry, known: Sequence[int], given: Given, least: int) -> list[int]:
    """A table that is the same for all members, also where only longer ones look, as far as a rule is known.

    1. Rows are the iterations of a loop whose count depends on the number, and may be longer each than the one before.
    2. Their entries go on as in the two rows before: the last ones at the same place from the end, if those of the
       last row that is known do so, and the others at the same place from the start.
    """
    found = list(known)
    for outer, stride in entry.terms:
        if _size(outer, given, least) is None:
            continue
        around = [(loop, step) for loop, step in entry.terms if loop is not outer]
        inner = next((term for term in around if _grows_with(term[0], outer)), None)
        starts = [0]
        for loop, step in around:
            if inner is None or loop is not inner[0]:
                starts = [start + step * i for start in starts for i in range(loop.count)]
        for start in starts:
            _continue(found, [_row(start + stride * i, i, inner) for i in range(outer.count)])
    return found


def _grows_with(loop: Loop, outer: Loop) -> bool:
    """Whether the iterations of a loop depend on those of another one, and on nothing else."""
    return loop.bound is not None and loop.bound.table is None and [one for one, _ in loop.bound.terms] == [outer]


def _row(start: int, iteration: int, inner: tuple[Loop, int] | None) -> range:
    """The places of the entries of an iteration, whose loop is inside of it."""
    if inner is None:
        return range(start, start + 1)
    loop, step = inner
    assert loop.bound is not None
    count = min(loop.count, max(0, loop.bound.base + loop.bound.terms[0][1] * iteration))
    return range(start, start + step * count, step) if step else range(start, start + min(count, 1))


def _continue(entries: list[int], rows: Sequence[range]) -> None:
    """Fill in the rows behind those that are known, if these tell how."""
    known = next((k for k, row in enumerate(rows) if HOLE in map(entries.__getitem__, row)), len(rows))
    if not 3 <= known < len(rows):
        return
    before, one, last = rows[known - 3 : known]
    expected = [2 * entries[y] - entries[x] for x, y in zip(before, one)]
    places = range(min(len(expected), len(last)))
    behind = len(last) - next((k for k in places if expected[k] != entries[last[k]]), len(places))
    if behind > len(before) or any(
        2 * entries[one[-k]] - entries[before[-k]] != entries[last[-k]] for k in range(1, behind + 1)
    ):
        return
    for k in range(known, len(rows)):
        before, one, row = rows[k - 2 : k + 1]
        first = len(row) - behind
        if first > len(before) or behind > len(before):
            return
        pairs = [*zip(before[:first], one), *zip(before[len(before) - behind :], one[len(one) - behind :])]
        for place, (x, y) in zip(row, pairs):
            entries[place] = 2 * entries[y] - entries[x]


# ---- 1: rows ------------------------------------------------------------------------------------------------------


class _Sizes(NamedTuple):
    """The entries for which there is room, those of an iteration; and the iterations: `base + step * number`."""

    room: int
    row: int
    base: int
    step: int


def _size(loop: Loop, given: Given, least: int) -> tuple[int, int] | None:
    """The iterations of a loop for number 0, and how many more there are for each number, if it is so."""
    bound = loop.bound
    if bound is None or bound.table is not None or [other for other, _ in bound.terms] != [given]:
        return None
    step = bound.terms[0][1]
    return bound.base - step * least, step


def _rows(
    offset: int,
    one: Sequence[int],
    other: Sequence[int],
    unit: int,
    sizes: _Sizes,
    is_first_unlike: bool,
    is_sloped: bool,
) -> Rows | None:
    """The rule for a loop that has some more entries in each member.

    Args:
        is_first_unlike: whether the first iteration may be unlike the others.
        is_sloped: whether entries at the same place may differ.
    """
    base, step = sizes.row * sizes.base, sizes.row * sizes.step
    known = base + step * unit
    if step <= 0 or base <= 0:
        return None
    period = step if 2 * step <= base else sizes.row
    first, last = min(period, base) if is_first_unlike else 0, 0
    starts = range(0, len(one), sizes.room)
    for start in starts:
        found = _last(one[start : start + base], other[start : start + known], unit, first, period, is_sloped)
        if found is None:
            return None
        last = max(last, found)
    slopes = array("i", bytes(4 * len(one)))
    if is_sloped:
        for start in starts:
            mine, theirs = one[start : start + base], other[start : start + known]
            slopes[start : start + known] = _slopes(mine, theirs, unit, period, last)
    return Rows(offset, offset + len(one), sizes.room, base, step, unit, first, period, last, slopes)


def _last(one: Sequence[int], other: Sequence[int], unit: int, first: int, period: int, is_sloped: bool) -> int | None:
    """The fewest entries that have to be counted from the end; None if no number of them will do."""
    same = 0
    slopes: list[int | None] = []
    for x, y in zip(one, other):
        slope, rest = (None, 0) if HOLE in (x, y) else divmod(y - x, unit)
        before = slopes[same - period] if same >= first + period else slope
        slopes.append(before if slope is None else slope)
        if rest or (slope and not is_sloped) or (None not in (slope, before) and slope != before):
            break
        same += 1
    last = len(one) - same
    for i in range(same, len(other)):
        if i >= len(other) - last:
            break
        expected = _next(other, first, period, i)
        if HOLE not in (expected, other[i]) and expected != other[i]:
            last = len(other) - i
    tails = zip(one[len(one) - last :], other[len(other) - last :])
    fits = all(HOLE in (x, y) or (x == y if not is_sloped else not (y - x) % unit) for x, y in tails)
    return last if fits and last <= len(one) else None


def _slopes(one: Sequence[int], other: Sequence[int], unit: int, period: int, last: int) -> array[int]:
    """By how much entries grow with the number; those that only one has grow like those before."""
    found = array("i")
    regular = len(one) - last
    for i, y in enumerate(other):
        if regular <= i < len(other) - last:
            found.append(found[i - period] if i >= period else 0)
        else:
            x = one[i] if i < regular else one[i - len(other)]
            found.append(0 if HOLE in (x, y) else (y - x) // unit)
    return found


def _next(entries: Sequence[int], first: int, period: int, place: int | None = None) -> int:
    """The entry at a place, by default at the end, as those one and two periods before it let expect."""
    place = len(entries) if place is None else place
    if place < first + 2 * period:
        return HOLE
    x, y = entries[place - 2 * period], entries[place - period]
    return HOLE if HOLE in (x, y) else 2 * y - x


# ---- 2: pieces ----------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """An arithmetic progression from a place on, or holes."""

    start: int
    first: int
    step: int


def runs(entries: Sequence[int]) -> list[Run]:
    """The arithmetic progressions of a table, from left to right; two entries are none."""
    found: list[Run] = []
    place = 0
    while place < len(entries):
        first, end, step = entries[place], place + 1, 0
        if first == HOLE:
            while end < len(entries) and entries[end] == HOLE:
                end += 1
        elif end < len(entries) and entries[end] != HOLE:
            step = entries[end] - first
            while end < len(entries) and entries[end] != HOLE and entries[end] - entries[end - 1] == step:
                end += 1
            if end == place + 2 and step:
                end, step = place + 1, 0
        found.append(Run(place, first, step))
        place = end
    return found


def _pieces(offset: int, one: Sequence[int], other: Sequence[int], unit: int) -> Pieces | None:
    mine, theirs = runs(one), runs(other)
    if len(mine) != len(theirs):
        return None
    moves = []
    for x, y in zip(mine, theirs):
        if x.step != y.step or (x.first == HOLE) != (y.first == HOLE):
            return None
        start, rest = divmod(y.start - x.start, unit)
        first, more = divmod(y.first - x.first, unit)
        if rest or more:
            return None
        moves.append((start, first))
    return Pieces(offset, offset + len(one), unit, theirs, moves)


def without_holes(entries: Sequence[int]) -> list[int]:
    """Entries, where holes repeat one that exists."""
    found = []
    last = next((entry for entry in entries if entry != HOLE), 0)
    for entry in entries:
        last = last if entry == HOLE else entry
        found.append(last)
    return found
