"""Copy what a nest reads with long steps into an array where the vector loop reads it at consecutive places.

    for b: for i: for j: e[b,i] = e[b,i] + d[b,j] * p[16 i + j]

                          ->      for j: for i: packed[j,i] = p[16 i + j]
                                  for b: for i: for j: e[b,i] = e[b,i] + d[b,j] * packed[j,i]

1. The array gets one element for every iteration of the loops that the access depends on, the vector loop last.
2. The copy is made right before the nest, so nothing in the nest may write the array (passes/cost.py sees to it).

Source: "packing", K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", TOMS 2008.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.program import Load, Loop, Node, Operand, Reference, Statement, statements
from .expand import Arrays
from .rewrite import rewrite_operands
from .substitute import Substitution


def pack(nest: Sequence[Node], loops: Sequence[Loop], vector: Loop, reads: Sequence[Reference], arrays: Arrays) -> list[Node]:
    """Redirect `reads` to packed arrays, in place.

    Args:
        nest: the nodes that read.
        loops: the loops of the nest, outermost first.
        vector: the one that gets consecutive places.
        reads: what to pack.
        arrays: where new arrays come from.

    Returns:
        The loops that fill the packed arrays.
    """
    filling: list[Node] = []
    place: dict[Reference, Reference] = {}
    for reference in dict.fromkeys(reads):
        steps = dict(reference.index.terms)
        own = [loop for loop in loops if loop in steps and loop is not vector] + [vector]
        place[reference] = arrays.over(own)
        filling.append(_fill(reference, place[reference], own))

    def replace(operand: Operand) -> Operand:
        return Load(place[operand.reference]) if isinstance(operand, Load) and operand.reference in place else operand

    for statement in statements(nest):
        rewrite_operands(statement, replace)
    return filling


def _fill(source: Reference, place: Reference, loops: Sequence[Loop]) -> Node:
    copies = {loop: Loop(loop.count, []) for loop in loops}
    substitution = Substitution(copies=copies)
    target = substitution.target(place)
    node: Node = Statement("copy", (substitution.operand(Load(source)),), target)
    for loop in reversed(loops):
        copies[loop].body = [node]
        node = copies[loop]
    return node
