"""Remove memory traffic and statements that nobody needs, without changing a bit of any result.

1. A load of what the same iteration has just computed is a register.
2. Statements whose result nothing visible depends on are deleted, and empty loops with them.  Visible are
   parameters, gradients, state and outputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..ir.program import (
    Array,
    Block,
    Constant,
    Load,
    Loop,
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
from .rewrite import map_operand, map_target, operand_arrays, rewrite_operands

VISIBLE = frozenset({"parameter", "gradient", "state", "output"})


def simplify(program: Program) -> None:
    """Both, in place."""
    use_registers(program, across_loops=True)
    delete_dead_statements(program)


# ---- 1: registers -----------------------------------------------------------------------------------------


def use_registers(program: Program, across_loops: bool) -> None:
    """Replace loads of a value by the statement that has just computed it.

    Args:
        program: changed in place.
        across_loops: also where a loop stands between the two, or around the load; not before loops are rearranged.
    """
    _use_registers_in(program.phases, across_loops)
    if program.fused:  # it stands for the last two phases
        _use_registers_in([*program.phases[:1], *program.functions[-1:]], across_loops)
    read = {array for _, nodes in program.functions for s in statements(nodes) for array in arrays_read(s)}
    for _, nodes in program.functions:
        for statement in statements(nodes):
            target = statement.target
            unread = isinstance(target, Reference) and target.array.space == "scratch" and target.array not in read
            if unread and not statement.update:
                statement.target = None


def _use_registers_in(phases: Sequence[tuple[str, list[Node]]], across_loops: bool) -> None:
    definitions: dict[Array, Statement | None] = {}
    for _, nodes in phases:
        for statement in statements(nodes):
            for array in arrays_written(statement):
                single = array not in definitions and not statement.update and array.space == "scratch"
                definitions[array] = statement if single and isinstance(statement.target, Reference) else None
    for _, nodes in phases:
        _use_registers(nodes, {}, definitions, across_loops)


def _use_registers(
    nodes: Sequence[Node],
    known: dict[Array, Statement],
    definitions: dict[Array, Statement | None],
    across_loops: bool,
) -> None:
    known = dict(known)

    def replace(operand: Operand) -> Operand:
        if isinstance(operand, Load):
            statement = known.get(operand.reference.array)
            if statement is not None and statement.target == operand.reference:
                return Register(statement)
        return operand

    for node in nodes:
        if isinstance(node, Loop):
            if not across_loops:
                known.clear()
            _use_registers(node.body, known, definitions, across_loops)
        elif isinstance(node, Block):
            _use_registers(node.body, {}, definitions, across_loops)
        elif isinstance(node, Statement):
            rewrite_operands(node, replace)
            if isinstance(node.target, Reference) and definitions.get(node.target.array) is node:
                known[node.target.array] = node


def forward_copies(nodes: Sequence[Node]) -> None:
    """Replace registers that only hold what memory still holds by loads, so that their users are independent."""
    copied: dict[Statement, Operand] = {}

    def replace(operand: Operand) -> Operand:
        return copied.get(operand.statement, operand) if isinstance(operand, Register) else operand

    for node in nodes:
        if isinstance(node, (Loop, Block)):
            forward_copies(node.body)
        elif isinstance(node, Statement):
            rewrite_operands(node, replace)
        changed = {array for statement in statements([node]) for array in arrays_written(statement)}
        copied = {s: operand for s, operand in copied.items() if not changed & set(operand_arrays(operand))}
        if isinstance(node, Statement) and node.operation == "copy" and not node.update:
            source = node.operands[0]
            if isinstance(source, (Load, Constant)) and not changed & set(operand_arrays(source)):
                copied[node] = source


# ---- 2: dead statements -------------------------------------------------------------------------------------


def delete_dead_statements(program: Program) -> None:
    """Delete what nothing visible depends on."""
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
        for operand in _all_operands(statement):
            if isinstance(operand, Register):
                need(operand.statement)
    dead = {s for _, nodes in program.phases for s in statements(nodes)} - useful
    for _, nodes in program.phases:
        nodes[:] = without(nodes, dead)


def _all_operands(statement: Statement) -> list[Operand]:
    parts = [part for operand in statement.operands for part in leaf_operands(operand)]

    def note(operand: Operand) -> Operand:
        parts.append(operand)
        return operand

    map_target(statement.target, note)
    for operand in statement.operands:
        map_operand(operand, note)
    return parts


def without(nodes: Sequence[Node], dead: set[Statement]) -> list[Node]:
    """The nodes without some statements, and without the loops that are empty then."""
    kept: list[Node] = []
    for node in nodes:
        if isinstance(node, (Loop, Block)):
            node.body = without(node.body, dead)
            if node.body:
                kept.append(node)
        elif node not in dead:
            kept.append(node)
    return kept
