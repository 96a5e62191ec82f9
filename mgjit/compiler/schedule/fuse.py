"""Fuse nests that work on the same elements, so that they are executed together, iteration by iteration.

    for i: for j: g[i,j] = 0.0                          for i: for j:
    for b: for i: for j: g[i,j] += x[b,i] * d[b,j]  ->      g[i,j] = 0.0
    for i: for j: p[i,j] = p[i,j] - lr * g[i,j]             for b: g[i,j] += x[b,i] * d[b,j]
                                                            p[i,j] = p[i,j] - lr * g[i,j]

What one nest writes and the next reads is then loaded once, and sums stay in registers.  Each phase is fused by itself;
in the Program of a whole step, backward and update are one phase.

1. The free loops of a nest are those of its band whose iterations are independent, and that have no bound.  Two nests
   match if an array that both access shows a one-to-one correspondence between their free loops; other loops of the
   band move inwards.  In fast mode, where sums may be reordered, loops that are independent but for what they add up
   are free as well, so that terms are added where they are computed.
2. Corresponding iterations may be executed together if the nests meet only in elements of the same iteration.
3. Nothing between the two may access what the nest that moves writes, or write what it reads.
4. The plan of the fused nest must not cost more than those of the two (schedule/cost.py).  Those of the two read from
   memory again what fits no cache.

Source: loop fusion, K. Kennedy, K. McKinley, "Maximizing loop parallelism and improving data locality via loop
fusion and distribution", LCPC 1993.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...base.cached import cached_property
from ...ir.builders import nested
from ...ir.dependence import Accesses, accesses_by_array, accesses_may_meet, independent_among, ranged, separable
from ...ir.nest import band, examine, work
from ...ir.program import (
    Array,
    Index,
    Loop,
    Node,
    Program,
    Statement,
    count_statements,
    has_blocks,
    reads,
    statements,
    writes,
)
from ...ir.rewrite import registers_used
from ...ir.substitute import Substitution, copy_nodes
from ..toolchain.target import Processor
from .cost import best_plan
from .partial_sums import free_but_for_sums, sums_apart
from .plan import LOAD, from_cache

#: Nests with more statements than this are not fused.
_MOST_STATEMENTS = 48
#: How many earlier nests are considered as partners.
_FARTHEST = 64
#: How much more a fused nest may cost than its parts, since the cost does not include what is read from a cache again.
_TOLERANCE = 1.02
#: Arrays of more elements fit no cache.
_LARGE = 128_000


def fuse(program: Program, processor: Processor) -> None:
    """Fuse the nests of each phase, in place.

    Args:
        program: changed in place.
        processor: the processor for which nests are costed.
    """
    for _, nodes in program.phases:
        if not has_blocks(nodes):
            nodes[:] = _fuse(nodes, processor)


def _fuse(nodes: Sequence[Node], processor: Processor) -> list[Node]:
    done: list[Part] = []
    for node in nodes:
        if not isinstance(node, Loop):
            done.append(Part(node))
            continue
        node.body = _fuse(node.body, processor)
        for part in sums_apart(node) if processor.is_fast else [node]:
            assert isinstance(part, Loop)
            members = _members(part, processor, done)
            if not any(_join_with_earlier(done, member) for member in members):
                done.append(members[-1] if members else Part(part))
    return [part.node for part in done]


def _members(nest: Loop, processor: Processor, done: Sequence[Part]) -> list[_Member]:
    """The ways to fuse a nest with earlier ones; where sums may be reordered, first as one all of whose loops are free.

    Args:
        nest: the nest.
        processor: for which it is costed.
        done: the earlier nests.
    """
    found = _Member.of(nest, processor)
    adds_up = processor.is_fast and (found is None or len(found.free) < len(band(nest)))
    with_sums = None
    if adds_up and any(part.shape == Part(nest).shape for part in done[-_FARTHEST:]):
        with_sums = _Member.of(nest, processor, sums=True)
    return [member for member in (with_sums, found) if member is not None]


class Part:
    """A node of a phase, and what it accesses."""

    def __init__(self, node: Node) -> None:
        self.node = node

    @cached_property
    def shape(self) -> list[int]:
        """The counts of the loops of its band, in order of size."""
        return sorted(loop.count for loop in band(self.node)) if isinstance(self.node, Loop) else []

    @cached_property
    def accesses(self) -> dict[Array, Accesses]:
        """The accesses to each array."""
        return accesses_by_array([self.node])

    @cached_property
    def written(self) -> set[Array]:
        """The arrays that it writes."""
        return {array for array, accesses in self.accesses.items() if accesses.writes}

    @cached_property
    def statements(self) -> set[Statement]:
        """All statements in it."""
        return set(statements([self.node]))

    @cached_property
    def used(self) -> set[Statement]:
        """The statements whose registers it reads."""
        return {used for statement in self.statements for used in registers_used(statement)}

    def may_pass(self, others: Sequence[Part]) -> bool:
        """Whether this part may be executed before, or after, all of the other parts."""
        return not any(
            not self.used.isdisjoint(other.statements)
            or not other.used.isdisjoint(self.statements)
            or accesses_may_meet(self.accesses, other.accesses)
            for other in others
        )


class _Member(Part):
    """A nest that may be fused, with its free loops and the nodes inside them."""

    node: Loop

    def __init__(self, nest: Loop, free: list[Loop], inside: list[Node], processor: Processor, sums: bool) -> None:
        super().__init__(nest)
        self.free, self.inside, self.processor, self.sums = free, inside, processor, sums
        self.has_loops = any(isinstance(node, Loop) for node in inside)

    @classmethod
    def of(cls, nest: Loop, processor: Processor, sums: bool = False) -> _Member | None:
        """A nest as a member, or None if it cannot be fused.

        Args:
            nest: the nest.
            processor: for which it is costed.
            sums: whether loops count as free that are but for sums, and all of its loops are then.
        """
        loops = band(nest)
        if count_statements([nest]) > _MOST_STATEMENTS or has_blocks([nest]):
            return None
        if sums:
            examined = examine(nest)
            free = [] if examined is None or examined.inner else free_but_for_sums(examined)
            if len(free) < len(loops):
                return None
        else:
            free = independent_among([loop for loop in loops if loop.bound is None], [nest])
        if not free:
            return None
        inside = _nested(loops[-1].body, [loop for loop in loops if loop not in free])
        return cls(nest, free, inside, processor, sums)

    @cached_property
    def cost(self) -> float:
        """The cost of its best plan."""
        return best_plan(self.node, self.processor, independent=None if self.sums else self.free)[0]

    @cached_property
    def with_sums(self) -> _Member | None:
        """The same nest, as one whose loops are all free but for sums."""
        return self if self.sums else _Member.of(self.node, self.processor, True)

    @cached_property
    def places(self) -> list[tuple[Array, Index]]:
        """The elements that it accesses by plain indices, in the order of the statements."""
        found: list[tuple[Array, Index | None]] = []
        for statement in statements([self.node]):
            found += ((array, ranged(index)) for array, index in (*reads(statement), *writes(statement)))
        return list(dict.fromkeys((array, index) for array, index in found if index is not None))


def _join_with_earlier(done: list[Part], member: _Member, again: bool = False) -> bool:
    """Fuse a nest with an earlier one, at the place of either; returns whether one was found.

    The outcome is fused again with what is before it, since it may share more than its parts did.  That is only for
    nests without loops inside, such as the rule of an optimiser: beside a long sum, each statement that is added is
    executed, and compiled, once for every vector and row that runs side by side.  What fits no cache is worth that.
    """
    for position in range(len(done) - 1, max(-1, len(done) - 1 - _FARTHEST), -1):
        earlier: Part | None = done[position]
        if isinstance(earlier, _Member) and earlier.sums != member.sums:
            earlier = earlier.with_sums if member.sums else None
        if not isinstance(earlier, _Member) or not _match(earlier, member):
            continue
        if again and earlier.has_loops and not _read_again(earlier, member):
            continue
        between = done[position + 1 :]
        in_place = member.may_pass(between)
        if not in_place and not earlier.may_pass(between):
            continue
        joined = _joined(earlier, member)
        if joined is None:
            continue
        place = position if in_place else len(done) - 1
        del done[position]
        before = done[:place]
        if not joined.has_loops and _join_with_earlier(before, joined, again=True):
            done[:place] = before
        else:
            done.insert(place, _Member.of(joined.node, joined.processor) or joined if joined.sums else joined)
        return True
    return False


# ---- 1: what corresponds ------------------------------------------------------------------------------


def _match(one: _Member, other: _Member) -> bool:
    return (
        sorted(loop.count for loop in one.free) == sorted(loop.count for loop in other.free)
        and not (one.has_loops and other.has_loops)
        and bool(_shared(one, other))
    )


def _shared(one: _Member, other: _Member) -> set[Array]:
    """Arrays that one nest writes and the other accesses."""
    return (one.written & other.accesses.keys()) | (other.written & one.accesses.keys())


def _correspondences(one: _Member, other: _Member) -> Iterator[dict[Loop, Loop]]:
    """Mappings from the free loops of the first nest to those of the second, as suggested by shared arrays."""
    tried = []
    shared = _shared(one, other)
    others = [(array, index) for array, index in other.places if array in shared]
    for array, index in one.places:
        for other_array, other_index in others:
            if array is other_array:
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


def _joined(one: _Member, other: _Member) -> _Member | None:
    for correspondence in _correspondences(one, other):
        renamed = copy_nodes(one.inside, Substitution(copies=correspondence))
        if _same_iteration_only(renamed, other.inside, other.free):
            joined = _Member.of(_around([*renamed, *other.inside], other.free), other.processor, other.sums)
            if joined is not None and joined.cost <= _TOLERANCE * (one.cost + other.cost) + _read_again(one, other):
                return joined
    return None


def _read_again(one: _Member, other: _Member) -> float:
    """What it costs that one nest has from memory what the other has just written.

    The terms of a sum are read once more, from wherever they are, unless they are added up where they are computed.
    """
    sizes = [min(array.size, work(other.free)) for array in _shared(one, other)]
    if other.sums:
        return sum((LOAD + from_cache(size)) * size / other.processor.lanes for size in sizes)
    return sum(from_cache(size) * size / other.processor.lanes for size in sizes if size > _LARGE)


def _around(inside: Sequence[Node], loops: Sequence[Loop]) -> Loop:
    copies = {loop: Loop(loop.count, []) for loop in loops}
    nested(list(copies.values()), copy_nodes(inside, Substitution(copies=copies)))
    return copies[loops[0]]


def _same_iteration_only(one: Sequence[Node], other: Sequence[Node], loops: Sequence[Loop]) -> bool:
    """Whether the two access a common element only in the same iteration of all these loops."""
    for loop in loops:
        # The other loops may be in any iteration.
        rest = [Loop(other_loop.count, []) for other_loop in loops if other_loop is not loop]
        copies = dict(zip((other_loop for other_loop in loops if other_loop is not loop), rest))
        first, second = (_nested(copy_nodes(nodes, Substitution(copies=copies)), rest) for nodes in (one, other))
        if not separable(first, second, loop):
            return False
    return True


def _nested(nodes: Sequence[Node], loops: Sequence[Loop]) -> list[Node]:
    """A copy of the nodes inside copies of the loops; the nodes if there are none."""
    substitution = Substitution()
    copies = [substitution.loop_copy(loop) for loop in loops]
    return nested(copies, copy_nodes(nodes, substitution)) if copies else list(nodes)
