"""Delete dead statements, without changing a bit of any result.

1. Statements on which nothing visible depends are deleted, and loops that become empty.  Visible are parameters,
   gradients, state and outputs.
2. If gradients are not wanted after a step (`grads=False`), assignments to them are deleted from the backward phase of
   a whole step, unless something in the step reads what they write.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ...ir.dependence import never_meet, plain
from ...ir.program import (
    Array,
    Block,
    Loop,
    Node,
    Program,
    Reference,
    Statement,
    arrays_read,
    arrays_written,
    reads,
    statements,
)
from ...ir.rewrite import registers_used

VISIBLE = frozenset({"parameter", "gradient", "state", "output"})


def delete_dead_statements(program: Program) -> None:
    """Delete the statements on which nothing visible depends, in place."""
    writers: defaultdict[Array, list[Statement]] = defaultdict(list)
    work: list[Statement] = []
    for _, nodes in program.phases:
        for statement in statements(nodes):
            visible = False
            for array in arrays_written(statement):
                writers[array].append(statement)
                visible |= array.space in VISIBLE
            if visible:
                work.append(statement)
    useful = set(work)

    def need(statement: Statement) -> None:
        if statement not in useful:
            useful.add(statement)
            work.append(statement)

    while work:
        statement = work.pop()
        for array in arrays_read(statement):
            for writer in writers.pop(array, ()):
                need(writer)
        for used in registers_used(statement):
            need(used)
    dead = {s for _, nodes in program.phases for s in statements(nodes)} - useful
    for _, nodes in program.phases:
        nodes[:] = without(nodes, dead)


def without(nodes: Sequence[Node], dead: set[Statement]) -> list[Node]:
    """The nodes without the dead statements, and without loops that become empty."""
    kept: list[Node] = []
    for node in nodes:
        if isinstance(node, (Loop, Block)):
            node.body = without(node.body, dead)
            if node.body:
                kept.append(node)
        elif node not in dead:
            kept.append(node)
    return kept


# ---- 2: gradients -----------------------------------------------------------------------------------------------


def forget_gradients(program: Program) -> None:
    """Delete assignments to gradients that a whole step does not read, from its backward phase, in place."""
    found = [use for _, nodes in program.phases for s in statements(nodes) for use in reads(s)]
    dead = set()
    for statement in statements(program.backward):
        target = statement.target
        if not isinstance(target, Reference) or target.array.space != "gradient":
            continue
        index = plain(target.index)
        mine = [plain(other) for array, other in found if array is target.array]
        if index is not None and all(other is not None and never_meet(index, other) for other in mine):
            if not statement.update:
                statement.target = None
            dead.add(statement)
    used = {used for s in statements(program.backward) for used in registers_used(s)}
    program.backward = without(program.backward, dead - used)
