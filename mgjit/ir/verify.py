"""Check that a Program is well formed, as every pass must leave it.

1. Loop variables are used only inside their loops.
2. Registers are used only where their statement has run: earlier in the same body or in one around it, and
   in the same block.
3. Affine indices stay inside their arrays.
4. Constants are numbers of the precision.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import VerificationError
from .program import (
    Backward,
    Block,
    Choice,
    Constant,
    Index,
    Load,
    Loop,
    Mixed,
    Node,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    Target,
    TargetChoice,
)


def verify(program: Program) -> None:
    """Raise a VerificationError if `program` is not well formed."""
    checker = _Checker(program)
    for _, nodes in program.phases:
        checker.nodes(nodes, frozenset(), set())


class _Checker:
    def __init__(self, program: Program) -> None:
        self.program = program

    def nodes(self, nodes: Sequence[Node], loops: frozenset[Loop], known: set[Statement]) -> None:
        known = set(known) if loops or known else known
        for node in nodes:
            if isinstance(node, Loop):
                self.require(node not in loops, "a loop inside itself")
                self.nodes(node.body, loops | {node}, known)
            elif isinstance(node, Block):
                self.nodes(node.body, loops, set())
            elif isinstance(node, Backward):
                self.operand(node.root, loops, known)
            else:
                for operand in node.operands:
                    self.operand(operand, loops, known)
                self.target(node.target, loops, known)
                known.add(node)

    def operand(self, operand: Operand, loops: frozenset[Loop], known: set[Statement]) -> None:
        if isinstance(operand, Constant):
            value = operand.value
            exact = value != value or self.program.precision.rounded(value) == value
            self.require(exact, f"the constant {value!r} is no {self.program.precision.name}")
        elif isinstance(operand, Register):
            self.require(operand.statement in known, "a register is used where it is not known")
        elif isinstance(operand, Load):
            self.reference(operand.reference, loops, known)
        elif isinstance(operand, Choice):
            self.require(operand.loop in loops, "a choice by a loop that is not around it")
            # Alternatives are in bounds only where they are taken; their own registers are checked.
            for part in (operand.first, operand.rest):
                if isinstance(part, Register):
                    self.operand(part, loops, known)
        elif isinstance(operand, Mixed):
            self.entry(operand.selector, loops)
            self.entry(operand.position, loops)

    def target(self, target: Target, loops: frozenset[Loop], known: set[Statement]) -> None:
        if isinstance(target, Reference):
            self.reference(target, loops, known)
        elif isinstance(target, TargetChoice):
            self.require(target.loop in loops, "a choice by a loop that is not around it")
        elif target is not None:
            self.entry(target.selector, loops)
            self.entry(target.position, loops)

    def reference(self, reference: Reference, loops: frozenset[Loop], known: set[Statement]) -> None:
        index: Index = reference.index
        low, high = self.range(index.base, index.terms, loops)
        if index.dynamic is not None:
            self.operand(index.dynamic.operand, loops, known)
            span = index.dynamic.stride * (index.dynamic.count - 1)
            low, high = low + min(0, span), high + max(0, span)
        if index.table is not None:
            self.entry(index.table, loops)
        else:
            self.require(
                low >= 0 and high < reference.array.size, f"elements {low} .. {high} of {reference.array} are accessed"
            )

    def entry(self, entry: TableEntry, loops: frozenset[Loop]) -> None:
        for loop, _ in entry.terms:
            self.require(loop in loops, "a table is indexed by a loop that is not around it")

    def range(self, base: int, terms: Sequence[tuple[Loop, int]], loops: frozenset[Loop]) -> tuple[int, int]:
        low = high = base
        for loop, coefficient in terms:
            self.require(loop in loops, "an index uses a loop that is not around it")
            span = coefficient * (loop.count - 1)
            low, high = low + min(0, span), high + max(0, span)
        return low, high

    @staticmethod
    def require(condition: bool, what: str) -> None:
        if not condition:
            raise VerificationError(f"the Program is not well formed: {what}. This is a defect of mgjit.")
