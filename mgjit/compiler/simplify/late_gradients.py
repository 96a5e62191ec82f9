"""Compute gradients after everything else, from numbers that are kept: calls can leave that until somebody looks.

    for i: for j: g[i,j] = 0.0 + x[i] * d[j]                  for i: k[i] = x[i]
                  p[i,j] = p[i,j] - rate * g[i,j]      ->     for j: l[j] = d[j]
                                                              for i: for j: p[i,j] = p[i,j] - rate * (0.0 + x[i] * d[j])
                                                    gradients:
                                                              for i: for j: g[i,j] = 0.0 + k[i] * l[j]

Most calls are followed by others, and nobody reads what they have left as gradients.  Writing them takes as long as
reading the parameters, and what has no effect but on them could be left out (codegen/idle.py).

1. A statement that only defines gradients can be late if nothing else in the step reads or writes them.
2. It is computed from what its nest loads: numbers that the nest does not write.  Each of these is copied in front of
   the nest, as often as the loops choose another one.  That must be much less than the gradients are.
3. The gradients are the last phase: the same loops, around what the statement needs alone, which reads the copies.

Executed in order, the phases are the same step as before.  What leaves the last one out until somebody looks is
memory/late.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.builders import nested, row_major
from ...ir.dependence import never_meet, plain
from ...ir.domain import has_bounds
from ...ir.nest import executions, loops_of
from ...ir.program import (
    Array,
    Constant,
    Index,
    Load,
    Loop,
    Node,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    arrays_written,
    reads,
    statements,
    writes,
)
from ...ir.rewrite import with_surroundings
from ...ir.substitute import Substitution, copy_nodes
from .simplify import delete_dead_statements, without

#: The fewest gradients that are worth it, and how many of them there must be for each number that is kept.
FEWEST, A_KEPT_NUMBER = 1024, 4


def compute_gradients_late(program: Program) -> None:
    """Move gradients into a phase of their own, in place."""
    if program.separate or program.given or program.asks_first:
        return
    nests = list(program.backward)
    accesses = [(s, use) for _, nodes in program.phases for s in statements(nodes) for use in (*reads(s), *writes(s))]
    for nest in nests:
        if isinstance(nest, Loop) and executions_of(nest) >= FEWEST and not has_bounds([nest]):
            late = _Late(nest, accesses)
            if late.is_worth_it():
                place = program.backward.index(nest)
                program.backward[place:place] = late.copies(len(program.gradients))
                program.gradients += late.nodes()
    if program.gradients:
        delete_dead_statements(program)


def executions_of(nest: Loop) -> int:
    """How often the innermost statements of a nest are executed, at most."""
    return max((executions(loops) for _, loops in with_surroundings([nest])), default=0)


class _Late:
    """What can be late of a nest.

    Args:
        nest: a loop of the backward phase.
        accesses: every access of the Program, with its statement.
    """

    def __init__(self, nest: Loop, accesses: Sequence[tuple[Statement, tuple[Array, Index | None]]]) -> None:
        self._nest, self._accesses = nest, accesses
        self._around = dict(with_surroundings([nest]))
        self._written = {array for s in self._around for array in arrays_written(s)}
        #: What is to be computed late, with what it needs.
        self._needed: set[Statement] = set()
        #: The statements that write gradients.
        self._last: list[Statement] = []
        #: For each number that is loaded, the loops that choose it, outermost first.
        self._loads: dict[Load, tuple[Loop, ...]] = {}
        self._kept: dict[Load, Load] = {}
        for statement, loops in self._around.items():
            if executions(loops) >= FEWEST and self._is_alone(statement):
                self._take(statement)

    def is_worth_it(self) -> bool:
        """Whether there are many more gradients than numbers to keep."""
        gradients = sum(executions(self._around[one]) for one in self._last)
        return gradients > 0 and gradients >= A_KEPT_NUMBER * sum(map(executions, self._loads.values()))

    # ---- 1 --------------------------------------------------------------------------------------------------------

    def _is_alone(self, statement: Statement) -> bool:
        """Whether a statement defines gradients that nothing else accesses."""
        target = statement.target
        if statement.update or not isinstance(target, Reference) or target.array.space != "gradient":
            return False
        index = plain(target.index)
        others = [plain(i) for s, (array, i) in self._accesses if array is target.array and s is not statement]
        return index is not None and all(other is not None and never_meet(index, other) for other in others)

    # ---- 2 --------------------------------------------------------------------------------------------------------

    def _take(self, last: Statement) -> None:
        """Let a statement be late, if what it is computed from can be kept."""
        needed: set[Statement] = set()
        loads: dict[Load, tuple[Loop, ...]] = {}
        work = [last]
        while work:
            statement = work.pop()
            if statement in needed:
                continue
            needed.add(statement)
            if statement.update or statement not in self._around:
                return
            for operand in statement.operands:
                if isinstance(operand, Register):
                    work.append(operand.statement)
                elif isinstance(operand, Load) and self._can_be_kept(operand):
                    chosen = loops_of(operand.reference.index)
                    loads[operand] = tuple(loop for loop in self._around[statement] if loop in chosen)
                elif not isinstance(operand, Constant):
                    return
        self._last.append(last)
        self._needed |= needed
        self._loads.update(loads)

    def _can_be_kept(self, operand: Operand) -> bool:
        """Whether a number is the same in front of the nest, where none of its registers is known."""
        if not isinstance(operand, Load) or operand.reference.array in self._written:
            return isinstance(operand, Constant)
        dynamic = operand.reference.index.dynamic
        return dynamic is None or self._can_be_kept(dynamic.operand)

    def copies(self, number: int) -> list[Node]:
        """The nodes that keep the numbers, in arrays with names of their own."""
        found: list[Node] = []
        for load, loops in self._loads.items():
            terms, size = row_major(loops)
            kept = Array(f"late{number}_{len(self._kept)}", "scratch", size, shape=tuple(loop.count for loop in loops))
            self._kept[load] = Load(Reference(kept, Index(0, terms)))
            own = Substitution()
            inner = [own.loop_copy(loop) for loop in loops]
            for loop in inner:
                loop.reverse = False
            target = own.target(Reference(kept, Index(0, terms)))
            found += nested(inner, [Statement("copy", (own.operand(load),), target)])
        return found

    # ---- 3 --------------------------------------------------------------------------------------------------------

    def nodes(self) -> list[Node]:
        """The nest of the gradients, which the nest in the backward phase does not write any more."""
        own = Substitution()
        nodes = copy_nodes([self._nest], own)
        late = {own.registers[statement]: statement in self._last for statement in self._needed}
        nodes = without(nodes, set(statements(nodes)) - set(late))
        kept = {own.operand(load): own.operand(copy) for load, copy in self._kept.items()}
        for statement, writes_gradients in late.items():
            statement.operands = tuple([kept.get(operand, operand) for operand in statement.operands])
            if not writes_gradients:
                statement.target = None
        for statement in self._last:
            statement.target = None
        return nodes
