"""Merge arrays that are read through one operand into one array.

    y[i] = one of t1, t2, t3 [i] * 0.5      ->      y[i] = t1[4 i + 2] * 0.5

Code that does not fold into a loop, such as that for the positions of a sequence, leaves one array per position.  A
loop over positions, such as that of attention over all earlier ones, then reads a different array in each iteration.

1. Scratch arrays that occur in one operand belong to one group, transitively.
2. Each group becomes one array, with its members in the order in which they are written.
3. Operands that read one of several arrays now read one; where the element numbers are affine in the loops, the
   operand becomes a plain load.
4. Loops over positions that read another array in their first iteration read one as well (simplify/successors.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.program import (
    Array,
    Backward,
    Load,
    Mixed,
    Node,
    Operand,
    Program,
    Reference,
    Statement,
    Target,
    TargetChoice,
    arrays_written,
    leaf_operands,
    leaf_targets,
    statements,
    walk,
)
from ...ir.rewrite import map_operand, rewrite_operands
from ..lift.memory import Memory
from .mixed import as_index, entries_of
from .successors import follow_each_other, in_one


def merge(program: Program, memory: Memory) -> None:
    """Merge arrays of a Program that has not been differentiated yet, in place."""
    nodes = program.forward
    kept = {result for result, _ in memory.adjoint_reads}
    for target in (target for s in statements(nodes) for target in leaf_targets(s.target)):
        if not isinstance(target, Reference):
            kept |= {array for array in target.arrays if array is not None}
    groups = [group for group in _groups(nodes) if not kept.intersection(group)]
    place = in_one(groups, _shape)
    if place:
        _rewrite(program, place)
    mixed = {array for operand in _mixed_operands(nodes) for array in operand.arrays}
    follow_each_other(program, kept | mixed, lambda places: _rewrite(program, places))


def _groups(nodes: Sequence[Node]) -> list[list[Array]]:
    """The groups of arrays, each in the order in which its arrays are first written."""
    order = {a: None for s in statements(nodes) for a in arrays_written(s)}
    group_of: dict[Array, set[Array]] = {}
    stays: set[Array] = set()  # read together with memory of another kind
    for mixed in _mixed_operands(nodes):
        if any(array.space != "scratch" for array in mixed.arrays):
            stays.update(mixed.arrays)
        else:
            joined = set(mixed.arrays).union(*(group_of.get(array, set()) for array in mixed.arrays))
            group_of.update(dict.fromkeys(joined, joined))
    groups = {id(group): group for group in group_of.values()}.values()
    return [
        [array for array in order if array in group]
        for group in groups
        if group <= order.keys() and not stays.intersection(group)
    ]


def _mixed_operands(nodes: Sequence[Node]) -> Iterator[Mixed]:
    for node in walk(nodes):
        operands = node.operands if isinstance(node, Statement) else (node.root,) if isinstance(node, Backward) else ()
        for operand in operands:
            for part in leaf_operands(operand):
                if isinstance(part, Mixed):
                    yield part


def _shape(group: Sequence[Array]) -> tuple[int, ...]:
    shapes = {array.shape for array in group}
    return (len(group), *group[0].shape) if len(shapes) == 1 else (sum(array.size for array in group),)


def _rewrite(program: Program, place: dict[Array, tuple[Array, int]]) -> None:
    def moved(reference: Reference) -> Reference:
        array, index = reference
        if array not in place:
            return reference
        merged, start = place[array]
        return Reference(merged, index._replace(base=index.base + start))

    def operand(part: Operand) -> Operand:
        if isinstance(part, Load):
            return Load(moved(part.reference))
        if isinstance(part, Mixed) and part.arrays[0] in place:
            loops, entries = entries_of(part, program.tables)
            merged = place[part.arrays[0]][0]
            numbers = [place[array][1] + position for array, position in entries]
            return Load(Reference(merged, as_index(numbers, loops, program.tables)))
        return part

    def target(written: Target) -> Target:
        if isinstance(written, Reference):
            return moved(written)
        if isinstance(written, TargetChoice):
            return TargetChoice(written.loop, target(written.first), target(written.rest))
        return written

    for node in walk(program.forward):
        if isinstance(node, Statement):
            rewrite_operands(node, operand)
            node.target = target(node.target)
        elif isinstance(node, Backward):
            node.root = map_operand(node.root, operand)
