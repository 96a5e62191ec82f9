"""Leave out `0.0 + x` where nothing can tell -0.0 from 0.0.

    d = 0.0 + 2.0 * e             d = 2.0 * e
    t = 0.0 + w * d         ->    t = w * d
    g = 0.0 + x * t               g = 0.0 + x * t

Gradients begin as 0.0, to which contributions are added.  That makes 0.0 of -0.0 and changes nothing else, so of a
chain of such additions and products only the last one matters.

1. A number is never -0.0 if it is another constant, or a sum of which one operand never is: it takes two of them to get
   -0.0.  Squares, comparisons and absolute numbers never are, and an array of scratch memory holds what is written to
   it.  `0.0 + x` counts as x here, since it may be left out.
2. Nothing can tell of which sign a zero is if it is compared, or added to what is never -0.0, or if only zeros of
   another sign come of it, of which nothing can tell either.
3. Of such numbers, and of those that never are -0.0, `0.0 + x` is x.

Both properties are what remains when those are taken away that do not have them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Union

from ...engine.operations import operations
from ...ir.program import (
    Array,
    Choice,
    Constant,
    Load,
    Mixed,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    statements,
)

#: What holds numbers: a statement, as its register, and an array of scratch memory.
Holder = Union[Statement, Array]

_HIDES = operations(lambda one: one.hides_sign)
_PASS_ON = operations(lambda one: one.keeps_sign)


def drop_zeros(program: Program) -> None:
    """Make copies of additions to 0.0, in place, where that changes nothing that anybody can see."""
    every = [s for _, nodes in program.phases for s in statements(nodes)]
    if any(s.target is not None and not isinstance(s.target, Reference) for s in every):
        return
    written: defaultdict[Array, list[Statement]] = defaultdict(list)
    for statement in every:
        if isinstance(statement.target, Reference):
            written[statement.target.array].append(statement)
    scratch = [array for array in written if array.space == "scratch"]
    positive = _remaining([*every, *scratch], lambda one, those: _never_negative(one, those, written))
    uses = _uses(every)
    hidden = _remaining(
        [*every, *scratch],
        lambda one, those: _is_hidden(one, those) and all(_hides(*use, those, positive) for use in uses[one]),
    )
    for statement in every:
        added = _added_to_zero(statement)
        if added is not None and (statement in hidden or _is_positive(added, positive)):
            statement.operation, statement.operands = "copy", (added,)


def _remaining(holders: Sequence[Holder], keeps: Callable[[Holder, set[Holder]], bool]) -> set[Holder]:
    """Those that have a property, as far as the others have it."""
    found, before = set(holders), 0
    while len(found) != before:
        before = len(found)
        for one in holders:
            if one in found and not keeps(one, found):
                found.remove(one)
    return found


def _operands(statement: Statement) -> tuple[Operand, ...]:
    """The operands of a statement, the old content of its target among them."""
    own = statement.update and isinstance(statement.target, Reference)
    return (Load(statement.target), *statement.operands) if own else statement.operands  # type: ignore[arg-type]


def _added_to_zero(statement: Statement) -> Operand | None:
    """What a statement adds to 0.0, if it does that."""
    if statement.operation == "add" and not statement.update:
        for zero, other in (statement.operands, statement.operands[::-1]):
            if isinstance(zero, Constant) and zero.value == 0.0 and math.copysign(1.0, zero.value) > 0.0:
                return other
    return None


# ---- 1: what is never -0.0 --------------------------------------------------------------------------------


def _never_negative(one: Holder, positive: set[Holder], written: Mapping[Array, list[Statement]]) -> bool:
    """Whether a number is never -0.0, if those of `positive` are not."""
    return positive.issuperset(written[one]) if isinstance(one, Array) else _makes_positive(one, positive)


def _makes_positive(statement: Statement, positive: set[Holder]) -> bool:
    operands = _operands(statement)
    found = [_is_positive(operand, positive) for operand in operands]
    if statement.operation in _HIDES:  # the results of which are not negative
        return True
    if statement.operation == "add":
        added = _added_to_zero(statement)
        return any(found) if added is None else _is_positive(added, positive)
    if statement.operation == "multiply":
        return operands[0] == operands[1] and not isinstance(operands[0], (Constant, Choice))
    return statement.operation in ("copy", "relu", "maximum", "minimum") and all(found)


def _is_positive(operand: Operand, positive: set[Holder]) -> bool:
    if isinstance(operand, Constant):
        return operand.value != 0.0 or math.copysign(1.0, operand.value) > 0.0
    if isinstance(operand, Choice):
        return _is_positive(operand.first, positive) and _is_positive(operand.rest, positive)
    return _holder(operand) in positive


def _holder(operand: Operand) -> Holder | None:
    if isinstance(operand, Register):
        return operand.statement
    return operand.reference.array if isinstance(operand, Load) else None


# ---- 2: of what nothing can tell the sign of a zero -------------------------------------------------------


def _uses(every: Sequence[Statement]) -> defaultdict[Holder, list[tuple[Statement, int]]]:
    """For each holder the statements that use it, and as which operand; -1 where it is part of an index."""
    found: defaultdict[Holder, list[tuple[Statement, int]]] = defaultdict(list)

    def note(operand: Operand, statement: Statement, number: int) -> None:
        holder = _holder(operand)
        if holder is not None:
            found[holder].append((statement, number))
        if isinstance(operand, Choice):
            note(operand.first, statement, number)
            note(operand.rest, statement, number)
        elif isinstance(operand, Load) and operand.reference.index.dynamic is not None:
            note(operand.reference.index.dynamic.operand, statement, -1)
        elif isinstance(operand, Mixed):
            for array in operand.arrays:
                found[array].append((statement, -1))

    for statement in every:
        for number, operand in enumerate(_operands(statement)):
            note(operand, statement, number)
        target = statement.target
        if isinstance(target, Reference) and target.index.dynamic is not None:
            note(target.index.dynamic.operand, statement, -1)
    return found


def _is_hidden(one: Holder, hidden: set[Holder]) -> bool:
    """Whether what a statement writes is hidden, if it writes."""
    target = one.target if isinstance(one, Statement) else None
    return not isinstance(target, Reference) or target.array in hidden


def _hides(user: Statement, number: int, hidden: set[Holder], positive: set[Holder]) -> bool:
    """Whether nothing can tell the sign of a zero by what a statement makes of that operand."""
    operation, others = user.operation, [*_operands(user)]
    if number < 0:
        return False
    del others[number]
    if operation in _HIDES or (operation == "select" and number == 0):
        return True
    is_added = operation == "add" or (operation == "subtract" and number == 1)
    if is_added and any(_is_positive(other, positive) for other in others):
        return True
    passes_on = operation in _PASS_ON or operation == "select" or (operation == "divide" and number == 0)
    return passes_on and user in hidden
