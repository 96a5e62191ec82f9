"""Nests of loops: the band of loops at the top, and what is accessed and computed below it.

A band is a chain of loops each of which contains nothing but the next; inside the last one is the body, which may
contain further loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .domain import bounding
from .program import (
    Choice,
    Index,
    Load,
    Loop,
    Mixed,
    Node,
    Operand,
    Reference,
    Register,
    Statement,
    TargetChoice,
    TargetMixed,
    has_blocks,
    leaf_operands,
    leaf_targets,
    walk,
)
from .rewrite import with_surroundings


class Use(NamedTuple):
    """An access of a statement to an array element.

    Attributes:
        statement: what accesses it.
        reference: the element.
        loops: of the nest, around the statement, outermost first.
        writes: whether it is written.
        always: whether every iteration accesses it, which is not so for the alternatives of a Choice.
    """

    statement: Statement
    reference: Reference
    loops: tuple[Loop, ...]
    writes: bool
    always: bool = True


def band(loop: Loop) -> list[Loop]:
    """The band that begins with a loop, outermost first."""
    loops = [loop]
    while len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], Loop):
        loops.append(loops[-1].body[0])
    return loops


@dataclass
class Nest:
    """The facts about a nest that scheduling decisions need.

    Attributes:
        band: the loops at the top, outermost first.
        body: the nodes in the last loop of the band.
        uses: every plain access; an update uses its target twice, for reading and for writing.
        fixed: loops that anything other than an affine index depends on (a choice, a table, a run-time index, a
            bound), and those that have a bound.
        around: the loops of the nest around each statement.
    """

    band: list[Loop]
    body: list[Node]
    uses: list[Use]
    fixed: set[Loop]
    around: dict[Statement, tuple[Loop, ...]]

    @property
    def inner(self) -> list[Loop]:
        """The loops below the band."""
        return [node for node in walk(self.body) if isinstance(node, Loop)]

    def varying(self, loop: Loop) -> set[Statement]:
        """The statements that depend on `loop`, in what they read or where they write."""
        found: set[Statement] = set()
        for statement in self.around:  # in order: a statement comes before those that use its register
            for operand in statement.operands:
                if any(_varies(part, loop, found) for part in leaf_operands(operand)):
                    found.add(statement)
            if any(isinstance(t, Reference) and loop in dict(t.index.terms) for t in leaf_targets(statement.target)):
                found.add(statement)
        return found


def _varies(part: Operand, loop: Loop, found: set[Statement]) -> bool:
    if isinstance(part, Load):
        return loop in dict(part.reference.index.terms)
    return isinstance(part, Register) and part.statement in found


def examine(loop: Loop) -> Nest | None:
    """The nest that begins with `loop`; None if it contains blocks, or targets that are not plain."""
    if has_blocks([loop]):
        return None
    loops = band(loop)
    around = dict(with_surroundings([loop]))
    uses: list[Use] = []
    below = [node for node in walk([loop]) if isinstance(node, Loop)]
    fixed = bounding(below) | {one for one in below if one.bound is not None}
    for statement, inside in around.items():
        fixed |= set(_not_affine(statement))
        if _addresses_by_register(statement):
            fixed |= set(inside)
        uses += [Use(statement, reference, inside, False, always) for reference, always in _reads(statement)]
        target = statement.target
        if isinstance(target, Reference):
            uses.append(Use(statement, target, inside, True))
        elif target is not None:
            return None
    return Nest(loops, loops[-1].body, uses, fixed, around)


def _reads(statement: Statement) -> Iterator[tuple[Reference, bool]]:
    """Every reference that is read, and whether every iteration reads it."""
    for operand in statement.operands:
        for part in leaf_operands(operand):
            if isinstance(part, Load):
                yield part.reference, not isinstance(operand, Choice)
    if statement.update and isinstance(statement.target, Reference):
        yield statement.target, True


def _not_affine(statement: Statement) -> Iterator[Loop]:
    """The loops that a statement depends on in other ways than by an affine index."""
    for operand in statement.operands:
        yield from _of_operand(operand)
    for target in leaf_targets(statement.target):
        if isinstance(target, Reference):
            yield from _of_index(target.index)
        elif isinstance(target, TargetMixed):
            yield from (loop for entry in (target.selector, target.position) for loop, _ in entry.terms)
    if isinstance(statement.target, TargetChoice):
        yield statement.target.loop


def _addresses_by_register(statement: Statement) -> bool:
    """Whether a run-time index is a number computed in the nest, which may differ in every iteration."""
    loads = [p for operand in statement.operands for p in leaf_operands(operand) if isinstance(p, Load)]
    indices = [load.reference.index for load in loads]
    indices += [target.index for target in leaf_targets(statement.target) if isinstance(target, Reference)]
    numbers = [index.dynamic.operand for index in indices if index.dynamic is not None]
    return any(isinstance(part, Register) for number in numbers for part in leaf_operands(number))


def _of_operand(operand: Operand) -> Iterator[Loop]:
    if isinstance(operand, Choice):
        yield operand.loop
        yield from _of_operand(operand.first)
        yield from _of_operand(operand.rest)
    elif isinstance(operand, Mixed):
        yield from (loop for entry in (operand.selector, operand.position) for loop, _ in entry.terms)
    elif isinstance(operand, Load):
        yield from _of_index(operand.reference.index)


def _of_index(index: Index) -> Iterator[Loop]:
    if index.table is not None:
        yield from (loop for loop, _ in index.table.terms)
    if index.dynamic is not None:
        yield from _of_operand(index.dynamic.operand)
        for part in leaf_operands(index.dynamic.operand):
            if isinstance(part, Load):
                yield from (loop for loop, _ in part.reference.index.terms)


def loops_of(index: Index) -> set[Loop]:
    """Every loop that an index depends on, in whatever way."""
    return {loop for loop, _ in index.terms} | set(_of_index(index))


def work(loops: Sequence[Loop]) -> float:
    """How often the body of these loops is executed, about: loops with bounds as often as they are on the average."""
    product: float = 1
    for loop in loops:
        product *= loop.count if loop.bound is None else _usually(loop)
    return product


def _usually(loop: Loop) -> float:
    """The iterations of a loop in the middle of those around it; half of the most, if a table tells."""
    assert loop.bound is not None
    base, terms, table = loop.bound
    if table is not None:
        return loop.count / 2
    return base + sum(
        step * ((other.count if other.bound is None else _usually(other)) - 1) / 2 for other, step in terms
    )


def executions(loops: Sequence[Loop]) -> int:
    """How often the body of these loops is executed."""
    product = 1
    for loop in loops:
        product *= loop.count
    return product
