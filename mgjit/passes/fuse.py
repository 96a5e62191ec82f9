"""Execute nests together that work on the same elements, iteration by iteration.

    for i: for j: g[i,j] = 0.0                          for i: for j:
    for b: for i: for j: g[i,j] += x[b,i] * d[b,j]  ->      g[i,j] = 0.0
    for i: for j: p[i,j] = p[i,j] - lr * g[i,j]             for b: g[i,j] += x[b,i] * d[b,j]
                                                            p[i,j] = p[i,j] - lr * g[i,j]

What one nest writes and the next reads then passes through the processor once, and sums stay in registers.  The
phases on their own (`.backward()`, `.update()`) are fused each by itself; backward and update together are a fourth
list of nodes, `Program.fused`, for a whole step.

1. Every nest has its free loops: those of its band whose iterations are independent.  Two nests match when their
   free loops correspond, one to one, as an array that both access shows; other loops of the band move inwards.
2. Corresponding iterations may be executed together when the nests meet only in elements of the same iteration.
3. Nothing between the two may touch what the one that moves writes, or write what it reads.
4. The plan of the joined nest must not cost more than those of the two (passes/cost.py).

Source: loop fusion, K. Kennedy, K. McKinley, "Maximizing loop parallelism and improving data locality via loop
fusion and distribution", LCPC 1993.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..ir.program import (
    Array,
    Block,
    Index,
    Loop,
    Node,
    Program,
    Reference,
    Statement,
    arrays_read,
    arrays_written,
    count_statements,
    reads,
    statements,
    walk,
)
from .cost import Processor, best_plan
from .dependence import independent, never_meet, ranged, separable
from .nest import band
from .rewrite import registers_used
from .substitute import Substitution, copy_nodes

#: Nests with more statements are not joined.
_MOST_STATEMENTS = 48
#: A nest looks for a partner among so many before it.
_FARTHEST = 64
#: What a joined nest may cost more than its parts: less traffic in memory is not part of the cost.
_TOLERANCE = 1.02


def fuse(program: Program, processor: Processor, whole_step: bool = False) -> None:
    """Fuse the nests of each phase, in place, and fill `program.fused`.

    Args:
        program: changed in place.
        processor: that the cost of nests is judged for.
        whole_step: fill `program.fused` also when nothing gains by it.
    """
    if any(isinstance(node, Block) for node in walk([*program.backward, *program.update])):
        return
    together = copy_nodes([*program.backward, *program.update], Substitution())
    for _, nodes in program.phases:
        nodes[:] = _fuse(nodes, processor)
    together = _fuse(together, processor)
    if whole_step or len(together) < len(program.backward) + len(program.update):
        program.fused = together


def _fuse(nodes: Sequence[Node], processor: Processor) -> list[Node]:
    done: list[Node] = []
    members: dict[Node, _Member] = {}
    for node in nodes:
        if isinstance(node, Loop):
            node.body = _fuse(node.body, processor)
            member = _Member.of(node)
            if member is not None:
                joined = _join_with_earlier(done, members, member, processor)
                if joined is not None:
                    members[joined.nest] = joined
                    continue
                members[node] = member
        done.append(node)
    return done


@dataclass
class _Member:
    """A nest that may be fused, with its free loops and what is inside these."""

    nest: Loop
    free: list[Loop]
    inside: list[Node]

    @classmethod
    def of(cls, nest: Loop) -> _Member | None:
        """The member that a nest is, or None."""
        loops = band(nest)
        if count_statements([nest]) > _MOST_STATEMENTS or any(isinstance(node, Block) for node in walk([nest])):
            return None
        free = [loop for loop in loops if independent(loop, [nest])]
        if not free:
            return None
        inside = loops[-1].body
        for loop in reversed([loop for loop in loops if loop not in free]):
            copy = loop.empty_copy()
            copy.body = copy_nodes(inside, Substitution(copies={loop: copy}))
            inside = [copy]
        return cls(nest, free, inside)

    @property
    def has_loops(self) -> bool:
        return any(isinstance(node, Loop) for node in self.inside)


def _join_with_earlier(
    done: list[Node], members: dict[Node, _Member], member: _Member, processor: Processor
) -> _Member | None:
    """Fuse a nest with one of those before it, in place of it or at the end; None when none fits."""
    for position in range(len(done) - 1, max(-1, len(done) - 1 - _FARTHEST), -1):
        earlier = members.get(done[position])
        if earlier is None or not _match(earlier, member):
            continue
        joined = _joined(earlier, member, processor)
        if joined is None:
            continue
        between = done[position + 1 :]
        if _may_pass([member.nest], between):
            done[position] = joined.nest
            return joined
        if _may_pass([earlier.nest], between):
            del done[position]
            done.append(joined.nest)
            return joined
    return None


# ---- 1: what corresponds ------------------------------------------------------------------------------


def _match(one: _Member, other: _Member) -> bool:
    return (
        sorted(loop.count for loop in one.free) == sorted(loop.count for loop in other.free)
        and not (one.has_loops and other.has_loops)
        and bool(_shared(one, other))
    )


def _shared(one: _Member, other: _Member) -> set[Array]:
    """Arrays through which numbers pass from one nest to the other."""
    written, touched = _written([one.nest]), _touched([one.nest])
    others_written, others_touched = _written([other.nest]), _touched([other.nest])
    return (written & others_touched) | (touched & others_written)


def _written(nodes: Sequence[Node]) -> set[Array]:
    return {array for s in statements(nodes) for array in arrays_written(s)}


def _touched(nodes: Sequence[Node]) -> set[Array]:
    return _written(nodes) | {array for s in statements(nodes) for array in arrays_read(s)}


def _correspondences(one: _Member, other: _Member) -> Iterator[dict[Loop, Loop]]:
    """Maps from the free loops of the first nest to those of the second that a shared array suggests."""
    tried = []
    shared = _shared(one, other)
    for array, index, _ in _accesses([one.nest]):
        for other_array, other_index, _ in _accesses([other.nest]):
            if array is other_array and array in shared and index is not None and other_index is not None:
                found = _by_steps(index, one.free, other_index, other.free)
                if found is not None and found not in tried:
                    tried.append(found)
                    yield found


def _by_steps(index: Index, free: Sequence[Loop], other: Index, others_free: Sequence[Loop]) -> dict[Loop, Loop] | None:
    steps = {(c, loop.count): loop for loop, c in other.terms if loop in others_free}
    found = {loop: steps[c, loop.count] for loop, c in index.terms if loop in free and (c, loop.count) in steps}
    if len(found) == len(free) == len(set(found.values())) == len(others_free):
        return found
    return None


# ---- 2 and 4: together ------------------------------------------------------------------------------------


def _joined(one: _Member, other: _Member, processor: Processor) -> _Member | None:
    for correspondence in _correspondences(one, other):
        renamed = copy_nodes(one.inside, Substitution(copies=correspondence))
        if _same_iteration_only(renamed, other.inside, other.free):
            joined = _around([*renamed, *other.inside], other.free)
            limit = _TOLERANCE * (best_plan(one.nest, processor)[0] + best_plan(other.nest, processor)[0])
            if best_plan(joined, processor)[0] <= limit:
                return _Member.of(joined)
    return None


def _around(inside: Sequence[Node], loops: Sequence[Loop]) -> Loop:
    copies = {loop: Loop(loop.count, []) for loop in loops}
    nodes = copy_nodes(inside, Substitution(copies=copies))
    for loop in reversed(loops):
        copies[loop].body = nodes
        nodes = [copies[loop]]
    return copies[loops[0]]


def _same_iteration_only(one: Sequence[Node], other: Sequence[Node], loops: Sequence[Loop]) -> bool:
    """Whether the two meet only in elements of the same iteration of all the loops."""
    for loop in loops:
        # The other loops are free to be anywhere.
        rest = [Loop(other_loop.count, []) for other_loop in loops if other_loop is not loop]
        copies = dict(zip((other_loop for other_loop in loops if other_loop is not loop), rest))
        first, second = (_nested(copy_nodes(nodes, Substitution(copies=copies)), rest) for nodes in (one, other))
        if not separable(first, second, loop):
            return False
    return True


def _nested(nodes: list[Node], loops: Sequence[Loop]) -> list[Node]:
    for loop in reversed(loops):
        outer = loop.empty_copy()
        outer.body = copy_nodes(nodes, Substitution(copies={loop: outer}))
        nodes = [outer]
    return nodes


# ---- 3: what is between -----------------------------------------------------------------------------------


def _accesses(nodes: Sequence[Node]) -> Iterator[tuple[Array, Index | None, bool]]:
    """(array, index or None when it may be any element, whether it is written) of all statements."""
    for statement in statements(nodes):
        yield from ((array, ranged(index), False) for array, index in reads(statement))
        target = statement.target
        if isinstance(target, Reference):
            yield target.array, ranged(target.index), True
        else:
            yield from ((array, None, True) for array in arrays_written(statement))


def _may_pass(moved: Sequence[Node], others: Sequence[Node]) -> bool:
    """Whether nodes may be executed before, or after, all of the others."""
    own, between = set(statements(moved)), set(statements(others))
    if _register_connects(own, between) or _register_connects(between, own):
        return False
    theirs = list(_accesses(others))
    for array, index, writes in _accesses(moved):
        for their_array, their_index, they_write in theirs:
            conflict = array is their_array and (writes or they_write)
            if conflict and (index is None or their_index is None or not never_meet(index, their_index)):
                return False
    return True


def _register_connects(one: set[Statement], other: set[Statement]) -> bool:
    return any(used in other for s in one for used in registers_used(s))
