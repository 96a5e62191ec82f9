"""Reading and rebuilding the tables of Mixed operands, which read one of several arrays."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from ...ir.builders import row_major
from ...ir.program import Array, Index, Loop, Mixed, TableEntry


class Entries(NamedTuple):
    """What a Mixed operand reads in each iteration of its loops, in row-major order."""

    loops: tuple[Loop, ...]
    places: list[tuple[Array, int]]


def entries_of(mixed: Mixed, tables: Sequence[int]) -> Entries:
    """The array and the element that each iteration reads; any element in iterations that a bound leaves out."""
    loops = tuple(dict.fromkeys(loop for entry in (mixed.selector, mixed.position) for loop, _ in entry.terms))
    selectors, positions = (_read(entry, loops, tables) for entry in (mixed.selector, mixed.position))
    if not 0 <= min(selectors, default=0) <= max(selectors, default=0) < len(mixed.arrays):
        last = len(mixed.arrays) - 1
        selectors = [min(max(selector, 0), last) for selector in selectors]
    return Entries(loops, list(zip(map(mixed.arrays.__getitem__, selectors), positions)))


def _read(entry: TableEntry, loops: Sequence[Loop], tables: Sequence[int]) -> list[int]:
    steps = dict(entry.terms)
    places = _sums(entry.offset, [(steps.get(loop, 0), loop.count) for loop in loops])
    if 0 <= min(places, default=0) <= max(places, default=0) < len(tables):
        return list(map(tables.__getitem__, places))
    return [tables[place] if 0 <= place < len(tables) else 0 for place in places]


def _sums(offset: int, loops: Sequence[tuple[int, int]]) -> list[int]:
    """An affine function in each iteration of nested loops, whose steps and counts are given, outermost first."""
    numbers = [offset]
    for step, count in loops:
        terms = [step * i for i in range(count)]
        numbers = [number + term for number in numbers for term in terms]
    return numbers


def as_table(numbers: Sequence[int], loops: Sequence[Loop], tables: array[int]) -> TableEntry:
    """A new table with one entry for each iteration of the loops."""
    offset = len(tables)
    tables.extend(numbers)
    return TableEntry(offset, row_major(loops)[0])


def as_index(numbers: Sequence[int], loops: Sequence[Loop], tables: array[int]) -> Index:
    """An index with these element numbers: affine if they are, otherwise through a table."""
    steps, stride = [], len(numbers)
    for loop in loops:
        stride //= loop.count
        steps.append(numbers[stride] - numbers[0] if loop.count > 1 else 0)
    if list(numbers) == _sums(numbers[0], [(step, loop.count) for loop, step in zip(loops, steps)]):
        return Index(numbers[0], tuple((loop, step) for loop, step in zip(loops, steps) if step))
    return Index(0, (), as_table(numbers, loops, tables))
