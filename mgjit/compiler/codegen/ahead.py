"""What is asked for in front of a long loop, because the loops behind it read it from far away.

A tile of a product (schedule/tiles.py) ends with a few vectors of large arrays, such as the moments of an optimiser, in
another row for each vector or two: so short a stretch of a row that no processor foresees the next one.

1. The loop in front takes long enough for memory to answer.
2. Behind it, up to the next such loop, there are loops over a few vectors, of arrays that fit no near cache and that
   it does not touch itself.  The first element of each is asked for.

It makes most of a difference where others use the memory as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, takewhile
from typing import NamedTuple

from ...ir.program import Array, Loop, Node, Reference, arrays_read, arrays_written, reads, statements, writes

#: So many statements are executed while memory answers.
_LONG = 1_000
#: The most vectors, so that the nearest cache keeps them meanwhile.
_MOST = 256
#: Arrays of fewer elements are in a cache that is near enough.
_LARGE = 128_000


class Ahead(NamedTuple):
    """Vectors to ask for.

    Attributes:
        loops: around them.
        lane: the loop over the elements of one.
        places: what they are.
    """

    loops: tuple[Loop, ...]
    lane: Loop
    places: list[Reference]


def asked_for(loop: Loop, behind: Iterable[Node]) -> list[Ahead]:
    """What to ask for in front of a loop, given the nodes behind it."""
    if _work(loop) < _LONG:
        return []
    touched = {array for s in statements([loop]) for array in (*arrays_read(s), *arrays_written(s))}
    loops = takewhile(lambda node: _work(node) < _LONG, (node for node in behind if isinstance(node, Loop)))
    found = chain.from_iterable(_vectors(node, (), touched) for node in loops)
    return [one for one in found if one.places and _product(one.loops) * len(one.places) <= _MOST]


def _vectors(loop: Loop, around: tuple[Loop, ...], touched: set[Array]) -> Iterator[Ahead]:
    if loop.lanes:
        places = dict.fromkeys(place for s in statements([loop]) for place in (*reads(s), *writes(s)))
        far = [place for place in places if isinstance(place, Reference) and _is_far(place, loop)]
        yield Ahead(around, loop, [place for place in far if place.array not in touched])
    elif loop.bound is None:
        for node in loop.body:
            if isinstance(node, Loop):
                yield from _vectors(node, (*around, loop), touched)


def _is_far(place: Reference, lane: Loop) -> bool:
    index = place.index
    is_affine = index.table is None and index.dynamic is None
    return place.array.size > _LARGE and is_affine and dict(index.terms).get(lane) == 1


def _work(loop: Loop) -> int:
    return loop.count * sum(_work(node) if isinstance(node, Loop) else 1 for node in loop.body)


def _product(loops: Sequence[Loop]) -> int:
    product = 1
    for loop in loops:
        product *= loop.count
    return product
