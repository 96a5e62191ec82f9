"""Pad the rows of scratch arrays to whole vectors, so that a vector loop needs no remainder.

    t[i,j] at 50 i + j, j < 50    ->    t[i,j] at 56 i + j, the last 6 of each row unused

1. An array that was made over loops has rows as long as the innermost one; rows of more than half a vector whose
   length is not a multiple of a vector are lengthened.
2. Every access must be plain and stay inside one row: its steps are multiples of the row, or stay within the row.
3. `Array.padded_rows` notes where the padding is, as lift/layout.py does for parameters.  Vectors that go beyond the
   end of a row compute numbers that nobody reads (schedule/vectorise.py).
"""

from __future__ import annotations

from collections import defaultdict

from ...ir.dependence import plain
from ...ir.program import (
    Array,
    Index,
    Load,
    Operand,
    PaddedRows,
    Program,
    Reference,
    Statement,
    Target,
    TargetChoice,
    reads,
    statements,
    writes,
)
from ...ir.rewrite import rewrite_operands


def pad(program: Program, lanes: int) -> None:
    """Lengthen rows of scratch arrays to multiples of `lanes`, in place."""
    indices: defaultdict[Array, set[Index | None]] = defaultdict(set)
    found = [s for _, nodes in program.phases for s in statements(nodes)]
    for statement in found:
        for array, index in (*reads(statement), *writes(statement)):
            indices[array].add(plain(index))
    pitch: dict[Array, int] = {}
    for array, places in indices.items():
        length = array.shape[-1] if array.space == "scratch" and array.shape else 0
        longer = -(-length // lanes) * lanes
        uneven = longer > length > lanes // 2 and array.size % length == 0
        if uneven and all(index is not None and _row_of(index, length) is not None for index in places):
            pitch[array] = longer
    if pitch:
        for statement in found:
            _rewrite(statement, pitch)
        for array, longer in pitch.items():
            length, rows = array.shape[-1], array.size // array.shape[-1]
            array.size = rows * longer
            array.padded_rows = (PaddedRows(0, length, longer, rows),)


def _row_of(index: Index, length: int) -> int | None:
    """The row that an access begins in, if it always stays inside one row."""
    row, column = divmod(index.base, length)
    inside = [c * (loop.count - 1) for loop, c in index.terms if c % length]
    low = column + sum(span for span in inside if span < 0)
    high = column + sum(span for span in inside if span > 0)
    return row if low >= 0 and high < length else None


def _rewrite(statement: Statement, pitch: dict[Array, int]) -> None:
    def moved(reference: Reference) -> Reference:
        array, index = reference
        if array not in pitch:
            return reference
        length = array.shape[-1]
        row, column = divmod(index.base, length)
        terms = tuple((loop, c if c % length else c // length * pitch[array]) for loop, c in index.terms)
        return Reference(array, Index(row * pitch[array] + column, terms))

    def operand(part: Operand) -> Operand:
        return Load(moved(part.reference)) if isinstance(part, Load) else part

    def target(place: Target) -> Target:
        if isinstance(place, Reference):
            return moved(place)
        if isinstance(place, TargetChoice):
            return TargetChoice(place.loop, target(place.first), target(place.rest))
        return place

    rewrite_operands(statement, operand)
    statement.target = target(statement.target)
