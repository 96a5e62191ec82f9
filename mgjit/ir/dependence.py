"""May the iterations of a loop be executed in another order?

1. Collect every access to an array that the body writes.
2. For each pair of accesses to one array, no element may belong to two different iterations.  That holds when
   the ranges of the two do not meet at all; or when both are the same function of the loop variables and that
   function takes each value once; or when one iteration stays within less than the step to the next.
3. Anything that is not affine counts as a dependence, where something is written.  Of a Choice, both alternatives
   count as accesses.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from .program import (
    Array,
    Choice,
    Index,
    Loop,
    Node,
    Operand,
    Reference,
    Statement,
    has_blocks,
    leaf_operands,
    reads,
    statements,
    walk,
    writes,
)


def independent(loop: Loop, nest: Sequence[Node] | None = None, own: Collection[Array] = ()) -> bool:
    """Whether no iteration of `loop` writes an element that another iteration accesses.

    Args:
        loop: may contain other loops.
        nest: nodes around the loop. If given, iterations are compared whatever iterations the other loops of these
            nodes are in, so that `loop` may be moved anywhere among them.
        own: arrays that each iteration has for itself.
    """
    return bool(independent_among([loop], loop.body if nest is None else nest, own))


def independent_among(loops: Sequence[Loop], nest: Sequence[Node], own: Collection[Array] = ()) -> list[Loop]:
    """Those of `loops` that are `independent` in the same nodes around them."""
    if has_blocks(nest):
        return []
    written = [accesses for array, accesses in accesses_by_array(nest).items() if accesses.writes and array not in own]
    if any(None in accesses.writes or None in accesses.reads for accesses in written):
        return []
    inside = {node for node in walk(nest) if isinstance(node, Loop)}
    return [loop for loop in loops if all(_all_separate(accesses, loop, inside - {loop}) for accesses in written)]


def _all_separate(accesses: Accesses, loop: Loop, inside: set[Loop]) -> bool:
    writes = _distinct(accesses.writes, loop, inside)
    both = writes + [index for index in _distinct(accesses.reads, loop, inside) if index not in writes]
    # Only the distance of the elements matters, not which elements they are.
    pairs = {(a.terms, b.terms, a.base - b.base): (a, b) for a in writes for b in both}
    return all(_pair_separate(a, b, loop, inside) for a, b in pairs.values())


def _distinct(indices: set[Index | None], loop: Loop, inside: set[Loop]) -> list[Index]:
    return list({_signature(index, loop, inside): index for index in indices if index is not None}.values())


def separable(first: Sequence[Node], second: Sequence[Node], loop: Loop) -> bool:
    """Whether no element connects an iteration of `first` with another iteration of `second`, parts of one body."""
    both = [*first, *second]
    inside = {node for node in walk(both) if isinstance(node, Loop)}
    if has_blocks(both):
        return False
    one, other = accesses_by_array(first), accesses_by_array(second)
    for array in one.keys() & other.keys():
        mine, theirs = one[array], other[array]
        pairs = [(mine.writes, theirs.writes), (mine.writes, theirs.reads), (mine.reads, theirs.writes)]
        for here, there in pairs:
            if here and there and (None in here or None in there):
                return False
            if not all(_pair_separate(a, b, loop, inside) for a in here for b in there if a and b):
                return False
    return True


def may_meet(first: Sequence[Node], second: Sequence[Node]) -> bool:
    """Whether either may write an element that the other accesses, in any iterations of any loops."""
    return accesses_may_meet(accesses_by_array(first), accesses_by_array(second))


def accesses_may_meet(one: Mapping[Array, Accesses], other: Mapping[Array, Accesses]) -> bool:
    """`may_meet` for the accesses of two lists of nodes."""
    for array in one.keys() & other.keys():
        mine, theirs = one[array], other[array]
        for here, there in ((mine.writes, theirs.writes), (mine.writes, theirs.reads), (mine.reads, theirs.writes)):
            if any(a is None or b is None or not never_meet(a, b) for a in here for b in there):
                return True
    return False


class Accesses:
    """How an array is accessed; the index None stands for an access that is not affine, or a choice."""

    def __init__(self) -> None:
        self.reads: set[Index | None] = set()
        self.writes: set[Index | None] = set()


def accesses_by_array(nodes: Sequence[Node]) -> dict[Array, Accesses]:
    """How each array is accessed in nodes."""
    found: defaultdict[Array, Accesses] = defaultdict(Accesses)
    for statement in statements(nodes):
        chosen = not isinstance(statement.target, Reference)
        for array, index in writes(statement):
            found[array].writes.add(None if chosen else ranged(index))
        for array, index in reads(statement):
            found[array].reads.add(ranged(index))
    return found


class Anywhere(Loop):
    """Stands for the run-time part of an index: a loop that may be in a different iteration for every access."""

    def __init__(self, count: int) -> None:
        super().__init__(count, [])


def ranged(index: Index | None) -> Index | None:
    """The index with its run-time part as an additional loop; None for an index with a table."""
    if index is None or index.table is not None or index.dynamic is None:
        return plain(index)
    return Index(index.base, (*index.terms, (Anywhere(index.dynamic.count), index.dynamic.stride)))


def plain(index: Index | None) -> Index | None:
    """The index if it is affine; None for one with a table or a run-time part."""
    return index if index is not None and index.table is None and index.dynamic is None else None


def parts(statement: Statement) -> Iterator[Operand]:
    """The operands of a statement, and the operands of their indices; a Choice counts as one."""
    for operand in statement.operands:
        if isinstance(operand, Choice):
            yield operand
        else:
            yield from leaf_operands(operand)


class _Signature(NamedTuple):
    base: int
    step: int
    inner: tuple[tuple[int, int], ...]
    outer: tuple[tuple[int, int], ...]


def _signature(index: Index, loop: Loop, inside: set[Loop]) -> _Signature:
    """A key that is equal for accesses that are the same function, up to the identity of their inner loops."""
    inner, outer, step = [], [], 0
    for other, c in index.terms:
        if other in inside or type(other) is Anywhere:
            inner.append((c, other.count))
        elif other is not loop:
            outer.append((id(other), c))
        if other is loop:
            step = c
    inner.sort()
    return _Signature(index.base, step, tuple(inner), tuple(outer))


def _is_free(loop: Loop, free: set[Loop]) -> bool:
    return loop in free or isinstance(loop, Anywhere)


def _pair_separate(a: Index, b: Index, loop: Loop, inside: set[Loop]) -> bool:
    base_a, step_a, inner_a, outer_a = _signature(a, loop, inside)
    base_b, step_b, inner_b, outer_b = _signature(b, loop, inside)
    same_outside = outer_a == outer_b
    if never_meet(a, b, {loop, *inside} if same_outside else None):
        return True
    if not same_outside or step_a != step_b:
        return False
    low_a, high_a = _range(a, inside)
    low_b, high_b = _range(b, inside)
    if max(high_a, high_b) - min(low_a, low_b) < abs(step_a):
        return True
    if base_a == base_b and inner_a == inner_b and injective([*inner_a, (step_a, loop.count)]):
        return True
    return _is_digit(abs(step_a), loop.count, base_a - base_b, [*inner_a, *((-c, count) for c, count in inner_b)])


def _is_digit(step: int, count: int, difference: int, inner: Sequence[tuple[int, int]]) -> bool:
    """Whether a loop is a separate digit of the element number, between lower and higher digits.

    Lower terms of the difference of two accesses stay below `step`; higher ones are multiples of a number that all
    iterations of the loop, and the lower terms together, do not reach.
    """
    higher = math.gcd(*(c for c, _ in inner if abs(c) >= step * count))
    if higher:
        difference = (difference + higher // 2) % higher - higher // 2
    spans = [c * (other - 1) for c, other in inner if abs(c) < step * count]
    low = difference + sum(span for span in spans if span < 0)
    high = difference + sum(span for span in spans if span > 0)
    reach = max(-low, high)
    return reach < step and (not higher or step * (count - 1) + reach < higher)


def never_meet(a: Index, b: Index, free: set[Loop] | None = None) -> bool:
    """Whether two plain accesses have no element in common, whatever the loops do.

    Args:
        a, b: the accesses.
        free: loops that may be in different iterations for the two accesses; None: all loops. The others are in the
            same iteration, and must have the same coefficients in both.

    The difference of the two has a range, and they can only meet where it is zero.  A part of the difference that is a
    multiple of some step cannot make it zero if the rest is never a multiple of that step.
    """
    difference = a.base - b.base
    if not difference:
        return False  # as they do in the first iterations
    parts_ = [(c, loop.count) for loop, c in a.terms if free is None or _is_free(loop, free)]
    parts_ += [(-c, loop.count) for loop, c in b.terms if free is None or _is_free(loop, free)]
    for step in {0, *(abs(c) for c, _ in parts_)}:
        rest = [c * (count - 1) for c, count in parts_ if not step or c % step]
        low = difference + sum(span for span in rest if span < 0)
        high = difference + sum(span for span in rest if span > 0)
        if low > 0 or high < 0 if not step else low // step == high // step and low % step:
            return True
    return False


def ranges_apart(a: Index, b: Index, inside: set[Loop]) -> bool:
    """Whether two accesses with equal terms in the outer loops never meet while the inner loops run."""
    low_a, high_a = _range(a, inside)
    low_b, high_b = _range(b, inside)
    return high_a < low_b or high_b < low_a


def _range(index: Index, inside: set[Loop]) -> tuple[int, int]:
    """Least and greatest element of an access in iteration 0 of the loop, without the loops around it."""
    spans = [c * (other.count - 1) for other, c in index.terms if _is_free(other, inside)]
    return index.base + sum(s for s in spans if s < 0), index.base + sum(s for s in spans if s > 0)


def injective(steps: Sequence[tuple[int, int]]) -> bool:
    """Whether (step, count) pairs give each combination of iterations a different element."""
    reach = 0
    for step, count in sorted((abs(step), count) for step, count in steps if count > 1):
        if step <= reach:
            return False
        reach += step * (count - 1)
    return True
