"""Vectors that several sums of a loop read: loaded once, into a register, and not again for each use.

    for i: a0 += w[i,0..7] * x[i]           for i: h0 = w[i,0..7]
           a1 += w[i,0..7] * y[i]    ->            a0 += h0 * x[i]
                                                   a1 += h0 * y[i]

Blocks of rows and vectors (schedule/register_block.py) are chosen because they load each vector once for all rows.  On
x86 an instruction may take an operand from memory, and gcc then loads it again in each of those that use it: twelve
products of three vectors and four numbers are twelve loads of vectors instead of three.  With vectors of 64 bytes, of
which a cycle loads one, that is slower by a third where a product and a sum are one operation.  In strict mode they are
two, in whose time the vector is loaded anyway: nothing is held there.

1. Candidates are what at least two statements in lanes read at consecutive places, in a loop without other loops in it
   that keeps sums in registers, from arrays that the loop does not write.
2. Those with the most uses are held, as many as registers are left beside the sums, two numbers and products.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...ir.dependence import plain
from ...ir.program import Load, Loop, Node, Reference, Statement, arrays_written, statements
from ...ir.substitute import Substitution

#: The registers of x86 for vectors of so many bytes.
_REGISTERS = {64: 32, 32: 16, 16: 16}
#: So many are left for what the sums add.
_SPARE = 2

#: A vector in memory: its first element, and how many lanes it has.
Place = tuple[Reference, int]


def place_of(reference: Reference, lane: Loop) -> Place:
    """Where a vector lies."""
    first = Substitution(lane, None, 1, 0).index(reference.index)
    return Reference(reference.array, first), lane.count


def held_vectors(body: Sequence[Node], sums: int, size: int) -> dict[Place, tuple[Reference, Loop]]:
    """The vectors to be held in an iteration of a loop, with a read of each.

    Args:
        body: of the loop, as it is emitted.
        sums: how many are in registers.
        size: of a number, in bytes.
    """
    if any(isinstance(node, Loop) and not node.lanes for node in body):
        return {}
    written = {array for statement in statements(body) for array in arrays_written(statement)}
    uses: Counter[Place] = Counter()
    reads: dict[Place, tuple[Reference, Loop]] = {}
    for lane in body:
        if not isinstance(lane, Loop) or lane.count * size not in _REGISTERS:
            continue
        for statement in statements([lane]):
            for reference in _consecutive(statement, lane):
                if reference.array not in written:
                    place = place_of(reference, lane)
                    uses[place] += 1
                    reads.setdefault(place, (reference, lane))
    widest = max((lanes for _, lanes in uses), default=0)
    left = _REGISTERS.get(widest * size, 0) - sums - _SPARE
    return {place: reads[place] for place, count in uses.most_common(max(0, left)) if count > 1}


def _consecutive(statement: Statement, lane: Loop) -> set[Reference]:
    """What a statement reads as a vector at consecutive places, in any case."""
    return {
        operand.reference
        for operand in statement.operands
        if isinstance(operand, Load)
        and plain(operand.reference.index) is not None
        and dict(operand.reference.index.terms).get(lane) == 1
    }
