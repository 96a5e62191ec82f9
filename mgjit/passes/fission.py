"""Split a loop whose statements have nothing to do with each other, so that each part can be arranged by itself.

    for j:                                     for j: d[j] = ...
        d[j] = ...                             for j: for k: g[k,j] = g[k,j] + t[k] * d[j]
        for k:                             ->  for j: for k: e[k] = e[k] + p[k,j] * d[j]
            g[k,j] = g[k,j] + t[k] * d[j]
            e[k] = e[k] + p[k,j] * d[j]

1. Inner loops are split first: statements that share a register, or an array that one of them writes, stay
   together, others become loops of their own.
2. The parts of a body may be executed one after the other, each for all iterations, when no element of an
   array connects different iterations of two of them (passes/dependence.py).
3. A split is made only where a caller has use for one of the parts.

Source: loop fission (distribution), D. Kuck et al., "Dependence graphs and compiler optimizations", POPL 1981.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.program import (
    Loop,
    Node,
    Register,
    Statement,
    arrays_read,
    arrays_written,
    leaf_operands,
    statements,
)
from .dependence import separable
from .substitute import Substitution, copy_nodes

#: Bodies of more nodes than this are not looked at: the cost grows with the square.
_MOST_NODES = 24


def fission(loop: Loop) -> list[Loop]:
    """The loops that a loop can be split into, in order; one when it cannot be split."""
    body: list[Node] = []
    for node in loop.body:
        inner = _split(node, _connected(node.body)) if isinstance(node, Loop) and _is_flat(node) else [node]
        body += inner
    return _split(loop, _stretches(body)) if len(body) <= _MOST_NODES else [loop]


def _is_flat(loop: Loop) -> bool:
    return all(isinstance(node, Statement) for node in loop.body) and len(loop.body) <= _MOST_NODES


def _split(loop: Loop, parts: Sequence[Sequence[Node]]) -> list[Loop]:
    """The loop as one loop for each part of its body, or as it is."""
    for position, part in enumerate(parts):
        if not all(separable(part, later, loop) for later in parts[position + 1 :]):
            return [loop]
    split = []
    for part in parts:
        copy = Loop(loop.count, [], loop.reverse)
        copy.body = copy_nodes(part, Substitution(copies={loop: copy}))
        split.append(copy)
    return split if len(split) > 1 else [loop]


def _connected(body: Sequence[Node]) -> list[list[Node]]:
    """The statements of a body in parts that share no register, each in order, by the place of their last statement."""
    part_of: dict[Statement, list[Node]] = {}
    for node in body:
        assert isinstance(node, Statement)
        mine: list[Node] = []
        for used in _registers(node):
            other = part_of.get(used)
            if other is not None and other is not mine:
                mine += other
                part_of.update({statement: mine for statement in other if isinstance(statement, Statement)})
        mine.append(node)
        part_of[node] = mine
    order = {node: position for position, node in enumerate(body)}
    parts = _without_conflicts(list({id(part): part for part in part_of.values()}.values()))
    for part in parts:
        part.sort(key=order.__getitem__)
    return sorted(parts, key=lambda part: order[part[-1]])


def _without_conflicts(parts: list[list[Node]]) -> list[list[Node]]:
    """Join parts when one writes an array that the other accesses: their statements may alternate."""
    done: list[list[Node]] = []
    for part in parts:
        joined = list(part)
        for other in list(done):
            if _conflict(joined, other):
                done.remove(other)
                joined = other + joined
        done.append(joined)
    return done if len(done) == len(parts) else _without_conflicts(done)


def _conflict(one: Sequence[Node], other: Sequence[Node]) -> bool:
    written = [{a for s in statements(part) for a in arrays_written(s)} for part in (one, other)]
    read = [{a for s in statements(part) for a in arrays_read(s)} for part in (one, other)]
    return bool(written[0] & (written[1] | read[1]) or written[1] & read[0])


def _registers(statement: Statement) -> list[Statement]:
    return [
        part.statement
        for operand in statement.operands
        for part in leaf_operands(operand)
        if isinstance(part, Register)
    ]


def _stretches(body: Sequence[Node]) -> list[list[Node]]:
    """The body in parts: every loop by itself, and the stretches of statements between loops."""
    parts: list[list[Node]] = []
    previous: Node | None = None
    for node in body:
        if parts and isinstance(node, Statement) and isinstance(previous, Statement):
            parts[-1].append(node)
        else:
            parts.append([node])
        previous = node
    defined = {s: number for number, part in enumerate(parts) for s in statements(part)}
    crossing = any(
        defined.get(used, number) != number
        for number, part in enumerate(parts)
        for s in statements(part)
        for used in _registers(s)
    )
    return [list(body)] if crossing else parts
