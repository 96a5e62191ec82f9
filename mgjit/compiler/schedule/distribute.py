"""Split loops whose parts are independent of each other, so that each part can be scheduled separately.

    for b:                                     for b: for j: t[b,j] = ...
        for j: t[b,j] = ...                    for b: for k: for j: g[k,j] = g[k,j] + x[b,k] * t[b,j]
        for k: for j:                    ->    for b: for k: for j: e[b,k] = e[b,k] + p[k,j] * t[b,j]
            g[k,j] = g[k,j] + x[b,k] * t[b,j]
            e[b,k] = e[b,k] + p[k,j] * t[b,j]

1. From the inside out, a body is cut into parts: every loop by itself, and the stretches of statements between
   loops; in a loop of statements only, those that share neither a register nor an array that one of them writes
   (what is cheap to compute is computed once for each of them).
2. Two parts may be executed one after the other, each for all iterations, when no element of an array connects
   different iterations of the two (ir/dependence.py); or, where loops have bounds, no iteration of the first with
   an earlier one of the second.  Parts that may not, or that depend on each other in a circle, stay together.
3. A part is worth a loop of its own when it has independent iterations inside; neighbours that have none stay
   together: `r = b; for i: r = r + ...; t = relu(r)` is one part.
4. Registers that cross from one part to another become array elements (schedule/expand.py).

Source: loop fission (distribution), D. Kuck et al., "Dependence graphs and compiler optimizations", POPL 1981.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ...ir.dependence import independent, may_meet, separable
from ...ir.domain import has_bounds
from ...ir.program import (
    Array,
    Block,
    Loop,
    Node,
    Operand,
    Program,
    Register,
    Statement,
    arrays_read,
    arrays_written,
    has_blocks,
    statements,
)
from ...ir.rewrite import registers_used, rewrite_operands
from ...ir.substitute import Substitution, copy_nodes
from .expand import Arrays, crossing_registers, expand_registers
from .precedence import may_follow

#: Operations that are cheaper to repeat than to keep in memory, in chains up to this length.
_CHEAP = frozenset({"add", "subtract", "multiply", "negate", "copy", "less", "less_equal", "relu"})
_DEEPEST = 2

#: Bodies of more nodes than this are not split.
_MOST_NODES = 2_000


def distribute(program: Program) -> None:
    """Split the loops of every phase, in place."""
    arrays = Arrays("held")
    for _, nodes in program.phases:
        nodes[:] = _distribute(nodes, (), arrays, program.tables)


def _distribute(nodes: Sequence[Node], around: tuple[Loop, ...], arrays: Arrays, tables: Sequence[int]) -> list[Node]:
    done: list[Node] = []
    for node in nodes:
        if isinstance(node, Block):
            node.body = _distribute(node.body, around, arrays, tables)
            done.append(node)
        elif isinstance(node, Loop):
            node.body = _distribute(node.body, (*around, node), arrays, tables)
            done += _split(node, around, arrays, tables)
        else:
            done.append(node)
    return done


def _split(loop: Loop, around: tuple[Loop, ...], arrays: Arrays, tables: Sequence[int]) -> list[Node]:
    """The loop as one loop for each part of its body, or as it is."""
    if len(loop.body) > _MOST_NODES or has_blocks(loop.body):
        return [loop]
    flat = all(isinstance(node, Statement) for node in loop.body)
    if flat:
        _repeat_cheap_ones(loop)
    parts = _in_order(_connected(loop.body) if flat else _stretches(loop.body), loop, tables)
    if not flat:
        parts = _poor_ones_together(parts)
    if len(parts) < 2:
        return [loop]
    part_of = {s: number for number, part in enumerate(parts) for s in statements(part)}
    crossing = crossing_registers(loop.body, part_of)
    if crossing:
        if not expand_registers(loop.body, (*around, loop), part_of, crossing, arrays):
            return [loop]
        return _split(loop, around, arrays, tables)
    done: list[Node] = []
    for part in parts:
        copy = loop.empty_copy()
        copy.body = copy_nodes(part, Substitution(copies={loop: copy}))
        done.append(copy)
    return done


# ---- 1: parts -------------------------------------------------------------------------------------------


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
    return parts


def _connected(body: Sequence[Node]) -> list[list[Node]]:
    """The statements of a body in parts that share no register, ordered by their last statements."""
    part_of: dict[Statement, list[Node]] = {}
    for node in body:
        assert isinstance(node, Statement)
        mine: list[Node] = []
        for used in registers_used(node):
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


def _repeat_cheap_ones(loop: Loop) -> None:
    """Recompute cheap intermediate results for each use, so that they do not tie parts together."""
    written = {array for s in statements(loop.body) for array in arrays_written(s)}
    body: list[Node] = []
    cheap: dict[Statement, Statement] = {}

    def is_cheap(statement: Statement) -> bool:
        return (
            statement.target is None
            and statement.operation in _CHEAP
            and not any(array in written for array in arrays_read(statement))
            and all(used in cheap or used not in own for used in registers_used(statement))
        )

    def use(operand: Operand) -> Operand:
        if not isinstance(operand, Register) or operand.statement not in cheap:
            return operand
        known = cheap[operand.statement]
        copy = Statement(known.operation, known.operands, None, passes=known.passes, origin=known.origin)
        rewrite_operands(copy, use)
        body.append(copy)
        return Register(copy)

    own = set(statements(loop.body))
    for node in loop.body:
        assert isinstance(node, Statement)
        if is_cheap(node) and _depth(node, cheap) <= _DEEPEST:
            cheap[node] = node
        else:
            rewrite_operands(node, use)
            body.append(node)
    loop.body = body


def _depth(statement: Statement, cheap: dict[Statement, Statement]) -> int:
    return 1 + max((_depth(used, cheap) for used in registers_used(statement) if used in cheap), default=0)


def _without_conflicts(parts: list[list[Node]]) -> list[list[Node]]:
    """Join parts if one writes an array that the other accesses, because their statements may alternate."""
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


# ---- 2 and 3: what stays together -----------------------------------------------------------------------------


def _in_order(parts: list[list[Node]], loop: Loop, tables: Sequence[int]) -> list[list[Node]]:
    """The parts in an order in which they may run one after the other; parts for which there is none are joined."""
    count = len(parts)
    after = [0] * count  # bit b of after[a]: b must not come before a
    for first, later in _connected_pairs(parts):
        if _uses(parts[first], parts[later]) or may_meet(parts[first], parts[later]):
            after[first] |= 1 << later
            one, other = parts[first], parts[later]
            if not separable(one, other, loop) and not (
                has_bounds([*one, *other]) and may_follow(one, other, loop, tables)
            ):
                after[later] |= 1 << first
    for middle in range(count):
        bit, beyond = 1 << middle, after[middle]
        after = [row | beyond if row & bit else row for row in after]
    before = [sum(1 << a for a in range(count) if after[a] >> b & 1) for b in range(count)]
    groups: dict[int, list[int]] = {}  # by the set of parts that depend on each other in a circle, as bits
    for number in range(count):
        groups.setdefault((after[number] & before[number]) | 1 << number, []).append(number)
    done: list[list[Node]] = []
    placed = 0
    while groups:
        bits = next(g for g, members in groups.items() if not any(before[a] & ~(placed | g) for a in members))
        done.append([node for a in groups.pop(bits) for node in parts[a]])
        placed |= bits
    return done


def _uses(first: Sequence[Node], later: Sequence[Node]) -> bool:
    own = set(statements(first))
    return any(used in own for s in statements(later) for used in registers_used(s))


def _connected_pairs(parts: Sequence[Sequence[Node]]) -> list[tuple[int, int]]:
    """Pairs of parts that share a register, or an array that one of them writes."""
    touching: defaultdict[Array, list[tuple[int, bool]]] = defaultdict(list)
    owner = {s: number for number, part in enumerate(parts) for s in statements(part)}
    pairs: set[tuple[int, int]] = set()
    for number, part in enumerate(parts):
        written = {a for s in statements(part) for a in arrays_written(s)}
        for array in written | {a for s in statements(part) for a in arrays_read(s)}:
            touching[array].append((number, array in written))
        for statement in statements(part):
            users = {owner.get(used, number) for used in registers_used(statement)}
            pairs |= {(user, number) for user in users if user != number}
    for accesses in touching.values():
        writers = [number for number, writes in accesses if writes]
        for number, _ in accesses:
            pairs |= {(min(number, other), max(number, other)) for other in writers if other != number}
    return sorted(pairs)


def _poor_ones_together(parts: list[list[Node]]) -> list[list[Node]]:
    done: list[list[Node]] = []
    previous_is_poor = False
    for part in parts:
        poor = not any(isinstance(node, Loop) and _has_independent_loop(node) for node in part)
        if poor and previous_is_poor:
            done[-1] += part
        else:
            done.append(part)
        previous_is_poor = poor
    return done


def _has_independent_loop(nest: Loop) -> bool:
    loops = [nest]
    while len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], Loop):
        loops.append(loops[-1].body[0])
    return any(independent(loop, [nest]) for loop in loops)
