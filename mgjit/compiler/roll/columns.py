"""Columns of operands over the iteration space of a statement.

Trace positions are affine in the loop variables, so a column is read with strided slices: a row is what one of the
loops runs through, while the others stand still.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...ir.opcodes import KIND_SHIFT
from ...ir.program import Loop
from .forest import Counts

#: How many progressions are kept, to compare rows of operands with.
_PROGRESSIONS = 256


class Dimension(NamedTuple):
    """A loop around a statement: iterations `low .. high-1`, `period` records apart.

    Attributes:
        counts, grows: see `Fold`.
    """

    loop: Loop
    low: int
    high: int
    period: int
    counts: Counts | None = None
    grows: bool = False


def affine_column(
    column: array[int], origin: int, dimensions: Sequence[Dimension], known: frozenset[int]
) -> tuple[int, list[int]] | None:
    """First entry and steps, if the column is affine over its whole iteration space.

    Args:
        known: the dimensions along which it is known to change by the same step everywhere.
    """
    first = column[origin]
    steps = [column[origin + d.period] - first if d.high - d.low > 1 else 0 for d in dimensions]
    counts = [d.high - d.low for d in dimensions]
    unknown = [k for k in range(len(counts)) if k not in known]
    if not unknown:
        return first, steps
    longest = max(unknown, key=counts.__getitem__)
    count, period, step = counts[longest], dimensions[longest].period, steps[longest]
    if abs(step) * count >= 1 << KIND_SHIFT:
        return None  # the kind of operand changes on the way
    last = origin + sum((counts[k] - 1) * dimensions[k].period for k in unknown)
    if column[last] != first + sum((counts[k] - 1) * steps[k] for k in unknown):
        return None  # most columns that are not affine end here
    starts, firsts = [origin], [first]
    for k in unknown:
        if k != longest:
            distances = range(0, counts[k] * dimensions[k].period, dimensions[k].period)
            starts = [start + distance for start in starts for distance in distances]
            firsts = [entry + i * steps[k] for entry in firsts for i in range(counts[k])]
    length = (count - 1) * period + 1
    progressions: dict[int, array[int]] = {}
    for start, expected in zip(starts, firsts):
        if column[start] != expected:
            return None
        entries = column[start : start + length : period]
        progression = progressions.get(expected)
        if progression is None:
            if len(progressions) == _PROGRESSIONS:
                progressions.clear()
            numbers = range(expected, expected + step * count, step) if step else [expected]
            progression = progressions[expected] = array("i", numbers) * (1 if step else count)
        if entries != progression:
            return None
    return first, steps


def rows_of(base: int, dimensions: Sequence[Dimension], strides: Sequence[int]) -> Iterator[tuple[slice, range]]:
    """The trace positions of an iteration space, a row at a time, with the indices of its iterations.

    Args:
        base: the position of the first iteration.
        strides: between the indices of successive iterations of each loop.
    """
    longest = max(dimensions, key=lambda d: d.high, default=None)
    starts = [(base, 0)]
    for d, stride in zip(dimensions, strides):
        if d is not longest:
            starts = [(start + i * d.period, index + i * stride) for start, index in starts for i in range(d.high)]
    if longest is None:
        yield slice(base, base + 1), range(1)
        return
    count, period, stride = longest.high, longest.period, strides[dimensions.index(longest)]
    for start, index in starts:
        yield slice(start, start + count * period, period), range(index, index + count * stride, stride)


def positions_of(base: int, dimensions: Sequence[Dimension]) -> list[int]:
    """Trace positions of the iteration space, in row-major order."""
    positions = [base]
    for d in dimensions:
        positions = [p + i * d.period for p in positions for i in range(d.low, d.high)]
    return positions


def without_affine_dimensions(entries: list[int], counts: list[int]) -> tuple[list[int], list[int | None]]:
    """Drop the dimensions along which a table is affine; returns their steps (None for those that stay)."""
    steps: list[int | None] = []
    for k in range(len(counts)):
        inner = 1
        for count in counts[k + 1 :]:
            inner *= count
        outer_step = inner * counts[k]
        step = entries[inner] - entries[0] if counts[k] > 1 else 0
        kept = [entries[o : o + inner] for o in range(0, len(entries), outer_step)]
        affine = all(
            entries[o + i * inner : o + (i + 1) * inner] == [e + i * step for e in row]
            for o, row in zip(range(0, len(entries), outer_step), kept)
            for i in range(1, counts[k])
        )
        if affine:
            entries = [e for row in kept for e in row]
            steps.append(step)
            counts = [*counts[:k], 1, *counts[k + 1 :]]
        else:
            steps.append(None)
    return entries, steps
