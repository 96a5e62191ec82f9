"""Which sums are kept in local variables while a loop runs: those whose target is the same in all iterations.

Nothing else in the loop may access the target, so that nobody sees that it is only written when the loop has ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.dependence import never_meet, plain
from ...ir.domain import full_range
from ...ir.program import Array, Index, Loop, Node, Reference, Statement, arrays_read, arrays_written, reads, statements


def invariant_accumulators(
    loop: Loop, vectors: bool, body: Sequence[Node] | None = None
) -> list[tuple[Reference, Loop | None]]:
    """Targets of updates in `loop` that are the same in all iterations, and that nothing else in the loop accesses.

    Args:
        loop: its body, and with `vectors` the loops over lanes in it, is searched.
        vectors: whether a loop over lanes is emitted as one operation.
        body: its body as it is emitted, if that is not as it stands.

    Returns:
        Each target with the loop over its lanes (None for a single number).
    """
    body = loop.body if body is None else body
    found: dict[Array, list[tuple[Reference, Loop | None]]] = {}
    for node in body:
        lane = node if isinstance(node, Loop) and node.lanes and vectors else None
        for statement in [node] if lane is None else lane.body:
            if isinstance(statement, Statement) and statement.update and isinstance(statement.target, Reference):
                index = statement.target.index
                fixed = (
                    index.table is None and index.dynamic is None and all(other is not loop for other, _ in index.terms)
                )
                kept = statement.target.array.space not in ("input", "constant", "output")
                exists = loop.bound is None or _exists(statement.target)
                if fixed and kept and exists and not _reads_itself(statement, loop, lane):
                    found.setdefault(statement.target.array, []).append((statement.target, lane))
    if not found:
        return []
    uses: dict[Array, int] = {}
    for statement in statements(body):
        for array in {*arrays_read(statement), *arrays_written(statement)}:
            uses[array] = uses.get(array, 0) + 1
    return [place for array, places in found.items() if uses[array] == len(places) for place in _if_apart(places)]


def _exists(target: Reference) -> bool:
    """Whether the index of a target is in its array in every iteration, so that it may be read before an empty loop."""
    low, high = full_range(target.index)
    return low >= 0 and high < target.array.least


def _reads_itself(statement: Statement, loop: Loop, lane: Loop | None) -> bool:
    """Whether what is added to an element may be read from this element, or from that of another lane."""
    target = statement.target
    assert isinstance(target, Reference)
    free = {loop} if lane is None else {loop, lane}
    for array, index in reads(Statement(statement.operation, statement.operands)):
        if array is target.array:
            if index is None or plain(index) is None:
                return True
            alike = _terms_outside(index, free) == _terms_outside(target.index, free)
            if not never_meet(target.index, index, free if alike else None):
                return True
    return False


def _terms_outside(index: Index, free: set[Loop]) -> set[tuple[Loop, int]]:
    return {term for term in index.terms if term[0] not in free}


def _if_apart(places: list[tuple[Reference, Loop | None]]) -> list[tuple[Reference, Loop | None]]:
    """The places of one array, if they never overlap in the same iteration of the surrounding loops; else nothing."""
    terms = {frozenset(term for term in target.index.terms if term[0] is not lane) for target, lane in places}
    if len(terms) != 1:
        return []
    places = list(dict.fromkeys(places))  # several statements may add to the same place
    apart = all(_apart(a, b) for number, a in enumerate(places) for b in places[:number])
    return places if apart else []


def _apart(one: tuple[Reference, Loop | None], other: tuple[Reference, Loop | None]) -> bool:
    """Whether two places of one array have no element in common in the same iteration of the surrounding loops."""
    (base, step, count), (other_base, other_step, other_count) = (_span(*place) for place in (one, other))
    if base + step * (count - 1) < other_base or other_base + other_step * (other_count - 1) < base:
        return True
    return step == other_step and step > 1 and (base - other_base) % step != 0


def _span(target: Reference, lane: Loop | None) -> tuple[int, int, int]:
    """First element, step and number of elements; the step of a place with lanes is not negative."""
    index = target.index
    if lane is None:
        return index.base, 1, 1
    step = dict(index.terms)[lane]
    return (index.base, step, lane.count) if step > 0 else (index.base + step * (lane.count - 1), -step, lane.count)
