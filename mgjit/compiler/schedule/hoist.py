"""Move expensive operations out of loops in which every iteration would compute the same result.

    for b:                                               for b:
        for i:                                               once[b] = power(total[b], -1.0)
            %1 = power(total[b], -1.0)           ->      for b:
            t[b,i] = multiply(e[b,i], %1)                    for i:
                                                                 t[b,i] = multiply(e[b,i], once[b])

1. The slice of an operation is the statements in the same loops that compute its operands.
2. For each loop, outermost first: an operation in it whose slice reads no array that the loop writes can be computed
   before the loop.  That is worthwhile if the slice does not depend on at least one of the loops that it leaves.
3. The slice is copied into new loops, over those it depends on, in front of the loop.  The result gets an array with
   an element for every iteration of these and of the loops around, so that later passes have nothing new to consider;
   registers.py turns elements into registers where possible.
4. The same slice in front of the same body is computed once.

Nothing is computed that was not: operations leave only loops that always have an iteration.  Loops whose bounds refer
to others do not leave these.

Source: loop-invariant code motion, A. Aho, M. Lam, R. Sethi, J. Ullman, "Compilers", 2006, section 9.5.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...engine.operations import operations
from ...ir.builders import nested
from ...ir.domain import bounding, fewest
from ...ir.nest import executions
from ...ir.program import (
    Array,
    Block,
    Choice,
    Load,
    Loop,
    Mixed,
    Node,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    arrays_read,
    arrays_written,
    leaf_operands,
    statements,
)
from ...ir.rewrite import rewrite_operands, with_surroundings
from ...ir.substitute import Substitution, copy_nodes
from ..simplify.common import bound_key, operand_key
from .expand import Arrays

EXPENSIVE = operations(lambda one: one.cost > 1.0)
"""Operations that take longer than reading a result from memory."""

#: Slices of more statements than this stay where they are: new loops for them would cost as much.
_LONGEST = 8

#: The most elements that a new array may have.
_MOST_ELEMENTS = 1 << 20


def hoist(program: Program) -> None:
    """Move expensive operations out of loops, in place; statements that become unused are left for `simplify`."""
    arrays = Arrays("once")
    for _, nodes in program.phases:
        if any(statement.operation in EXPENSIVE for statement in statements(nodes)):
            nodes[:] = _Body((), arrays, {}, program.tables).nodes(nodes)


class _Made(NamedTuple):
    """A result computed in front of a loop: where it is, over which loops, and which arrays it was computed from."""

    place: Reference
    over: tuple[Loop, ...]
    read: frozenset[Array]


class _Body:
    """Moves operations out of the loops of one body.

    Args:
        around: the loops around the body.
        arrays: makes new arrays.
        moved: where the results of moved statements are.
        tables: the index tables of the Program.
    """

    def __init__(
        self, around: tuple[Loop, ...], arrays: Arrays, moved: dict[Statement, Reference], tables: Sequence[int]
    ) -> None:
        self.around, self.arrays, self.moved, self.tables = around, arrays, moved, tables
        self.made: dict[Hashable, _Made] = {}

    def nodes(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes, with the moved operations in front of each loop."""
        done: list[Node] = []
        for node in nodes:
            if isinstance(node, Loop):
                done += self.out_of(node)
                node.body = self.inside((*self.around, node)).nodes(node.body)
            elif isinstance(node, Block):
                node.body = self.inside(self.around).nodes(node.body)
            written = {array for s in statements([node]) for array in arrays_written(s)}
            self.made = {key: made for key, made in self.made.items() if written.isdisjoint(made.read)}
            done.append(node)
        return done

    def inside(self, around: tuple[Loop, ...]) -> _Body:
        """The body of a loop or a block of this one."""
        return _Body(around, self.arrays, self.moved, self.tables)

    def out_of(self, loop: Loop) -> list[Node]:
        """New loops for everything that can be computed before `loop`."""
        done: list[Node] = []
        around = dict(with_surroundings([loop]))
        written = {array for s in around for array in arrays_written(s)}
        for statement, loops in around.items():
            rewrite_operands(statement, self.in_memory)
            if statement.operation not in EXPENSIVE or statement.update:
                continue
            part = _slice(statement, around)
            if part is None or not written.isdisjoint(_read(part)):
                continue
            over = _with_bounding({one for s in part for operand in s.operands for one in _loops(operand)}, loops)
            if any(fewest(one, self.tables) < 1 for one in loops if one not in over):
                continue
            if executions(loops) > executions(over) and executions((*self.around, *over)) <= _MOST_ELEMENTS:
                done += self.compute(part, over)
                statement.operation, statement.operands = "copy", (Load(self.moved[statement]),)
        return done

    def in_memory(self, operand: Operand) -> Operand:
        """The operand, where the result of a moved statement becomes a load from memory."""
        if isinstance(operand, Register) and operand.statement in self.moved:
            return Load(self.moved[operand.statement])
        return operand

    def compute(self, part: Sequence[Statement], over: tuple[Loop, ...]) -> list[Node]:
        """Loops that execute a slice; none if the same slice is already computed in front of this body."""
        key = _key(part, over)
        known = self.made.get(key)
        if known is not None:
            index = Substitution(copies=dict(zip(known.over, over))).index(known.place.index)
            self.moved[part[-1]] = Reference(known.place.array, index)
            return []
        place = self.moved[part[-1]] = self.arrays.over((*self.around, *over))
        self.made[key] = _Made(place, over, frozenset(_read(part)))
        substitution = Substitution()
        copies = [substitution.loop_copy(one) for one in over]
        nodes = copy_nodes(part, substitution)
        for node in nodes:
            assert isinstance(node, Statement)
            node.target = Reference(place.array, substitution.index(place.index)) if node is nodes[-1] else None
        return nested(copies, nodes)


def _with_bounding(needed: set[Loop], loops: Sequence[Loop]) -> tuple[Loop, ...]:
    """Those of `loops` that are needed, and those to which their bounds refer, directly or not."""
    found = set(needed)
    for one in reversed(loops):
        if one in found:
            found |= bounding([one])
    return tuple(one for one in loops if one in found)


def _slice(statement: Statement, around: Mapping[Statement, object]) -> list[Statement] | None:
    """The statements of `around` that compute a statement, in order; None if they cannot be copied."""
    found: set[Statement] = set()
    work = [statement]
    while work:
        one = work.pop()
        if one in found:
            continue
        found.add(one)
        if one.update or len(found) > _LONGEST:
            return None
        registers = (part.statement for o in one.operands for part in leaf_operands(o) if isinstance(part, Register))
        work += [used for used in registers if used in around]
    return [one for one in around if one in found] if len(found) > 1 else [statement]


def _read(part: Iterable[Statement]) -> Iterator[Array]:
    """The arrays that statements read, apart from the targets of updates."""
    for statement in part:
        yield from arrays_read(Statement(statement.operation, statement.operands))


def _loops(operand: Operand) -> Iterator[Loop]:
    """The loops that an operand depends on."""
    if isinstance(operand, Choice):
        yield operand.loop
        yield from _loops(operand.first)
        yield from _loops(operand.rest)
    elif isinstance(operand, Load):
        index = operand.reference.index
        yield from (loop for loop, _ in index.terms)
        if index.table is not None:
            yield from (loop for loop, _ in index.table.terms)
        if index.dynamic is not None:
            yield from _loops(index.dynamic.operand)
    elif isinstance(operand, Mixed):
        yield from (loop for entry in (operand.selector, operand.position) for loop, _ in entry.terms)


def _key(part: Sequence[Statement], over: Sequence[Loop]) -> Hashable:
    """A key that is equal for slices that compute the same over loops of the same counts."""
    names: dict[object, Hashable] = {}
    for number, loop in enumerate(over):
        names[loop] = number, loop.count, bound_key(loop.bound, names)
    names.update({statement: number for number, statement in enumerate(part)})
    return tuple([(s.operation, tuple([operand_key(operand, names) for operand in s.operands])) for s in part])
