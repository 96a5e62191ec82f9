"""Keep in arrays what one part of a body computes and another part uses, so that the parts can be separated.

    for b:                                    for b:
        v = x[b] * 2.0                            v = x[b] * 2.0
                                     ->           held[b] = v
        for j: t[b,j] = v * y[j]                  for j: t[b,j] = held[b] * y[j]

1. A register crosses when its statement and the statement that uses it are in different parts.
2. Each that crosses gets an array with one element for every iteration of the loops around it, so that any
   order of these iterations stays right.

Source: scalar expansion, D. Padua, M. Wolfe, "Advanced compiler optimizations for supercomputers", CACM 1986.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.builders import row_major
from ...ir.program import Array, Block, Index, Load, Loop, Node, Operand, Reference, Register, Statement, statements
from ...ir.rewrite import registers_used, rewrite_operands, with_surroundings

#: The most elements that such an array may have.
_MOST_ELEMENTS = 1 << 20


class Arrays:
    """Makes scratch arrays with unique names."""

    def __init__(self, prefix: str) -> None:
        self.prefix, self.count = prefix, 0

    def over(self, loops: Sequence[Loop]) -> Reference:
        """The element of a new array that belongs to an iteration of `loops`, the last of them side by side."""
        terms, size = row_major(loops)
        return Reference(self.new(size, tuple(loop.count for loop in loops)), Index(0, terms))

    def new(self, size: int, shape: tuple[int, ...] = ()) -> Array:
        """A new array."""
        self.count += 1
        return Array(f"{self.prefix}{self.count}", "scratch", size, shape=shape)


def crossing_registers(nodes: Sequence[Node], part_of: Mapping[Statement, int]) -> set[Statement]:
    """Statements whose registers are used in another part."""
    return {
        used
        for statement in statements(nodes)
        for used in registers_used(statement)
        if used in part_of and part_of[used] != part_of.get(statement, -1)
    }


def expand_registers(
    nodes: list[Node],
    around: Sequence[Loop],
    part_of: Mapping[Statement, int],
    crossing: set[Statement],
    arrays: Arrays,
) -> bool:
    """Replace registers that cross parts by array elements, in place.

    Args:
        nodes: the parts, one after the other.
        around: the loops around them.
        part_of: the part of each statement.
        crossing: the statements whose registers cross, from `crossing_registers`.
        arrays: makes the new arrays.

    Returns:
        False, with nothing changed, if that would take too much memory.
    """
    place: dict[Statement, Reference] = {}
    for statement, loops in with_surroundings(nodes, tuple(around)):
        if statement in crossing:
            place[statement] = arrays.over(loops)
    if any(reference.array.size > _MOST_ELEMENTS for reference in place.values()):
        return False
    _store(nodes, place)
    for statement in statements(nodes):
        number = part_of.get(statement, -1)

        def replace(operand: Operand, number: int = number) -> Operand:
            if isinstance(operand, Register) and operand.statement in place and part_of[operand.statement] != number:
                return Load(place[operand.statement])
            return operand

        if number >= 0:
            rewrite_operands(statement, replace)
    return True


def _store(nodes: list[Node], place: Mapping[Statement, Reference]) -> None:
    """Insert the assignments to the new arrays."""
    done: list[Node] = []
    for node in nodes:
        done.append(node)
        if isinstance(node, (Loop, Block)):
            _store(node.body, place)
        elif isinstance(node, Statement) and node in place:
            if node.target is None:
                node.target = place[node]
            else:
                done.append(Statement("copy", (Register(node),), place[node], passes=node.passes, origin=node.origin))
    nodes[:] = done
