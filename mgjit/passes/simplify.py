"""Remove memory traffic and statements that nobody needs, without changing a bit of any result.

1. An adjoint array that one statement fills, each element once, needs no zeros: `d = 0.0; d += c` is
   `d = 0.0 + c` (which differs from `c` when c is -0.0, and is kept unless c cannot be).
2. A load of what the same iteration has just computed is a register.
3. Statements whose result nothing visible depends on are deleted, and empty loops with them.  Visible are
   parameters, gradients, state and outputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..ir.program import (
    Array,
    Block,
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
    arrays_read,
    arrays_written,
    leaf_operands,
    statements,
)
from .rewrite import map_operand, map_target, rewrite_operands, with_surroundings

VISIBLE = frozenset({"parameter", "gradient", "state", "output"})


def simplify(program: Program) -> None:
    """Registers and dead statements, in place (step 1 runs earlier, before loops are split)."""
    use_registers(program)
    delete_dead_statements(program)


# ---- 1: adjoints with one contribution ------------------------------------------------------------------


def merge_single_contributions(program: Program) -> None:
    """Turn zero-then-add into a definition where each element gets exactly one contribution."""
    writers: defaultdict[Array, list[tuple[Statement, tuple[Loop, ...]]]] = defaultdict(list)
    for _, nodes in program.phases:
        for statement, loops in with_surroundings(nodes):
            for array in arrays_written(statement):
                if array.space == "scratch":
                    writers[array].append((statement, loops))
    dead: set[Statement] = set()
    for found in writers.values():
        if len(found) != 2:
            continue
        (zero, zero_loops), (add, add_loops) = found
        if _is_zero(zero) and not _is_zero(add) and _covers(zero, zero_loops, add, add_loops):
            dead.add(zero)
            if add.update:
                add.update = False
                if not _never_negative_zero(add.operands[0], writers):
                    add.operands = (Constant(0.0), *add.operands)
                else:
                    add.operation = "copy"
    if dead:
        for _, nodes in program.phases:
            nodes[:] = _without(nodes, dead)


def _is_zero(statement: Statement) -> bool:
    return (
        statement.operation == "copy"
        and not statement.update
        and statement.operands == (Constant(0.0),)
        and isinstance(statement.target, Reference)
    )


def _covers(zero: Statement, zero_loops: tuple[Loop, ...], add: Statement, add_loops: tuple[Loop, ...]) -> bool:
    """Whether `add` writes each element that `zero` clears exactly once."""
    if not isinstance(add.target, Reference) or not isinstance(zero.target, Reference):
        return False
    if add.update and add.operation != "add":
        return False
    shared = set(zero_loops) & set(add_loops)
    shape = _dense_shape(zero.target.index, [loop for loop in zero_loops if loop not in shared])
    mine = _dense_shape(add.target.index, [loop for loop in add_loops if loop not in shared])
    zero_outer = [term for term in zero.target.index.terms if term[0] in shared]
    add_outer = [term for term in add.target.index.terms if term[0] in shared]
    return shape is not None and shape == mine and zero_outer == add_outer


def _dense_shape(index: Index, loops: Sequence[Loop]) -> tuple[int, int] | None:
    """(first element, number of elements) when the loops visit a contiguous stretch, each element once."""
    if index.table is not None or index.dynamic is not None:
        return None
    coefficients = dict(index.terms)
    size = 1
    pairs = sorted((coefficients.get(loop, 0), loop.count) for loop in loops if loop.count > 1)
    for coefficient, count in pairs:
        if coefficient != size:
            return None
        size *= count
    return index.base, size


def _never_negative_zero(operand: Operand, writers: dict[Array, list[tuple[Statement, tuple[Loop, ...]]]]) -> bool:
    """Whether an operand is an adjoint: 1.0, or a sum that began with 0.0."""
    if not isinstance(operand, Load):
        return False
    found = writers.get(operand.reference.array, [])
    return (
        bool(found)
        and all(
            statement.operands[0] in (Constant(0.0), Constant(1.0))
            or (statement.update and statement.operation == "add")
            for statement, _ in found
        )
        and any(not statement.update for statement, _ in found)
    )


# ---- 2: registers -----------------------------------------------------------------------------------------


def use_registers(program: Program) -> None:
    """Replace loads of a value by the statement that has just computed it."""
    definitions: dict[Array, Statement | None] = {}
    for _, nodes in program.phases:
        for statement in statements(nodes):
            for array in arrays_written(statement):
                single = array not in definitions and not statement.update and array.space == "scratch"
                definitions[array] = statement if single and isinstance(statement.target, Reference) else None
    for _, nodes in program.phases:
        _use_registers(nodes, {}, definitions)
    read = {array for _, nodes in program.phases for s in statements(nodes) for array in arrays_read(s)}
    for _, nodes in program.phases:
        for statement in statements(nodes):
            target = statement.target
            unread = isinstance(target, Reference) and target.array.space == "scratch" and target.array not in read
            if unread and not statement.update:
                statement.target = None


def _use_registers(
    nodes: Sequence[Node],
    known: dict[Array, Statement],
    definitions: dict[Array, Statement | None],
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
            _use_registers(node.body, known, definitions)
        elif isinstance(node, Block):
            _use_registers(node.body, {}, definitions)
        elif isinstance(node, Statement):
            rewrite_operands(node, replace)
            if isinstance(node.target, Reference) and definitions.get(node.target.array) is node:
                known[node.target.array] = node


# ---- 3: dead statements -------------------------------------------------------------------------------------


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
        nodes[:] = _without(nodes, dead)


def _all_operands(statement: Statement) -> list[Operand]:
    parts = [part for operand in statement.operands for part in leaf_operands(operand)]

    def note(operand: Operand) -> Operand:
        parts.append(operand)
        return operand

    map_target(statement.target, note)
    for operand in statement.operands:
        map_operand(operand, note)
    return parts


def _without(nodes: Sequence[Node], dead: set[Statement]) -> list[Node]:
    kept: list[Node] = []
    for node in nodes:
        if isinstance(node, (Loop, Block)):
            node.body = _without(node.body, dead)
            if node.body:
                kept.append(node)
        elif node not in dead:
            kept.append(node)
    return kept
