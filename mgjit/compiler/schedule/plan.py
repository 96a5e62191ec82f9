"""How a nest is executed, and what operations and accesses cost.

Costs are in units of one vector operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from ...engine.operations import OPERATIONS
from ...ir.program import Loop, Reference, Statement

if TYPE_CHECKING:
    from .partial_sums import PartialSums
    from .window import Window


#: Operations that may be slow on unused lanes, whose numbers are arbitrary, such as zeros.
SPECIAL = frozenset({"log", "power"})
LOAD, UNALIGNED, STRIDED, CONVERSION = 0.5, 0.75, 1.0, 1.0
#: How many elements fit a cache, and what reading a vector costs that is not in it, but in the next one.
_CACHES = ((6_000, 0.0), (128_000, 2.0))
_BEYOND = 8.0
#: Packing costs a load and a store for each element, or for each vector where the elements are consecutive.
PACKING = 2.0


@dataclass
class Plan:
    """How a nest is executed.

    Attributes:
        cost: in operations.
        order: the loops of the band, outermost first.
        vector: the loop that runs in lanes, or None.
        vectors: how many vectors of it run side by side.
        rows: another loop, which is jammed, or None.
        row_count: how many iterations of that loop run side by side.
        packed: reads that are packed.
        padded: whether the last vector may go beyond the end of the loop.
        tiled: whether it is executed in tiles (schedule/tiles.py); then `packed` is packed for each block of vectors.
        window: what it adds to, if that is kept in an array of its own (schedule/window.py), or None.
        partial: how its sums are split first, in fast mode (schedule/partial_sums.py), or None; what they become is
            planned by itself.
    """

    cost: float
    order: list[Loop]
    vector: Loop | None = None
    vectors: int = 1
    rows: Loop | None = None
    row_count: int = 1
    packed: list[Reference] = field(default_factory=list)
    padded: bool = False
    tiled: bool = False
    window: Window | None = None
    partial: PartialSums | None = None


@lru_cache(maxsize=1024)
def pieces(count: int, lanes: int) -> tuple[tuple[int, int], ...]:
    """`count` iterations as (lanes, vectors): whole vectors, then halves, down to single iterations."""
    found = []
    while count:
        if count >= lanes:
            found.append((lanes, count // lanes))
            count %= lanes
        lanes //= 2
    return tuple(found)


def from_cache(elements: float) -> float:
    """What reading a vector costs, beside the load, where so many elements are read again and again."""
    return next((cost for size, cost in _CACHES if elements <= size), _BEYOND)


#: How many statements read the same elements in the same pattern, by `pattern`.
Sharing = Mapping[object, int]


def operation_cost(statement: Statement) -> float:
    """What the operation of a statement costs."""
    return OPERATIONS[statement.operation].cost
