"""Helpers shared by several passes: rewriting operands, collecting reads, walking with the loops around."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Callable

from .program import (
    Array,
    Block,
    Choice,
    Load,
    Loop,
    Mixed,
    Node,
    Operand,
    Reference,
    Register,
    Statement,
    Target,
    TargetChoice,
)


def map_operand(operand: Operand, function: Callable[[Operand], Operand]) -> Operand:
    """Apply `function` to the alternatives of an operand and to the operands of its run-time indices."""
    if isinstance(operand, Choice):
        return Choice(operand.loop, map_operand(operand.first, function), map_operand(operand.rest, function))
    if isinstance(operand, Load) and operand.reference.index.dynamic is not None:
        operand = Load(_map_dynamic(operand.reference, function))
    return function(operand)


def map_target(target: Target, function: Callable[[Operand], Operand]) -> Target:
    """Apply `function` to the run-time indices of a target."""
    if isinstance(target, Reference) and target.index.dynamic is not None:
        return _map_dynamic(target, function)
    if isinstance(target, TargetChoice):
        return TargetChoice(target.loop, map_target(target.first, function), map_target(target.rest, function))
    return target


def _map_dynamic(reference: Reference, function: Callable[[Operand], Operand]) -> Reference:
    dynamic = reference.index.dynamic
    assert dynamic is not None
    moved = dynamic._replace(operand=map_operand(dynamic.operand, function))
    return reference._replace(index=reference.index._replace(dynamic=moved))


def rewrite_operands(statement: Statement, function: Callable[[Operand], Operand]) -> None:
    """Apply `function` to every operand of a statement, in place."""
    statement.operands = tuple([map_operand(operand, function) for operand in statement.operands])
    statement.target = map_target(statement.target, function)


def registers_used(statement: Statement) -> Iterator[Statement]:
    """The statements whose registers a statement uses: in operands, alternatives, and run-time indices."""
    found: list[Statement] = []

    def note(operand: Operand) -> Operand:
        if isinstance(operand, Register):
            found.append(operand.statement)
        return operand

    for operand in statement.operands:
        map_operand(operand, note)
    map_target(statement.target, note)
    yield from found


def with_surroundings(
    nodes: Sequence[Node], around: tuple[Loop, ...] = ()
) -> Iterator[tuple[Statement, tuple[Loop, ...]]]:
    """Every statement with the loops around it, outermost first."""
    for node in nodes:
        if isinstance(node, Loop):
            yield from with_surroundings(node.body, (*around, node))
        elif isinstance(node, Block):
            yield from with_surroundings(node.body, around)
        elif isinstance(node, Statement):
            yield node, around


def operand_arrays(operand: Operand) -> Iterator[Array]:
    """Every array that an operand may read."""
    if isinstance(operand, Choice):
        yield from operand_arrays(operand.first)
        yield from operand_arrays(operand.rest)
    elif isinstance(operand, Load):
        yield operand.reference.array
        if operand.reference.index.dynamic is not None:
            yield from operand_arrays(operand.reference.index.dynamic.operand)
    elif isinstance(operand, Mixed):
        yield from operand.arrays
