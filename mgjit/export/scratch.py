"""Scratch arrays that share memory, because one is not used any more when the other begins.

1. An array lives from the first to the last of the outermost nodes of the Program that use it.  Scratch has no contents
   before a call: so nobody reads an array before something was written there.
2. The largest array first, each gets the lowest place where no array lies that lives at the same time.

This is the greedy allocation by size of: Y. Pisarchyk, J. Lee, "Efficient memory management for deep neural net
inference", 2020.
"""

from __future__ import annotations

from ..compiler.codegen.layout import Layout
from ..ir.program import Array, Program, arrays_read, arrays_written, statements


def share_scratch(program: Program, layout: Layout) -> None:
    """Give scratch arrays new places, in place."""
    lives = _lives(program)
    placed: list[tuple[int, Array]] = []
    for array in sorted(layout.offset_of, key=lambda one: -one.size):
        first, last = lives[array]
        start = 0
        for place, other in sorted(
            ((place, other) for place, other in placed if lives[other][0] <= last and first <= lives[other][1]),
            key=lambda one: one[0],
        ):
            if start + array.size <= place:
                break
            start = max(start, place + other.size)
        placed.append((start, array))
    layout.offset_of.update((array, place) for place, array in placed)
    layout.scratch_size = max((place + array.size for place, array in placed), default=0) + 1


def _lives(program: Program) -> dict[Array, tuple[int, int]]:
    """The first and the last of the outermost nodes that use each scratch array."""
    found: dict[Array, tuple[int, int]] = {}
    outermost = [node for _, nodes in program.phases for node in nodes]
    for position, node in enumerate(outermost):
        for statement in statements([node]):
            for array in (*arrays_written(statement), *arrays_read(statement)):
                if array.space == "scratch":
                    found[array] = found.get(array, (position, position))[0], position
    return found
