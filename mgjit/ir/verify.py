"""Check that a Program is well formed, as every pass must leave it.

1. Loop variables are used only inside their loops.
2. Registers are used only where their statement has run: earlier in the same body or in one around it, and
   in the same block.
3. Affine indices stay inside their arrays, in every iteration that is executed.
4. Constants are numbers of the precision.
5. Bounds refer to loops around theirs, and are between 0 and the count of their loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import VerificationError
from .domain import extent, full_range, iterations, loops_of_bound, that_matter, value
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
    leaf_operands,
)


def verify(program: Program) -> None:
    """Raise a VerificationError if `program` is not well formed."""
    checker = _Checker(program)
    for _, nodes in program.phases:
        checker.nodes(nodes, program.given, set())
    if program.rotation is not None:
        checker.nodes(program.rotation.nodes, program.given, set())
    if program.row is not None:
        checker.nodes(program.row.nodes, program.given, set())


class _Checker:
    def __init__(self, program: Program) -> None:
        self.program = program

    def nodes(self, nodes: Sequence[Node], loops: tuple[Loop, ...], known: set[Statement]) -> None:
        known = set(known) if len(loops) > len(self.program.given) or known else known
        for node in nodes:
            if isinstance(node, Loop):
                self.require(node not in loops, "a loop inside itself")
                self.bound(node, loops)
                self.nodes(node.body, (*loops, node), known)
            elif isinstance(node, Block):
                self.nodes(node.body, loops, set())
            elif isinstance(node, Backward):
                self.operand(node.root, loops, known)
            else:
                for operand in node.operands:
                    self.operand(operand, loops, known)
                self.target(node.target, loops, known)
                known.add(node)

    def bound(self, loop: Loop, loops: tuple[Loop, ...]) -> None:
        """A loop has between no iteration and as many as it counts."""
        if loop.bound is None:
            return
        self.require(loops_of_bound(loop.bound) <= {*loops}, "a bound by a loop that is not around it")
        counts = {value(loop.bound, variables, self.program.tables) for variables in self.iterations(loops, loop)}
        least, most = min(counts, default=0), max(counts, default=0)
        self.require(least >= 0 and most <= loop.count, f"a loop of {loop.count} iterations has {least} .. {most}")

    def iterations(self, loops: tuple[Loop, ...], loop: Loop) -> Iterator[dict[Loop, int]]:
        """Every iteration in which the bound of a loop is known."""
        return iterations(that_matter(loops, [*loops, loop]), self.program.tables)

    def operand(self, operand: Operand, loops: tuple[Loop, ...], known: set[Statement]) -> None:
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
            # Alternatives are in bounds only where they are taken; their own registers and loops are checked.
            for part in leaf_operands(operand):
                if isinstance(part, Load):
                    self.loops(part.reference.index, loops)
                else:
                    self.operand(part, loops, known)
        elif isinstance(operand, Mixed):
            self.entry(operand.selector, loops)
            self.entry(operand.position, loops)

    def target(self, target: Target, loops: tuple[Loop, ...], known: set[Statement]) -> None:
        if isinstance(target, Reference):
            self.reference(target, loops, known)
        elif isinstance(target, TargetChoice):
            self.require(target.loop in loops, "a choice by a loop that is not around it")
        elif target is not None:
            self.entry(target.selector, loops)
            self.entry(target.position, loops)

    def reference(self, reference: Reference, loops: tuple[Loop, ...], known: set[Statement]) -> None:
        index: Index = reference.index
        self.loops(index, loops)
        if index.dynamic is not None:
            self.operand(index.dynamic.operand, loops, known)
        if index.table is not None:
            return
        low, high = self.widened(index, full_range(index))
        if low < 0 or high >= reference.array.size:  # perhaps only in iterations that are not executed
            found = extent(index.base, index.terms, loops, self.program.tables)
            if found is not None:
                low, high = self.widened(index, found)
                inside = low >= 0 and high < reference.array.size
                self.require(inside, f"elements {low} .. {high} of {reference.array} are accessed")

    def loops(self, index: Index, loops: tuple[Loop, ...]) -> None:
        """An index depends only on loops around it."""
        for loop, _ in index.terms:
            self.require(loop in loops, "an index uses a loop that is not around it")
        if index.table is not None:
            self.entry(index.table, loops)

    @staticmethod
    def widened(index: Index, found: tuple[int, int]) -> tuple[int, int]:
        """The elements from the first to the last one of a range, whatever the run-time part of the index is."""
        dynamic = index.dynamic
        span = 0 if dynamic is None else dynamic.stride * (dynamic.count - 1)
        return found[0] + min(0, span), found[1] + max(0, span)

    def entry(self, entry: TableEntry, loops: tuple[Loop, ...]) -> None:
        for loop, _ in entry.terms:
            self.require(loop in loops, "a table is indexed by a loop that is not around it")

    @staticmethod
    def require(condition: bool, what: str) -> None:
        if not condition:
            raise VerificationError(f"the Program is not well formed: {what}. This is a defect of mgjit.")
