"""May one part of the body of a loop be executed after another one, each for all iterations?

    for i:                                         for i: k[i] = ...
        k[i] = ...                          ->     for i: for j in 0 .. i: s[i,j] = q[i] * k[j]
        for j in 0 .. i: s[i,j] = q[i] * k[j]

Row i needs what this row and earlier ones have computed, so all of `k` may be computed first.  Only a bound tells that
j is no later row; ir/dependence.py compares boxes, where every row needs every other.

1. List the elements that each iteration accesses, as the bits of a number.  The loops around are in the same iteration
   for both parts, so they are left out; all accesses to an array must depend on them alike.
2. What an iteration of the first part writes must not be accessed by an earlier iteration of the second, nor the other
   way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...ir.dependence import Anywhere, ranged
from ...ir.domain import MOST_ELEMENTS, MOST_ITERATIONS, bounding, elements, that_matter
from ...ir.nest import executions
from ...ir.program import Array, Index, Loop, Node, Term, reads, writes
from ...ir.rewrite import with_surroundings


def may_follow(first: Sequence[Node], second: Sequence[Node], loop: Loop, tables: Sequence[int]) -> bool:
    """Whether no element connects an iteration of `first` with an earlier one of `second`, parts of the body of a loop.

    Args:
        first, second: in the order in which they are in the body.
        loop: around them.
        tables: the index tables of the Program.
    """
    one, other = _accesses(first), _accesses(second)
    for array in one.keys() & other.keys():
        both = [*one[array], *other[array]]
        if any(access.writes for access in both):
            if array.size > MOST_ELEMENTS or not all(_is_known(access, loop) for access in both):
                return False
            if len({_outside(access, loop) for access in both}) > 1:
                return False
            if not _in_order(one[array], other[array], loop, tables):
                return False
    return True


class _Access(NamedTuple):
    """An access to an array; the index is None if it is not affine.  `loops` are those of the part."""

    index: Index | None  # type: ignore[assignment]
    loops: tuple[Loop, ...]
    writes: bool


def _accesses(nodes: Sequence[Node]) -> dict[Array, list[_Access]]:
    found: dict[Array, dict[_Access, None]] = {}

    def note(array: Array, index: Index | None, loops: tuple[Loop, ...], writes: bool) -> None:
        found.setdefault(array, {})[_Access(ranged(index), loops, writes)] = None

    for statement, loops in with_surroundings(nodes):
        for array, index in reads(statement):
            note(array, index, loops, False)
        for array, index in writes(statement):
            note(array, index, loops, True)
    return {array: list(accesses) for array, accesses in found.items()}


def _is_known(access: _Access, loop: Loop) -> bool:
    """Whether the elements are known, and can be listed."""
    inside = {loop, *access.loops}
    matter = that_matter(access.loops)
    return access.index is not None and bounding(matter) <= inside and executions([loop, *matter]) <= MOST_ITERATIONS


def _outside(access: _Access, loop: Loop) -> frozenset[Term]:
    """The terms of the loops around."""
    assert access.index is not None
    return frozenset(term for term in access.index.terms if not _is_inside(term[0], access, loop))


def _is_inside(one: Loop, access: _Access, loop: Loop) -> bool:
    return one is loop or one in access.loops or isinstance(one, Anywhere)


def _in_order(one: Sequence[_Access], other: Sequence[_Access], loop: Loop, tables: Sequence[int]) -> bool:
    later_writes = later_visits = 0  # by the first part, in iterations that come later
    for iteration in range(loop.count) if loop.reverse else range(loop.count - 1, -1, -1):
        writes, visits = _listed(other, loop, iteration, tables)
        if later_writes & visits or later_visits & writes:
            return False
        writes, visits = _listed(one, loop, iteration, tables)
        later_writes, later_visits = later_writes | writes, later_visits | visits
    return True


def _listed(accesses: Sequence[_Access], loop: Loop, iteration: int, tables: Sequence[int]) -> tuple[int, int]:
    """The elements that an iteration writes, and all that it accesses."""
    writes = visits = 0
    for access in accesses:
        assert access.index is not None
        terms = tuple(term for term in access.index.terms if _is_inside(term[0], access, loop))
        found = elements(access.index._replace(terms=terms), access.loops, tables, {loop: iteration})
        visits |= found
        writes |= found if access.writes else 0
    return writes, visits
