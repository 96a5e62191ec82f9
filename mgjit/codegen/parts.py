"""Cut the nodes of a long phase into parts, each a function of its own in C.

Compilers take longer for one long function than for many short ones, and equal parts, such as layers of equal width,
can share a function.

1. A phase may be cut where no register is in use.
2. A nest of many statements is a part by itself, so that it equals others wherever they stand; short ones in between
   are taken together.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.program import Node, Statement, count_statements, statements
from ..passes.rewrite import registers_used

#: Phases of so many statements, or fewer, are one function.
_SHORT = 200
#: So many statements are a part.
_LARGE = 8


def parts_of(nodes: Sequence[Node]) -> list[list[Node]]:
    """The parts of a phase, in order."""
    if count_statements(nodes) <= _SHORT:
        return [list(nodes)]
    found: list[list[Node]] = [[]]
    size = 0
    for group in _groups(nodes):
        own = count_statements(group)
        if found[-1] and (own >= _LARGE or size >= _LARGE):
            found.append([])
            size = 0
        found[-1] += group
        size += own
    return found


def _groups(nodes: Sequence[Node]) -> list[list[Node]]:
    """The shortest stretches that no register crosses."""
    place: dict[Statement, int] = {}
    first = list(range(len(nodes)))  # for each node, the first one that has to be with it
    for number, node in enumerate(nodes):
        for statement in statements([node]):
            for used in registers_used(statement):
                first[number] = min(first[number], place.get(used, number))
            place[statement] = number
    groups: list[list[Node]] = []
    starts: list[int] = []
    for number, node in enumerate(nodes):
        group, start = [node], number
        while first[number] < start:
            group, start = groups.pop() + group, starts.pop()
        groups.append(group)
        starts.append(start)
    return groups
