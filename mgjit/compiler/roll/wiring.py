"""How the iterations of a run are wired, which decides how many of them are a loop (step 4 of roll/roll.py).

For every operand, in every iteration from the second on: an operand inside the run is at the same relative place as in
the iteration before, or (second iteration only) in the first iteration where the first iteration read something
outside; an operand outside of the run was outside in the iteration before.  What lies outside may be arbitrary.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from .known_loops import KnownSteps

#: Whether an operand is a leaf, by its top byte (two's complement, 32 bits).
_IS_LEAF = bytes(byte >= 128 for byte in range(256))
_TOP_BYTE = 3 if sys.byteorder == "little" else 0
#: Of so many numbers, a progression is made quicker than cut out of a list of all positions.
_FEW = 64
#: That list is made when the progressions so far had one number for so many of its positions: it has paid then.
_PAID = 8


class Wiring:
    """Compares the iterations of runs.

    Args:
        columns: the operands of all records.
        known_steps: what is known of the operands of blocks.
    """

    def __init__(self, columns: Sequence[array[int]], known_steps: KnownSteps) -> None:
        self._columns, self._known_steps = columns, known_steps
        self._positions = array("i")  # as many as have been needed
        self._made = 0  # numbers of progressions

    def alike(self, start: int, period: int, count: int) -> int:
        """How many iterations (of `count`) from the record `start` on are wired alike."""
        limit = count
        for number, positions in self._to_compare(start, period, count):
            column = self._columns[number]
            for position in positions:
                second = column[position + period]
                first = column[position]
                if second < start:
                    if first >= start:
                        return 1
                    if limit > 2:
                        limit = self._outside(number, position, period, limit, start)
                elif second - first == period or (first < start and second < start + period):
                    if limit > 2:
                        limit = self._progressing(column, position, period, limit)
                else:
                    return 1
        return limit

    def _to_compare(self, start: int, period: int, count: int) -> Iterator[tuple[int, Iterable[int]]]:
        """The operands that decide how iterations are wired: of blocks, the inputs of the first neuron."""
        blocks = self._known_steps.repeated(start, period, count)
        if not blocks:
            yield from ((number, range(start, start + period)) for number in range(len(self._columns)))
            return
        edges = [start, *(edge for block in blocks for edge in (block.start, block.end)), start + period]
        gaps = [range(low, high) for low, high in zip(edges[::2], edges[1::2])]
        inputs = [range(block.start, block.start + 2 * block.inputs, 2) for block in blocks]
        for number in range(len(self._columns)):
            yield number, chain(*gaps, *(inputs if number == 1 else ()))

    def is_stranger(self, at: int, step: int, start: int, period: int) -> bool:
        """Whether the iteration at `at` breaks the pattern of the three iterations that follow it by `step`."""
        stranger = False
        for column in self._columns:
            for position in range(at, at + period):
                b, c = column[position + step], column[position + 2 * step]
                if b < start and c < start:  # these read from outside, not from the iteration before
                    if c - b != column[position + 3 * step] - c:
                        return False
                    stranger |= b - column[position] != c - b
        return stranger

    def _outside(self, number: int, position: int, period: int, count: int, start: int) -> int:
        """How many iterations (of `count`) have their operand before `start`."""
        entries = self._columns[number][position : position + count * period : period]
        if 0 not in are_leaves(entries) or max(entries) < start:
            return count
        return next(t for t, operand in enumerate(entries) if operand >= start)

    def _progressing(self, column: array[int], position: int, period: int, count: int) -> int:
        """How many iterations have their operand `period` behind that of the iteration before, from the second on."""
        entries = column[position + period : position + count * period : period]
        expected = self._progression(entries[0], period, count - 1)
        if entries == expected:
            return count
        low, high = 1, count - 1  # entries[:low] agree, entries[:high] do not
        while high - low > 1:
            middle = (low + high) // 2
            if entries[low:middle] == expected[low:middle]:
                low = middle
            else:
                high = middle
        return low + 1

    def _progression(self, first: int, period: int, count: int) -> array[int]:
        """`first`, `first + period`, ..."""
        end = first + count * period
        self._made += count
        if count < _FEW or (end > len(self._positions) and self._made * _PAID < end):
            return array("i", range(first, end, period))
        if end > len(self._positions):
            self._positions = consecutive(min(2 * end, len(self._columns[0])))
        return self._positions[first:end:period]


def are_leaves(column: array[int]) -> bytes:
    """For each operand, whether it is a leaf."""
    return column.tobytes()[_TOP_BYTE::4].translate(_IS_LEAF)


def consecutive(count: int) -> array[int]:
    """The numbers from 0 on, made of their bytes."""
    found = bytearray(4 * count)
    for number in range(4):
        place = number if sys.byteorder == "little" else 3 - number
        run = 256**number
        if run < count:
            cycle = b"".join([bytes((byte,)) * run for byte in range(min(256, -(-count // run)))])
            found[place::4] = (cycle * -(-count // len(cycle)))[:count]
    if not count:
        return array("i")
    return array("i", bytes(found))
