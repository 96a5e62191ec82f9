"""Turn a short step into straight-line code, in which elements of memory are numbers in registers.

A step of a hundred operations takes less time than a processor needs to get what it has just stored in another form,
such as numbers of four sums as one vector.  It is best without loops and vectors:

1. Every loop is unrolled; entries of index tables become numbers.  What is left are elements of arrays at fixed places,
   except for run-time indices.
2. Each update becomes a definition, so that every load of what was computed before can become a register.
3. What gradients begin with is left out where that changes no bit (zeros.py), because a step takes as long as its
   longest chain.

The loop over the rows of `.loop` can then keep short arrays in registers from one step to the next (codegen/rows.py).
There, what was the same statement in several iterations can become one for a vector (superwords.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.program import (
    Block,
    Index,
    Load,
    Loop,
    Mixed,
    Node,
    Operand,
    Program,
    Reference,
    Statement,
    TableEntry,
    TargetMixed,
    statements,
)
from ...ir.rewrite import rewrite_operands
from ...ir.substitute import Substitution, copy_nodes
from ..simplify.common import share
from ..simplify.registers import use_registers
from ..simplify.simplify import delete_dead_statements, forget_gradients
from ..simplify.zeros import drop_zeros
from .superwords import pack_statements

#: Steps of more operations have enough to do for vectors, and take their time to compile.
MOST_STATEMENTS = 240
#: Longer traces are not tried.
MOST_RECORDS = 200


def is_short(program: Program) -> bool:
    """Whether a Program has few operations, all iterations of its loops counted, and is complete."""
    return (
        not program.separate
        and not program.given
        and sum(_operations(nodes) for _, nodes in program.phases) <= MOST_STATEMENTS
    )


def _operations(nodes: Sequence[Node]) -> int:
    return sum(
        node.count * _operations(node.body)
        if isinstance(node, Loop)
        else _operations(node.body)
        if isinstance(node, Block)
        else 1
        for node in nodes
    )


def straighten(program: Program, grads: bool, lanes: int = 1) -> None:
    """Make each phase one stretch of statements, in place.

    Args:
        grads: whether gradients can be read after a step.
        lanes: numbers in a vector.
    """
    alike: list[tuple[Statement, ...]] = []
    for _, phase in program.phases:
        phase[:] = _unrolled(phase, program, alike)
        for statement in statements(phase):
            if statement.update and isinstance(statement.target, Reference):
                statement.operands = (Load(statement.target), *statement.operands)
                statement.update = False
    use_registers(program, across_loops=True)
    share(program)
    if not grads:
        forget_gradients(program)
    delete_dead_statements(program)
    drop_zeros(program)
    program.is_straight = True
    pack_statements(program, alike, lanes)


def _unrolled(nodes: Sequence[Node], program: Program, alike: list[tuple[Statement, ...]]) -> list[Statement]:
    """The statements of all iterations; to `alike` are added, of each loop, those that were the same statement."""
    done: list[Statement] = []
    for node in nodes:
        if isinstance(node, Loop):
            place = len(alike)
            copies = (copy_nodes(node.body, Substitution(node, None, 1, k)) for k in range(_count(node, program)))
            iterations = [_unrolled(copy, program, alike) for copy in copies]
            if len({*map(len, iterations)}) == 1:
                alike[place:place] = zip(*iterations)  # outer loops are before inner ones
            done += [s for iteration in (reversed(iterations) if node.reverse else iterations) for s in iteration]
        elif isinstance(node, Block):
            done += _unrolled(node.body, program, alike)
        elif isinstance(node, Statement):
            _resolve(node, program)
            done.append(node)
    return done


def _count(loop: Loop, program: Program) -> int:
    """The iterations of a loop; those around it are unrolled."""
    if loop.bound is None:
        return loop.count
    return loop.bound.base + (0 if loop.bound.table is None else program.tables[loop.bound.table.offset])


def _resolve(statement: Statement, program: Program) -> None:
    """Look up the entries of tables, which are all known now."""

    def entry(place: TableEntry) -> int:
        return program.tables[place.offset]

    def index(given: Index) -> Index:
        return given if given.table is None else given._replace(base=given.base + entry(given.table), table=None)

    def resolved(operand: Operand) -> Operand:
        if isinstance(operand, Load):
            return Load(Reference(operand.reference.array, index(operand.reference.index)))
        if isinstance(operand, Mixed):
            return Load(Reference(operand.arrays[entry(operand.selector)], Index(entry(operand.position))))
        return operand

    rewrite_operands(statement, resolved)
    target = statement.target
    if isinstance(target, Reference):
        statement.target = Reference(target.array, index(target.index))
    elif isinstance(target, TargetMixed):
        chosen = target.arrays[entry(target.selector)]
        statement.target = None if chosen is None else Reference(chosen, Index(entry(target.position)))
