"""Join loops that do the same to stretches of memory which lie side by side, such as the update of all parameters.

    for i < 432: p[i] = p[i] - 0.1 * g[i]
    for i < 27: for j < 16:                                            for i < 944:
        p[i + 32*j + 432] = p[i + 32*j + 432] - 0.1 * g[...]    ->         p[i] = p[i] - 0.1 * g[i]

The layout of parameters (lift/layout.py) cuts such a loop at the boundaries of its blocks, so that gradients can be
summed and used in one nest.  Where all of it fits a cache, that gains less than the copies of a long rule cost.

1. A nest visits a stretch if its body is statements without loops, each of which accesses the same element of every
   array, or elements that are the same in all iterations and that the nest does not write; and if its loops count the
   elements of the stretch, row by row.  Behind rows may be padding, whose numbers nobody reads.
2. Nests that follow each other and have the same body, but for where their stretches begin, become one loop if their
   stretches make up a longer one.

All iterations are independent, since each has elements of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from ...ir.builders import nested
from ...ir.dependence import plain
from ...ir.nest import band
from ...ir.program import (
    Array,
    Choice,
    Index,
    Load,
    Loop,
    Mixed,
    Node,
    Program,
    Reference,
    Statement,
    Term,
    leaf_targets,
    reads,
    writes,
)
from ...ir.substitute import Substitution, copy_nodes
from ..simplify.common import operand_key
from .in_blocks import FEW
from .plan import from_cache


class _Stretch(NamedTuple):
    """A nest that visits a stretch of memory.

    Attributes:
        key: what it does; equal for nests that do the same.
        start, size: where the stretch begins in the array that is written first, and how many elements it has.
        body: its statements.
        terms: of the index of the element that an iteration visits.
    """

    key: Hashable
    start: int
    size: int
    body: list[Node]
    terms: tuple[Term, ...]


def join_adjacent(program: Program) -> None:
    """Join the loops at the top of each phase, in place."""
    for _, nodes in program.phases:
        done: list[Node] = []
        for _, group in groupby(((node, _stretch(node)) for node in nodes), lambda one: one[1] and one[1].key):
            members = list(group)
            joined = _joined([stretch for _, stretch in members if stretch is not None])
            done += joined or [node for node, _ in members]
        nodes[:] = done


# ---- 1: stretches ---------------------------------------------------------------------------------------------------


def _stretch(node: Node) -> _Stretch | None:
    """What a nest visits, or None if it is of another kind, or too short to be worth it."""
    if not isinstance(node, Loop):
        return None
    loops = band(node)
    body = loops[-1].body
    inside = [one for one in body if isinstance(one, Statement)]
    if len(inside) <= FEW or len(inside) < len(body) or any(loop.bound is not None for loop in loops):
        return None
    if not all(map(_is_plain, inside)):
        return None
    targets = _places(writes(one) for one in inside)
    places = {*targets, *_places(reads(one) for one in inside)}
    moving = {place for place in places if any(loop in loops for loop, _ in place.index.terms)}
    written, moved, fixed = ({array for array, _ in some} for some in (targets, moving, places - moving))
    if not targets or len({place.index.terms for place in moving}) != 1:
        return None
    if len(moved) < len(moving) or not written.isdisjoint(fixed):
        return None
    start = targets[0].index
    size = _size(start.terms, loops, [place for place in moving if place.array in written])
    if size is None or any(place.index.base + size > place.array.size for place in moving):
        return None
    return _Stretch(_key(inside, start, moving), start.base, size, body, start.terms)


def _places(accesses: Iterable[Iterable[tuple[Array, Index | None]]]) -> list[Reference]:
    return [Reference(array, index) for some in accesses for array, index in some if index is not None]


def _is_plain(statement: Statement) -> bool:
    """Whether it accesses memory by affine indices only, and always the same arrays."""
    if any(isinstance(operand, (Choice, Mixed)) for operand in statement.operands):
        return False
    if not all(isinstance(target, Reference) for target in leaf_targets(statement.target)):
        return False
    return all(plain(index) is not None for _, index in (*reads(statement), *writes(statement)))


def _size(terms: Sequence[Term], loops: Sequence[Loop], written: Sequence[Reference]) -> int | None:
    """How many elements the loops count, with the padding behind rows; None if they leave out others."""
    if {loop for loop, _ in terms} != set(loops):
        return None
    size = 1
    for number, (loop, step) in enumerate(sorted(terms, key=lambda term: term[1])):
        if step != size and not (number == 1 and all(_is_padded(one, size, step, loop.count) for one in written)):
            return None
        size = step * loop.count
    return size


def _is_padded(place: Reference, used: int, pitch: int, count: int) -> bool:
    """Whether so many rows begin at a place, with padding behind them."""
    array, index = place
    return any(
        rows.used == used
        and rows.pitch == pitch
        and index.base >= rows.place
        and (index.base - rows.place) % pitch == 0
        and index.base + pitch * count <= rows.place + rows.pitch * rows.count
        for rows in array.padded_rows
    )


def _key(body: Sequence[Statement], start: Index, moving: set[Reference]) -> Hashable:
    """What statements do, whatever the stretch."""
    numbers: dict[object, Hashable] = {statement: number for number, statement in enumerate(body)}

    def place(reference: Reference) -> Hashable:
        array, index = reference
        return (array, index.base - start.base) if reference in moving else operand_key(Load(reference))

    return tuple(
        (
            one.operation,
            one.update,
            tuple(
                [
                    place(part.reference) if isinstance(part, Load) else operand_key(part, numbers)
                    for part in one.operands
                ]
            ),
            place(one.target) if isinstance(one.target, Reference) else None,
        )
        for one in body
    )


# ---- 2: together ----------------------------------------------------------------------------------------------------


def _joined(stretches: Sequence[_Stretch]) -> list[Node]:
    """The loop that takes the place of some nests; nothing if there is none."""
    inward = sorted(stretches, key=lambda one: one.start)
    together = sum(one.size for one in inward)
    apart = any(one.start + one.size != other.start for one, other in zip(inward, inward[1:]))
    if len(inward) < 2 or apart or from_cache(together):
        return []
    loop = Loop(together, [])
    return nested([loop], copy_nodes(inward[0].body, _Along(inward[0].terms, loop)))


class _Along(Substitution):
    """Puts one loop in the place of those that visit a stretch."""

    def __init__(self, terms: tuple[Term, ...], loop: Loop) -> None:
        super().__init__()
        self._terms, self._new = terms, ((loop, 1),)

    def index(self, index: Index) -> Index:
        return index._replace(terms=self._new) if index.terms == self._terms else index
