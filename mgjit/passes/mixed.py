"""Reading and rebuilding the tables of Mixed operands, which read one of several arrays."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from ..ir.builders import row_major
from ..ir.program import Array, Index, Loop, Mixed, TableEntry


class Entries(NamedTuple):
    """What a Mixed operand reads in each iteration of its loops, in row-major order."""

    loops: tuple[Loop, ...]
    places: list[tuple[Array, int]]


def entries_of(mixed: Mixed, tables: Sequence[int]) -> Entries:
    """The array and the element that each iteration reads; any element in iterations that a bound leaves out."""
    loops = tuple(dict.fromkeys(loop for entry in (mixed.selector, mixed.position) for loop, _ in entry.terms))
    selectors, positions = (_read(entry, loops, tables) for entry in (mixed.selector, mixed.position))
    last = len(mixed.arrays) - 1
    return Entries(loops, [(mixed.arrays[min(max(s, 0), last)], p) for s, p in zip(selectors, positions)])


def _read(entry: TableEntry, loops: Sequence[Loop], tables: Sequence[int]) -> list[int]:
    steps = dict(entry.terms)
    ranges = [[steps.get(loop, 0) * i for i in range(loop.count)] for loop in loops]
    places = [entry.offset + sum(iteration) for iteration in product(*ranges)]
    return [tables[place] if 0 <= place < len(tables) else 0 for place in places]


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
    ranges = [[step * i for i in range(loop.count)] for loop, step in zip(loops, steps)]
    if all(number == numbers[0] + sum(iteration) for number, iteration in zip(numbers, product(*ranges))):
        return Index(numbers[0], tuple((loop, step) for loop, step in zip(loops, steps) if step))
    return Index(0, (), as_table(numbers, loops, tables))
