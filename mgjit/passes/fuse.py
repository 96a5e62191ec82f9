"""Fuse the update of a parameter into the loops that compute its gradient, for the step as a whole.

    for i: for j: g[i,j] = 0.0 + x[i] * d[j]        for i: for j:
    ...                                        ->       g[i,j] = 0.0 + x[i] * d[j]
    for i: for j: p[i,j] = p[i,j] - lr * g[i,j]         p[i,j] = p[i,j] - lr * g[i,j]

Both matrices then pass through the processor once instead of twice.  The phases on their own (`.backward()`,
`.update()`) stay as they are; the fused nodes are a fourth list, `Program.fused`, for a whole step.

1. A nest of the update phase is a candidate when it is perfect (one loop in another, statements only
   innermost) and all its iterations are independent.
2. Its partner is a perfect nest of the backward phase with the same loop counts, which writes what the
   candidate reads by the same function of the loops.
3. The candidate moves up to its partner, so nothing on the way may touch what it writes, or write what it
   reads, except the same iteration of the partner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.program import (
    Array,
    Block,
    Index,
    Load,
    Loop,
    Node,
    Program,
    Reference,
    Register,
    Statement,
    arrays_read,
    arrays_written,
    statements,
    walk,
)
from .dependence import apart, independent, injective, parts
from .substitute import Substitution, copy_nodes


def fuse(program: Program) -> None:
    """Fill `program.fused`: the backward and the update phase with fused nests; empty when nothing fuses."""
    if any(isinstance(node, Block) for node in walk([*program.backward, *program.update])):
        return
    backward = copy_nodes(program.backward, Substitution())
    update = copy_nodes(program.update, Substitution())
    remaining: list[Node] = []
    for node in update:
        partner = _partner(node, backward, remaining)
        if partner is None:
            remaining.append(node)
        else:
            _append(partner, node)
    if len(remaining) < len(update):
        program.fused = backward + remaining


def _partner(node: Node, backward: Sequence[Node], between: Sequence[Node]) -> Loop | None:
    """The nest that `node` can join."""
    if not isinstance(node, Loop) or not _is_perfect(node) or not _all_independent(node):
        return None
    for position in range(len(backward) - 1, -1, -1):
        other = backward[position]
        if isinstance(other, Loop) and _is_perfect(other) and _counts(other) == _counts(node):
            joined = _renamed(node, other)
            if _feeds(other, joined) and _same_iteration_only(other, joined):
                on_the_way = [*backward[position + 1 :], *between]
                return other if _may_pass(joined, on_the_way) else None
    return None


# ---- nests ------------------------------------------------------------------------------------------


def _nest(node: Loop) -> list[Loop]:
    loops = [node]
    while len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], Loop):
        loops.append(loops[-1].body[0])
    return loops


def _is_perfect(node: Loop) -> bool:
    return all(isinstance(inner, Statement) for inner in _nest(node)[-1].body)


def _counts(node: Loop) -> list[int]:
    return [loop.count for loop in _nest(node)]


def _all_independent(node: Loop) -> bool:
    return all(independent(loop) for loop in _nest(node))


def _renamed(node: Loop, other: Loop) -> list[Node]:
    """The statements of a nest over the loops of another one of the same counts."""
    return copy_nodes(_nest(node)[-1].body, Substitution(copies=dict(zip(_nest(node), _nest(other)))))


def _append(partner: Loop, node: Node) -> None:
    assert isinstance(node, Loop)
    _nest(partner)[-1].body += _renamed(node, partner)


# ---- legality -----------------------------------------------------------------------------------------


def _accesses(nodes: Sequence[Node]) -> Iterator[tuple[Array, Index | None, bool]]:
    """(array, index or None when there is no single plain one, whether it is written) of all statements."""
    for statement in statements(nodes):
        covered: set[Array] = set()
        for part in parts(statement):
            if isinstance(part, Load):
                covered.add(part.reference.array)
                yield part.reference.array, _plain(part.reference.index), False
        target = statement.target
        if isinstance(target, Reference):
            covered.add(target.array)
            yield target.array, _plain(target.index), True
            if statement.update:
                yield target.array, _plain(target.index), False
        for array in arrays_read(statement):
            if array not in covered:
                yield array, None, False
        for array in arrays_written(statement):
            if array not in covered:
                yield array, None, True


def _plain(index: Index) -> Index | None:
    return index if index.table is None and index.dynamic is None else None


def _feeds(other: Loop, joined: Sequence[Node]) -> bool:
    """Whether the nest writes something that the joining statements read."""
    written = {array for s in statements([other]) for array in arrays_written(s)}
    return any(array in written for s in statements(joined) for array in arrays_read(s))


def _same_iteration_only(other: Loop, joined: Sequence[Node]) -> bool:
    """Whether the joining statements meet those of the nest only in elements of the same iteration."""
    theirs = list(_accesses([other]))
    for array, index, writes in _accesses(joined):
        for their_array, their_index, they_write in theirs:
            if array is not their_array or not (writes or they_write):
                continue
            if index is None or their_index is None:
                return False
            if not apart(index, their_index):
                steps = dict(index.terms)
                each_its_own = injective([(steps.get(loop, 0), loop.count) for loop in _nest(other)])
                if not (_same_function(index, their_index) and each_its_own):
                    return False
    return True


def _same_function(a: Index, b: Index) -> bool:
    return a.base == b.base and set(a.terms) == set(b.terms)


def _may_pass(joined: Sequence[Node], others: Sequence[Node]) -> bool:
    """Whether the joining statements may be executed before all of the others."""
    own = set(statements(joined))
    registers = (part for s in own for part in parts(s) if isinstance(part, Register))
    if any(register.statement not in own for register in registers):
        return False  # it needs a number that is computed on the way
    theirs = list(_accesses(others))
    for array, index, writes in _accesses(joined):
        for their_array, their_index, they_write in theirs:
            conflict = array is their_array and (writes or they_write)
            if conflict and (index is None or their_index is None or not apart(index, their_index)):
                return False
    return True
