"""What a nest is scheduled for, how it is executed, and what operations and accesses cost.

Costs are in units of one vector operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from ..engine.library import FUNCTIONS as LIBRARY
from ..ir.program import Loop, Reference, Statement

if TYPE_CHECKING:
    from .partial_sums import PartialSums
    from .window import Window


@dataclass(frozen=True)
class Processor:
    """The processor that code is scheduled for.

    Attributes:
        lanes: numbers per vector; 1 if the compiler does not support vectors.
        registers: number of vector registers.
        fuses: whether a product and a sum are one operation (in fast mode only).
        is_fast: whether numbers may be computed in other ways that differ in last bits (fast mode).
        spreading: how many operations copy a number from memory to all lanes, beside the load.
        slack: how much more a register block may cost than the best one, if it is smaller. Each of its operations is a
            statement, and C compilers take long over many.
        neglected: the part of the work that nests may have together which keep their order: code that is to be there
            soon has plans for few nests, those with nearly all of the work.
    """

    lanes: int = 8
    registers: int = 32
    fuses: bool = False
    is_fast: bool = False
    spreading: float = 0.0
    slack: float = 1.0
    neglected: float = 0.0


#: Operations that cost more than an addition.
EXPENSIVE = {"divide": 4.0, "sqrt": 5.0, "exp": 12.0, "log": 12.0, "tanh": 25.0, "power": 25.0}
EXPENSIVE.update(dict.fromkeys(LIBRARY, 25.0))
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
        tiled: whether it is executed in tiles (passes/tiles.py); then `packed` is packed for each block of vectors.
        window: what it adds to, if that is kept in an array of its own (passes/window.py), or None.
        partial: how its sums are split first, in fast mode (passes/partial_sums.py), or None; what they become is
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
    return EXPENSIVE.get(statement.operation, 1.0)
