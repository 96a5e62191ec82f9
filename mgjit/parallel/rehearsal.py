"""Compare what a kernel does in the memory of a member with what the step itself does, in the user's objects.

1. The member is loaded into the user's objects, and the step runs a few rows there, as calls of its own.
2. The code for loops runs the same rows on a copy of the member's memory, as it runs all members (memory.py).
3. All numbers that both have left and returned are compared, and the states of generators.

The member is not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..engine.state import zero_array
from ..kernels.side_by_side.memory import Bound, Memory, Piece, Scratch
from ..runtime.kernel import Kernel
from ..runtime.predecessor import first_difference
from ..tracing.call.rows import Rows
from .member import MemberState, Visit

#: How many rows are compared.
ROWS = 3


def member_difference(
    kernel: Kernel, member: MemberState, visit: Visit, rows: Rows, run: Callable[[Sequence[Any]], bool],
    arguments: Sequence[Sequence[Any]],
) -> str:  # fmt: skip
    """How the memory of a member differs from the user's objects after some rows, in words; empty if it does not.

    Args:
        rows: packed. arguments: of each.
        run: makes a call for a row; returns whether it was made by this kernel.
    """
    assert member.memory is not None
    count, width = len(arguments), len(kernel.outputs)
    memory = member.memory.copied()
    visit.load(member)
    expected = kernel.outputs[:0]
    for row in arguments:
        if not run(row):
            return ""
        expected += kernel.outputs
    left = Memory()
    left.take(kernel)
    numbers, states = (None, []) if kernel.draws is None else memory.drawn(kernel, count)
    found = zero_array(count * width, kernel.plan.precision)
    piece = Piece(Bound(kernel, memory), rows.between(0, count), Scratch(kernel, 1), found)
    piece.advance(count, numbers)
    piece.run(0)
    memory.note_drawn(kernel, states)
    if not left.has_same_generators(memory):
        return "the state of a generator is another one"
    slots = range(len(kernel.buffers))
    both = ((left, expected), (memory, found))
    ours, theirs = ([*(one.buffer(kernel, slot) for slot in slots), results] for one, results in both)
    other = first_difference(kernel.code, [*kernel.buffers, expected], kernel.places_in, True, ours, theirs)
    if other is None:
        return ""
    what, number, one, two = other
    return f"number {number} of the {what} memory is {one!r} in single calls, and {two!r} in a member of an ensemble"
