"""Unroll and jam: run several independent reductions at once.

    for j:                                for j in steps of 8:
        r[j] = b[j]                           r[j+0] = b[j+0] ... r[j+7] = b[j+7]
        for i:                                for i:
            r[j] = r[j] + w[j,i] * x[i]  ->       r[j+0] = r[j+0] + w[j+0,i] * x[i]
        t[j] = relu(r[j])                         ...
                                                  r[j+7] = r[j+7] + w[j+7,i] * x[i]
                                              t[j+0] = relu(r[j+0]) ...

A strict sum is a chain of dependent additions: a processor waits several cycles for each.  Eight chains side
by side keep it busy, and no sum changes its order.

1. Candidates are loops whose body holds loops with an accumulator that does not depend on the inner variable.
2. The iterations must be independent: whatever the body writes, each iteration touches elements of its own.
3. The loop is split into steps of `WIDTH` iterations and a rest.  In a step, every node of the body is
   executed for all `WIDTH` iterations before the next node; in the inner loops, for all of them in turn.

Source: "unroll-and-jam", Callahan, Carr, Kennedy, "Improving register allocation for subscripted
variables", PLDI 1990.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.program import (
    Array,
    Block,
    Choice,
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
    TargetMixed,
    leaf_operands,
    statements,
    walk,
)

#: Reductions that run side by side.
WIDTH = 8
#: Bodies of more statements than this are not multiplied.
_LARGEST_BODY = 40


def jam(program: Program) -> None:
    """Unroll and jam where it helps, in place."""
    for _, nodes in program.phases:
        nodes[:] = _jam(nodes)


def _jam(nodes: Sequence[Node]) -> list[Node]:
    done: list[Node] = []
    for node in nodes:
        if isinstance(node, Block):
            node.body = _jam(node.body)
        if isinstance(node, Loop):
            if _helps(node) and _independent(node):
                done += _split(node)
                continue
            node.body = _jam(node.body)
        done.append(node)
    return done


# ---- 1: does it help? -----------------------------------------------------------------------------------


def _helps(loop: Loop) -> bool:
    if loop.count < WIDTH or len(list(statements(loop.body))) > _LARGEST_BODY:
        return False
    inner = [node for node in loop.body if isinstance(node, Loop)]
    nested = any(isinstance(deeper, Loop) for node in inner for deeper in node.body)
    return not nested and any(_accumulates(node) for node in inner)


def _accumulates(loop: Loop) -> bool:
    return any(
        isinstance(node, Statement)
        and node.update
        and isinstance(node.target, Reference)
        and node.target.array.space == "scratch"
        and all(inner is not loop for inner, _ in node.target.index.terms)
        for node in loop.body
    )


# ---- 2: is it legal? ------------------------------------------------------------------------------------


def _independent(loop: Loop) -> bool:
    """Whether every iteration works on elements of its own, and no register leaves a node of the body."""
    if any(isinstance(node, Block) for node in walk(loop.body)):
        return False
    written: set[Array] = set()
    accesses: dict[Array, list[Index]] = {}
    for statement in statements(loop.body):
        if statement.target is not None and not isinstance(statement.target, Reference):
            return False
        if isinstance(statement.target, Reference):
            written.add(statement.target.array)
            accesses.setdefault(statement.target.array, []).append(statement.target.index)
        for part in _parts(statement):
            if isinstance(part, (Choice, Mixed)):
                return False
            if isinstance(part, Load):
                accesses.setdefault(part.reference.array, []).append(part.reference.index)
    return all(_disjoint(accesses[array], loop) for array in written) and not _registers_cross(loop.body)


def _parts(statement: Statement) -> Iterator[Operand]:
    for operand in statement.operands:
        if isinstance(operand, Choice):
            yield operand
        else:
            yield from leaf_operands(operand)


def _disjoint(indices: Sequence[Index], loop: Loop) -> bool:
    """Whether the elements of one iteration lie within less than the step to the next iteration."""
    steps = {dict(index.terms).get(loop, 0) for index in indices}
    outer = {tuple(t for t in index.terms if t[0] is not loop and _is_around(t[0], loop)) for index in indices}
    if len(steps) != 1 or len(outer) != 1 or any(i.table is not None or i.dynamic is not None for i in indices):
        return False
    low = high = indices[0].base
    for index in indices:
        spans = [
            coefficient * (other.count - 1)
            for other, coefficient in index.terms
            if other is not loop and not _is_around(other, loop)
        ]
        low = min(low, index.base + sum(s for s in spans if s < 0))
        high = max(high, index.base + sum(s for s in spans if s > 0))
    return high - low < abs(steps.pop())


def _is_around(other: Loop, loop: Loop) -> bool:
    return not any(node is other for node in walk(loop.body))


def _registers_cross(body: Sequence[Node]) -> bool:
    home = {s: position for position, node in enumerate(body) for s in statements([node])}
    segment, number = {}, 0
    for position, node in enumerate(body):  # neighbouring statements stay together
        if isinstance(node, Loop) or (position and isinstance(body[position - 1], Loop)):
            number += 1
        segment[position] = number
    return any(
        isinstance(part, Register) and segment[home.get(part.statement, position)] != segment[position]
        for position, node in enumerate(body)
        for s in statements([node])
        for part in _parts(s)
    )


# ---- 3: the transformation ---------------------------------------------------------------------------------


def _split(loop: Loop) -> list[Node]:
    steps, rest = divmod(loop.count, WIDTH)
    main = Loop(steps, [], loop.reverse)
    offsets = range(WIDTH - 1, -1, -1) if loop.reverse else range(WIDTH)
    main.body = _for_all(loop.body, loop, main, offsets)
    tail: list[Node] = []
    if rest:
        last = Loop(rest, [], loop.reverse)
        last.body = _copy(loop.body, _Substitution(loop, last, 1, steps * WIDTH))
        tail.append(last)
    return [*tail, main] if loop.reverse else [main, *tail]


def _for_all(body: Sequence[Node], loop: Loop, main: Loop, offsets: Sequence[int]) -> list[Node]:
    done: list[Node] = []
    run: list[Node] = []
    for node in body:
        if isinstance(node, Loop):
            done += _each(run, loop, main, offsets)
            run = []
            inner = Loop(node.count, [], node.reverse)
            for offset in offsets:
                inner.body += _copy(node.body, _Substitution(loop, main, WIDTH, offset, {node: inner}))
            done.append(inner)
        else:
            run.append(node)
    return done + _each(run, loop, main, offsets)


def _each(run: Sequence[Node], loop: Loop, main: Loop, offsets: Sequence[int]) -> list[Node]:
    return [node for offset in offsets for node in _copy(run, _Substitution(loop, main, WIDTH, offset))]


class _Substitution:
    """Replace `loop` by `scale * new + offset`, and other loops by their copies."""

    def __init__(self, loop: Loop, new: Loop, scale: int, offset: int, copies: dict[Loop, Loop] | None = None) -> None:
        self.loop, self.new, self.scale, self.offset = loop, new, scale, offset
        self.copies: dict[Loop, Loop] = dict(copies or {})
        self.registers: dict[Statement, Statement] = {}

    def index(self, index: Index) -> Index:
        """The index with the substitution made."""
        base, terms = index.base, []
        for other, coefficient in index.terms:
            if other is self.loop:
                base += coefficient * self.offset
                terms.append((self.new, coefficient * self.scale))
            else:
                terms.append((self.copies.get(other, other), coefficient))
        table = None if index.table is None else self.entry(index.table)
        dynamic = index.dynamic
        if dynamic is not None:
            dynamic = dynamic._replace(operand=self.operand(dynamic.operand))
        return Index(base, tuple(terms), table, dynamic)

    def entry(self, entry: TableEntry) -> TableEntry:
        """The table entry with the substitution made."""
        moved = self.index(Index(entry.offset, entry.terms))
        return TableEntry(moved.base, moved.terms)

    def operand(self, operand: Operand) -> Operand:
        """The operand with the substitution made."""
        if isinstance(operand, Load):
            return Load(Reference(operand.reference.array, self.index(operand.reference.index)))
        if isinstance(operand, Register):
            return Register(self.registers.get(operand.statement, operand.statement))
        assert not isinstance(operand, (Choice, Mixed))
        return operand

    def target(self, target: Target) -> Target:
        """The target with the substitution made."""
        assert not isinstance(target, (TargetChoice, TargetMixed))
        return None if target is None else Reference(target.array, self.index(target.index))


def _copy(nodes: Sequence[Node], substitution: _Substitution) -> list[Node]:
    copies: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            loop = Loop(node.count, [], node.reverse)
            substitution.copies[node] = loop
            loop.body = _copy(node.body, substitution)
            copies.append(loop)
        elif isinstance(node, Statement):
            operands = tuple(substitution.operand(operand) for operand in node.operands)
            copy = Statement(node.operation, operands, substitution.target(node.target), node.update, node.passes)
            substitution.registers[node] = copy
            copies.append(copy)
    return copies
