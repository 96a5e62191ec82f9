"""Copies of nodes with loop variables replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .domain import loops_of_bound
from .program import (
    Array,
    Block,
    Bound,
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
    TableEntry,
    Target,
    TargetChoice,
    TargetMixed,
)


class Substitution:
    """Replace loops by their copies, and possibly one `loop` by `scale * new + lane + offset`.

    `new` and `lane` are loops; either may be missing.  If both are, `loop` is fixed to iteration `offset`, which also
    resolves Choices by it.
    """

    def __init__(
        self,
        loop: Loop | None = None,
        new: Loop | None = None,
        scale: int = 1,
        offset: int = 0,
        copies: Mapping[Loop, Loop] | None = None,
        lane: Loop | None = None,
    ) -> None:
        self.loop, self.new, self.scale, self.offset, self.lane = loop, new, scale, offset, lane
        self.copies: dict[Loop, Loop] = dict(copies or {})
        self.registers: dict[Statement, Statement] = {}

    def array(self, array: Array) -> Array:
        """The array in place of another one; subclasses may replace it."""
        return array

    def index(self, index: Index) -> Index:
        """The index after the substitution."""
        base = index.base
        terms: list[tuple[Loop, int]] = []
        for other, coefficient in index.terms:
            if other is self.loop:
                base += coefficient * self.offset
                if self.new is not None:
                    terms.append((self.new, coefficient * self.scale))
                if self.lane is not None:
                    terms.append((self.lane, coefficient))
            else:
                terms.append((self.copies.get(other, other), coefficient))
        table = None if index.table is None else self.entry(index.table)
        dynamic = index.dynamic
        if dynamic is not None:
            dynamic = dynamic._replace(operand=self.operand(dynamic.operand))
        return Index(base, tuple(terms), table, dynamic)

    def loop_copy(self, loop: Loop) -> Loop:
        """An empty copy of a loop that is known to be a copy from now on, its bound after the substitution."""
        copy = self.copies[loop] = loop.empty_copy()
        if loop.bound is not None:
            assert self.lane is None or self.loop not in loops_of_bound(loop.bound), "lanes are executed equally often"
            base, terms, table, _ = self.index(Index(*loop.bound))
            if terms or table is not None:
                copy.bound = Bound(base, terms, table)
            else:
                copy.count, copy.bound = base, None
        return copy

    def entry(self, entry: TableEntry) -> TableEntry:
        """The table entry after the substitution."""
        moved = self.index(Index(entry.offset, entry.terms))
        return TableEntry(moved.base, moved.terms)

    def operand(self, operand: Operand) -> Operand:
        """The operand after the substitution."""
        if isinstance(operand, Load):
            return Load(Reference(self.array(operand.reference.array), self.index(operand.reference.index)))
        if isinstance(operand, Register):
            return Register(self.registers.get(operand.statement, operand.statement))
        if isinstance(operand, Choice):
            if operand.loop is self.loop:
                assert self.new is None, "a choice cannot be split into steps"
                return self.operand(operand.rest if self.offset else operand.first)
            loop = self.copies.get(operand.loop, operand.loop)
            return Choice(loop, self.operand(operand.first), self.operand(operand.rest))
        if isinstance(operand, Mixed):
            return Mixed(operand.arrays, self.entry(operand.selector), self.entry(operand.position))
        return operand

    def target(self, target: Target) -> Target:
        """The target after the substitution."""
        if isinstance(target, Reference):
            return Reference(self.array(target.array), self.index(target.index))
        if isinstance(target, TargetChoice):
            if target.loop is self.loop:
                assert self.new is None, "a choice cannot be split into steps"
                return self.target(target.rest if self.offset else target.first)
            loop = self.copies.get(target.loop, target.loop)
            return TargetChoice(loop, self.target(target.first), self.target(target.rest))
        if isinstance(target, TargetMixed):
            return TargetMixed(target.arrays, self.entry(target.selector), self.entry(target.position))
        return None


def copy_nodes(nodes: Sequence[Node], substitution: Substitution) -> list[Node]:
    """Copies of the nodes; registers inside refer to the copies."""
    copies: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            loop = substitution.loop_copy(node)
            loop.body = copy_nodes(node.body, substitution)
            if loop.count:  # not for a loop whose bound has become 0
                copies.append(loop)
        elif isinstance(node, Block):
            copies.append(Block(copy_nodes(node.body, substitution)))
        elif isinstance(node, Statement):
            operands = tuple(substitution.operand(operand) for operand in node.operands)
            target = substitution.target(node.target)
            copy = Statement(node.operation, operands, target, node.update, node.passes, node.origin)
            substitution.registers[node] = copy
            copies.append(copy)
    return copies
