"""Operands that become something else while a trace is lifted: places, look-ups, adjoints."""

from __future__ import annotations

from ...ir.program import Choice, Dynamic, Load, Mixed, Operand, Reference, Target, TargetChoice, TargetMixed
from ..roll.forest import LiftError
from .memory import Memory


def as_target(operand: Operand) -> Target:
    """The place that an operand is read from.

    Raises:
        LiftError: it is no place.
    """
    if isinstance(operand, Load):
        return operand.reference
    if isinstance(operand, Choice):
        return TargetChoice(operand.loop, as_target(operand.first), as_target(operand.rest))
    if isinstance(operand, Mixed):
        return TargetMixed(operand.arrays, operand.selector, operand.position)
    raise LiftError(f"not a place: {operand}")


def with_dynamic(operand: Operand, dynamic: Dynamic) -> Operand:
    """An operand that is the first element of a table, as the one that is looked up.

    Raises:
        LiftError: there are tables of several memories.
    """
    if isinstance(operand, Load):
        array_, index = operand.reference
        return Load(Reference(array_, index._replace(dynamic=dynamic)))
    if isinstance(operand, Choice):
        return Choice(operand.loop, with_dynamic(operand.first, dynamic), with_dynamic(operand.rest, dynamic))
    raise LiftError("a look-up in tables of different memories")


def moved_to_adjoint(operand: Operand, memory: Memory, number: int) -> Operand:
    """The adjoint of an operand after so many backward passes.

    Raises:
        LiftError: it has none.
    """
    if isinstance(operand, Load):
        array_, index = operand.reference
        return Load(Reference(memory.adjoint(array_, number), index))
    if isinstance(operand, Choice):
        return Choice(
            operand.loop,
            moved_to_adjoint(operand.first, memory, number),
            moved_to_adjoint(operand.rest, memory, number),
        )
    if isinstance(operand, Mixed):
        return operand._replace(arrays=tuple(memory.adjoint(a, number) for a in operand.arrays))
    raise LiftError("the gradient of something that is no node")
