"""Iterations of a loop that change nothing because a factor in them is zero, such as a pixel: they can be left out.

    for i: for j: p[i,j] = p[i,j] - rate * (0.0 + x[i] * d[j])

Most pixels of a drawing are zero, and so are many outputs of relu.  Where x[i] is zero, so is the product, if d[j] is
finite; the sum is 0.0, and so is its product with a positive rate; and p - 0.0 is p, also if that is -0.0.  The rows of
such pixels need neither be read nor be written.

1. A factor is an element that only the loop chooses.  It is assumed to be zero, of either sign.
2. What each statement computes then is followed, as far as it is a zero, of which the sign may be known, or what an
   element holds already.
3. Nodes that store nothing but what is there already, and have no registers that others use, are idle; they may
   stand before all other nodes of the loop, which is where they are emitted, below a condition.
4. That rests on numbers that the loop does not change: products with zero need finite ones, and the sign of a zero is
   that of the number that it was multiplied by.  They are looked at once, before the loop.

A processor that has guessed wrong loses the time of about thirty operations, so each iteration must have as many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Union

from ...ir.dependence import may_meet, plain
from ...ir.nest import loops_of
from ...ir.program import (
    Array,
    Constant,
    Load,
    Loop,
    Node,
    Operand,
    Reference,
    Register,
    Statement,
    arrays_written,
    has_blocks,
    statements,
    walk,
)
from ...ir.rewrite import registers_used, with_surroundings

#: The least operations of idle nodes in an iteration, and the fewest iterations.
_LEAST, _FEWEST = 32, 16
#: The most factors that are tried for a loop.
_MOST_TRIED = 4


class Zero(NamedTuple):
    """A zero with a sign, 0 if it may be either; times the sign of a number that is not known yet, if there is one."""

    sign: int = 0
    of: Operand | None = None


class Steady(NamedTuple):
    """A number that the loop does not change, with the loops in it that choose it."""

    operand: Operand
    loops: tuple[Loop, ...]


#: What an operand is if the factor is zero: among them what an element of that place holds; None: anything.
Value = Union[Zero, Constant, Steady, Reference, None]


@dataclass
class Idle:
    """What is idle in a loop when a factor is zero.

    Attributes:
        factor: to be compared with zero in each iteration.
        before: statements without a target.
        nodes: what is idle.
        others: what is not.
        finite: numbers that must be finite, with the loops in the loop that choose them.
        signs: numbers that must be positive (1) or negative (-1).
    """

    factor: Load
    before: list[Node] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    others: list[Node] = field(default_factory=list)
    finite: dict[Operand, tuple[Loop, ...]] = field(default_factory=dict)
    signs: dict[Operand, int] = field(default_factory=dict)


def idle_nodes(loop: Loop) -> Idle | None:
    """What of a loop can be left out in iterations in which a factor is zero; None if that is not worth it."""
    if loop.count < _FEWEST or loop.bound is not None or loop.lanes or sum(map(_work, loop.body)) < _LEAST:
        return None
    inside = {node for node in walk(loop.body) if isinstance(node, Loop)}
    written = {array for statement in statements(loop.body) for array in arrays_written(statement)}
    for factor in _factors(loop, inside, written):
        found = _Following(loop, inside, written, factor).result()
        if sum(map(_work, found.nodes)) >= _LEAST:
            return found
    return None


def _work(node: Node) -> int:
    """The operations of a node, those on vectors counted once."""
    if isinstance(node, Loop):
        return (1 if node.lanes else node.count) * sum(map(_work, node.body))
    return 1


def _factors(loop: Loop, inside: set[Loop], written: set[Array]) -> list[Load]:
    """The first few elements that a loop multiplies by and that it alone chooses, of those that are in it."""
    found: dict[Load, None] = {}
    for statement in statements(loop.body):
        for one in statement.operands if statement.operation == "multiply" else ():
            if isinstance(one, Load) and one.reference.array not in written:
                chosen = loops_of(one.reference.index)
                if loop in chosen and chosen.isdisjoint(inside):
                    found[one] = None
    return list(found)[:_MOST_TRIED]


class _Following:
    """Follows what the statements of a loop compute if a factor is zero."""

    def __init__(self, loop: Loop, inside: set[Loop], written: set[Array], factor: Load) -> None:
        self._loop, self._inside, self._written = loop, inside, written
        self._statements = set(statements(loop.body))
        self._values: dict[Statement, Value] = {}
        self._found = Idle(factor)

    def result(self) -> Idle:
        """What is idle; nothing, if what is not needs its registers, or the other way round."""
        found = self._found
        for node in self._loop.body:
            finite, signs = dict(found.finite), dict(found.signs)
            if self._is_idle(node) and not may_meet(found.others, [node]):
                if not isinstance(node, Statement) or node.target is not None:
                    found.nodes.append(node)
                    continue
                if not may_meet(found.nodes, [node]):
                    found.before.append(node)
                    continue
            found.others.append(node)
            found.finite, found.signs = finite, signs
        return Idle(found.factor) if self._are_tied(found.nodes, found.others) else found

    @staticmethod
    def _are_tied(nodes: Sequence[Node], others: Sequence[Node]) -> bool:
        return any(
            used in inside
            for inside, other in ((set(statements(nodes)), others), (set(statements(others)), nodes))
            for statement in statements(other)
            for used in registers_used(statement)
        )

    def _is_idle(self, node: Node) -> bool:
        """Whether a node stores nothing but what is there already."""
        if not isinstance(node, (Loop, Statement)) or has_blocks([node]):
            return False
        return all(self._keeps(statement, loops) for statement, loops in with_surroundings([node]))

    def _keeps(self, statement: Statement, loops: tuple[Loop, ...]) -> bool:
        operands = [self._value(operand, loops) for operand in statement.operands]
        target = statement.target
        if statement.update:
            operands.insert(0, target if isinstance(target, Reference) else None)
        value = self._values[statement] = self._computed(statement.operation, operands)
        return target is None or (isinstance(target, Reference) and value == target)

    def _value(self, operand: Operand, loops: tuple[Loop, ...]) -> Value:
        if operand == self._found.factor:
            return Zero()
        if isinstance(operand, Constant):
            return Zero(int(math.copysign(1.0, operand.value))) if operand.value == 0.0 else operand
        if isinstance(operand, Register):
            if operand.statement in self._statements:
                return self._values.get(operand.statement)
            return Steady(operand, ())
        if not isinstance(operand, Load):
            return None
        chosen = loops_of(operand.reference.index)
        if plain(operand.reference.index) is None:
            return None
        if self._loop in chosen or operand.reference.array in self._written:
            return operand.reference
        return Steady(operand, tuple(loop for loop in loops if loop in chosen))

    def _computed(self, operation: str, values: Sequence[Value]) -> Value:
        first, second = (*values, None)[:2]
        if operation == "copy":
            return first
        if operation == "multiply":
            return self._product(first, second) if isinstance(first, Zero) else self._product(second, first)
        if operation == "subtract" and isinstance(second, Zero):
            second = Zero(-second.sign, second.of)
        elif operation != "add":
            return None
        if isinstance(first, Zero) and isinstance(second, Zero):
            return Zero(1) if Zero(1) in (first, second) else Zero()
        place, zero = (first, second) if isinstance(first, Reference) else (second, first)
        if not isinstance(place, Reference) or not isinstance(zero, Zero) or not zero.sign:
            return None
        # What is added is -0.0, or what it takes its sign from must be such that it is.
        if zero.of is not None:
            sign = self._found.signs.setdefault(zero.of, -zero.sign)
            return place if sign == -zero.sign else None
        return place if zero.sign < 0 else None

    def _product(self, zero: Value, other: Value) -> Value:
        if not isinstance(zero, Zero):
            return None
        if isinstance(other, Zero):
            return Zero(zero.sign * other.sign) if zero.of is None and other.of is None else Zero()
        if isinstance(other, Constant):
            sign = int(math.copysign(zero.sign, zero.sign * other.value)) if zero.sign else 0
            return Zero(sign, zero.of) if math.isfinite(other.value) else None
        if not isinstance(other, Steady):
            return None
        self._found.finite[other.operand] = other.loops
        if other.loops or zero.of is not None or not zero.sign:
            return Zero()
        return Zero(zero.sign, other.operand)
