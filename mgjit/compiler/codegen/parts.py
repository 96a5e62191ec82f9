"""Cut the nodes of a long phase into parts, each a function of its own in C.

Compilers take longer for one long function than for many short ones, and equal parts, such as layers of equal width,
can share a function.

1. Only single statements between the nests have registers that other parts use.  They are no part, but in the function
   that calls the parts, which get the registers as arguments.
2. A nest of many statements is a part by itself, so that it equals others wherever they stand; short ones that follow
   each other are taken together.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.program import Node, Statement, count_copies, statements
from ...ir.rewrite import registers_used

#: Phases of so many statements, or fewer, are one function.
_SHORT = 200
#: So many statements are a part.
_LARGE = 8


def parts_of(nodes: Sequence[Node], may_be_one: bool = True) -> list[list[Node]]:
    """The parts of a phase, and the single statements in between, in order; one part if it is not worth cutting."""
    if may_be_one and count_copies(nodes) <= _SHORT:
        return [list(nodes)]
    found: list[list[Node]] = [[]]
    size = 0
    for node in nodes:
        is_single = isinstance(node, Statement)
        own = 1 if is_single else count_copies([node])
        if found[-1] and (own >= _LARGE or size >= _LARGE or is_single != isinstance(found[-1][0], Statement)):
            found.append([])
            size = 0
        found[-1].append(node)
        size += 0 if is_single else own
    return found


def registers_into(part: Sequence[Node]) -> list[Statement]:
    """The statements outside of a part whose registers it uses, in the order of their use."""
    inside = set(statements(part))
    used = (register for statement in statements(part) for register in registers_used(statement))
    return list(dict.fromkeys(register for register in used if register not in inside))
