"""Copy what nests read with long steps into an array where their vector loop reads it at consecutive places.

    for b: for i: for j: e[b,i] = e[b,i] + d[b,j] * p[16 i + j]

                          ->      for j: for i: packed[j,i] = p[16 i + j]
                                  for b: for i: for j: e[b,i] = e[b,i] + d[b,j] * packed[j,i]

1. The array gets one element for every iteration of the loops of the nest that the access depends on, the vector loop
   last, and room for whole vectors.
2. The copy is made right before the first nest that needs it; later ones that read the same elements in the same
   pattern use it as well, until something writes the array.

Source: "packing", K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", TOMS 2008.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..ir.program import (
    Array,
    Index,
    Load,
    Loop,
    Node,
    Operand,
    PaddedRows,
    Reference,
    Statement,
    Term,
    statements,
    walk,
)
from .cost import pattern
from .rewrite import rewrite_operands
from .substitute import Substitution


class Packer:
    """Makes packed arrays and knows which are valid."""

    def __init__(self, lanes: int, counter: list[int] | None = None) -> None:
        self._lanes = lanes
        self._counter = [0] if counter is None else counter
        self._valid: dict[object, Array] = {}

    def inside(self, written: Iterable[Array]) -> Packer:
        """For the body of a loop: what is valid there, whose copies end with an iteration."""
        inner = Packer(self._lanes, self._counter)
        inner._valid = dict(self._valid)
        inner.forget(written)
        return inner

    def forget(self, written: Iterable[Array]) -> None:
        """These arrays have been written: copies of them are out of date."""
        changed = set(written)
        self._valid = {key: array for key, array in self._valid.items() if key[0][0] not in changed}  # type: ignore[index]

    def pack(self, nest: Sequence[Node], vector: Loop, reads: Sequence[Reference]) -> list[Node]:
        """Redirect `reads` to packed arrays, in place; the loops that fill those that are new.

        Args:
            nest: the nodes that read.
            vector: the loop that gets consecutive places.
            reads: what to pack.
        """
        inside = {node for node in walk(nest) if isinstance(node, Loop)}
        filling: list[Node] = []
        place: dict[Reference, Reference] = {}
        for reference in dict.fromkeys(reads):
            steps = dict(reference.index.terms)
            others = [loop for loop in steps if loop in inside and loop is not vector]
            others.sort(key=lambda loop: (-steps[loop], -loop.count))
            outside = frozenset((loop, step) for loop, step in steps.items() if loop not in inside)
            key = pattern(reference), outside, (steps[vector], vector.count), tuple(loop.count for loop in others)
            array = self._valid.get(key)
            if array is None:
                array = self._valid[key] = self._new_array(others, vector)
                place[reference] = _element(array, others, vector)
                filling.append(_fill(reference, place[reference], [*others, vector]))
            place[reference] = _element(array, others, vector)

        def replace(operand: Operand) -> Operand:
            if isinstance(operand, Load) and operand.reference in place:
                return Load(place[operand.reference])
            return operand

        for statement in statements(nest):
            rewrite_operands(statement, replace)
        return filling

    def _new_array(self, others: Sequence[Loop], vector: Loop) -> Array:
        rows = 1
        for loop in others:
            rows *= loop.count
        pitch = -(-vector.count // self._lanes) * self._lanes
        self._counter[0] += 1
        shape = (*(loop.count for loop in others), vector.count)
        array = Array(f"packed{self._counter[0]}", "scratch", rows * pitch, shape=shape)
        array.padded_rows = (PaddedRows(0, vector.count, pitch, rows),)
        return array


def _element(array: Array, others: Sequence[Loop], vector: Loop) -> Reference:
    terms: list[Term] = [(vector, 1)]
    stride = array.padded_rows[0].pitch
    for loop in reversed(others):
        terms.append((loop, stride))
        stride *= loop.count
    return Reference(array, Index(0, tuple(reversed(terms))))


def _fill(source: Reference, place: Reference, loops: Sequence[Loop]) -> Node:
    copies = {loop: Loop(loop.count, []) for loop in loops}
    substitution = Substitution(copies=copies)
    target = substitution.target(place)
    node: Node = Statement("copy", (substitution.operand(Load(source)),), target)
    for loop in reversed(loops):
        copies[loop].body = [node]
        node = copies[loop]
    return node
