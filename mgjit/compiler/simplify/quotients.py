"""Look up quotients of bytes, such as pixels between 0 and 1, instead of dividing: there are only 256 of them.

    for i: t[i] = x[i] / 255.0
    for i: for j: r[j] += p[i,j] * t[i]        ->        for i: for j: r[j] += p[i,j] * quotients[x[i]]

In the time of a division of vectors a processor executes a dozen other operations, and an array of quotients takes
place in the first cache.

1. A scratch array holds quotients if all that is written to it are elements of an argument of bytes divided by a
   constant, the same one everywhere, at places that are as far from those of the bytes everywhere.
2. All reads of it must be of single elements: in lanes, each lane would look up its own.  Nor may they be many for
   each quotient.
3. The 256 quotients are appended to the constants.  Reads become look-ups by the byte, and the array is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ...ir.nest import executions
from ...ir.operations import compute
from ...ir.program import (
    Array,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Operand,
    Program,
    Reference,
    Statement,
    arrays_read,
    leaf_operands,
    statements,
    writes,
)
from ...ir.rewrite import registers_used, rewrite_operands, with_surroundings
from .simplify import delete_dead_statements

#: The values of a byte.
_VALUES = 256
#: How often a quotient may be looked up, at most: each time takes longer than to read it from an array.
_MOST_LOOK_UPS = 16

Placed = tuple[Statement, tuple[Loop, ...]]


class Quotients(NamedTuple):
    """What an array holds: element `k` is element `k + ahead` of `bytes` over the divisor."""

    bytes: Array
    divisor: float
    ahead: int


def look_up_quotients(program: Program) -> None:
    """Replace arrays of quotients of bytes by tables, in place."""
    if program.separate or program.given:  # the argument may be another one when the next phase runs, or be longer
        return
    placed = [one for _, phase in program.phases for one in with_surroundings(phase)]
    written: dict[Array, list[Placed]] = {}
    for statement, loops in placed:
        for array, _ in writes(statement):
            written.setdefault(array, []).append((statement, loops))
    for array, writers in written.items():
        found = {_quotients(statement) for statement, _ in writers}
        quotients = found.pop()
        if quotients is not None and not found and _are_looked_up(array, writers, placed):
            _look_up(array, quotients, program)
            delete_dead_statements(program)


def _quotients(statement: Statement) -> Quotients | None:
    """What an array holds after a statement; None if it is anything else."""
    target = statement.target
    if statement.operation != "divide" or statement.update or not isinstance(target, Reference):
        return None
    byte, divisor = statement.operands
    if target.array.space != "scratch" or not isinstance(byte, Load) or not isinstance(divisor, Constant):
        return None
    source = byte.reference
    if source.array.space != "input" or source.array.format != "B" or not divisor.value:
        return None
    is_plain = _is_plain(source.index) and _is_plain(target.index)
    if not is_plain or Counter(source.index.terms) != Counter(target.index.terms):
        return None
    return Quotients(source.array, divisor.value, source.index.base - target.index.base)


def _is_plain(index: Index) -> bool:
    return index.table is None and index.dynamic is None


def _are_looked_up(array: Array, writers: Sequence[Placed], placed: Sequence[Placed]) -> bool:
    """Whether all that is read are single elements of an array, and not too often."""
    ranges = [_range(place) for writer, _ in writers for _, place in writes(writer) if place is not None]
    first, last = min(low for low, _ in ranges), max(high for _, high in ranges)
    own, reads = {writer for writer, _ in writers}, 0
    for statement, around in placed:
        places = [
            part.reference.index
            for operand in statement.operands
            for part in leaf_operands(operand)
            if isinstance(part, Load) and part.reference.array is array
        ]
        if len(places) < sum(read is array for read in arrays_read(statement)) or own & {*registers_used(statement)}:
            return False  # read in a way that is not looked into
        for place in places:
            low, high = _range(place)
            if not _is_plain(place) or any(loop.lanes for loop, _ in place.terms) or low < first or high > last:
                return False
            reads += executions([loop for loop in around if not loop.lanes])
    return reads <= _MOST_LOOK_UPS * sum(executions(loops) for _, loops in writers)


def _range(index: Index) -> tuple[int, int]:
    """The first and the last element."""
    spans = [step * (loop.count - 1) for loop, step in index.terms]
    return index.base + sum(min(0, span) for span in spans), index.base + sum(max(0, span) for span in spans)


def _look_up(array: Array, quotients: Quotients, program: Program) -> None:
    """Let all that reads an array look up its elements."""
    start, table = len(program.constants), _constants(program)
    numbers = [compute("divide", [float(k), quotients.divisor], program.precision) for k in range(_VALUES)]
    program.constants.extend(numbers)
    table.size = len(program.constants)

    def looked_up(operand: Operand) -> Operand:
        if not isinstance(operand, Load) or operand.reference.array is not array:
            return operand
        index = operand.reference.index
        byte = Load(Reference(quotients.bytes, index._replace(base=index.base + quotients.ahead)))
        return Load(Reference(table, Index(start, (), None, Dynamic(byte, 1, _VALUES))))

    for _, phase in program.phases:
        for statement in statements(phase):
            rewrite_operands(statement, looked_up)


def _constants(program: Program) -> Array:
    """The array of constants."""
    read = (used for _, phase in program.phases for one in statements(phase) for used in arrays_read(one))
    return next((used for used in read if used.space == "constant"), None) or Array("constants", "constant", 0)
