"""Remembers what was found in runs, for others that are wired in the same way.

Most runs of a trace are like another one that has been looked at: the sum of a neuron is like that of the next one.

1. What is found in a run (roll/roll.py) depends on its records up to the end of the loop, or to the place where
   there can be none.  Of these, it depends on which of them are operands, and on the changes of the others from one
   iteration to the next.  This is the form of the run.
2. The changes of all operands of a trace are computed at once, for each period that occurs often enough.
3. A run may be much longer than the loop at its beginning.  So runs are looked up by the form of their first two
   iterations, which tells how many records decided about others that began so; and then by the form of these.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from .wiring import are_leaves, consecutive

#: How many records are compared with later ones at a time.
_SOME = 1 << 13
#: The changes are computed for a period when so many records, or fewer, come to each of its runs.
_WORTHWHILE = 1024
#: So many records may decide about a run.
_MOST = 1024
#: How many lengths are tried of runs that begin in the same way.
_LENGTHS = 8

#: What was found in a run: the item at which the loop begins, and its iterations; none if there is no loop.
Found = tuple[int, int]


class _Length(NamedTuple):
    """What was found in runs of which so many records decided; if they are whole, these were all there were."""

    records: int
    is_whole: bool
    found: dict[tuple[bytes, bytes], Found]


class SimilarRuns:
    """What was found in runs.

    Args:
        columns: the operands of all records.
    """

    def __init__(self, columns: Sequence[array[int]]) -> None:
        self._columns, self._width = columns, len(columns)
        self._operands, self._leaves = array("i"), b""  # of one record after the other
        self._changes: dict[int, bytes] = {}  # by period
        self._asked: Counter[int] = Counter()
        self._lengths: dict[Hashable, list[_Length]] = {}

    def lengths(self, kind: Hashable, start: int, period: int) -> list[_Length] | None:
        """What was found in runs that begin like one; None where that is not worthwhile.

        Args:
            kind: what such runs have in common.
            start: the first record of the run.
            period: of the run, in records.
        """
        if period not in self._changes:
            self._asked[period] += 1
            if self._asked[period] * _WORTHWHILE < len(self._columns[0]):
                return None
            if not self._operands:
                self._operands = array("i", bytes(4 * self._width * len(self._columns[0])))
                for number, column in enumerate(self._columns):
                    self._operands[number :: self._width] = column
                self._leaves = are_leaves(self._operands)
            self._changes[period] = self._all_changes(period)
        low = self._width * start
        first = [x - start if x >= start else -1 for x in self._operands[low : low + self._width * period]]
        return self._lengths.setdefault((kind, tuple(first), self._form(start, 2 * period, period)), [])

    def recall(self, lengths: list[_Length], start: int, end: int, period: int) -> Found | None:
        """What was found in a run that is like that of the records `start .. end-1`; None if there was none."""
        for length in lengths:
            if length.records == end - start if length.is_whole else length.records <= end - start:
                found = length.found.get(self._form(start, length.records, period))
                if found is not None:
                    return found
        return None

    def note(self, lengths: list[_Length], start: int, end: int, period: int, records: int, found: Found) -> None:
        """Remember what was found in a run, about which so many records decided."""
        is_whole = records >= end - start
        records = min(records, end - start)
        if records > _MOST:
            return
        for length in lengths:
            if length[:2] == (records, is_whole):
                break
        else:
            length = _Length(records, is_whole, {})
            lengths[:] = [*lengths[1 - _LENGTHS :], length]
        length.found[self._form(start, records, period)] = found

    def _form(self, start: int, records: int, period: int) -> tuple[bytes, bytes]:
        """Which operands are leaves, and how they change."""
        low, high = self._width * start, self._width * (start + records)
        return self._leaves[low:high], self._changes[period][4 * low : 4 * (high - self._width * period)]

    def _all_changes(self, period: int) -> bytes:
        """By how much each operand differs from the one a period later."""
        operands, width = self._operands, self._width
        step = width * period
        changes = Changes(width * _SOME, width)
        parts = []
        for low in range(0, len(operands) - step, width * _SOME):
            high = min(low + width * _SOME, len(operands) - step)
            parts.append(changes.of(operands[low : high + step], step, (low + step) // width))
        return b"".join(parts)


class Changes:
    """Compares operands, all at once: a large integer has 32 bits for each.

    Args:
        size: how many there are at most.
        width: operands of one record.
    """

    def __init__(self, size: int, width: int) -> None:
        self._each = _as_integer(array("i", [1]) * size)
        positions = array("i", bytes(4 * size))
        for number in range(width):
            positions[number::width] = consecutive(size // width)
        self._positions = _as_integer(positions)

    def of(self, operands: array[int], step: int, position: int) -> bytes:
        """The change from each operand to the one `step` later.

        From a leaf to a record it is how far that lies before its position, and from a record to a leaf it is nothing.

        Args:
            operands: of consecutive records; a copy that may be changed.
            step: a multiple of the width.
            position: of the record of the first later operand.
        """
        size = 32 * (len(operands) - step)
        both = _as_integer(operands)
        ones = (1 << size) - 1
        signs = self._each << 31 & ones
        x, y = both & ones, both >> 32 * step
        at = (self._positions & ones) + (self._each & ones) * position

        def minus(a: int, b: int) -> int:
            return ((a | signs) - (b & (ones ^ signs))) ^ ((a ^ b ^ ones) & signs)

        def everywhere(sign: int) -> int:
            return sign | (sign - (sign >> 31))

        mixed = (x ^ y) & signs
        from_leaf, mixed = everywhere(x & mixed), everywhere(mixed)
        return ((minus(y, x) & (ones ^ mixed)) | (minus(at, y) & from_leaf)).to_bytes(size // 8, "little")


def _as_integer(numbers: array[int]) -> int:
    """Numbers of 32 bits, the first one lowest."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return int.from_bytes(numbers.tobytes(), "little")
