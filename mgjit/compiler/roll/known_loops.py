"""The loops of blocks, which need not be searched for: layers of `mgjit.nn` know them (record/blocks.py).

They are those that the search (roll/roll.py) would find among the records of a block:

1. Inputs of one kind that follow each other are a loop over pairs of a product and an addition, if there are enough.
2. The neurons are a loop, if there are enough.
3. What reaches a neuron, and where parameters and inputs lie, must not make the first or last iteration a stranger
   among the others: such a block is searched as anything else is.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from ...ir.opcodes import KIND_OF_TOP_BYTE
from ...ir.trace import Block, Trace

#: A loop of a short period has so many iterations at least.
FEWEST = 4


class Dimension(Protocol):
    """A loop around a record: iterations `low .. high-1`, `period` records apart."""

    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...
    @property
    def period(self) -> int: ...


class KnownLoops(NamedTuple):
    """The loops of a block.

    Attributes:
        stretches: how many inputs of one kind follow each other.
    """

    block: Block
    stretches: tuple[int, ...]

    @property
    def is_nest(self) -> bool:
        """Whether the neurons are a loop."""
        return self.block.neurons >= FEWEST


def known_loops(trace: Trace, marks: Sequence[int] | None) -> list[KnownLoops]:
    """The loops of the blocks of a trace, where they are known."""
    regular: dict[tuple[int, int], array[int]] = {}
    found = (_loops(trace, block, marks, regular) for block in trace.blocks)
    return [loops for loops in found if loops is not None]


def operand_kinds(column: array[int]) -> bytes:
    """The kinds of operands."""
    top = 3 if sys.byteorder == "little" else 0
    return column.tobytes()[top::4].translate(KIND_OF_TOP_BYTE)


def _loops(
    trace: Trace, block: Block, marks: Sequence[int] | None, regular: dict[tuple[int, int], array[int]]
) -> KnownLoops | None:
    period = block.period
    if marks is not None and len(set(marks[block.start + period - 1 : block.end : period])) > 1:
        return None
    operands = block.operands(trace.b)
    kinds = operand_kinds(operands)
    stretches = [len(list(same)) for _, same in groupby(kinds)] if kinds.strip(kinds[:1]) else [len(kinds)]
    if max(stretches) < FEWEST and block.neurons < FEWEST:
        return None
    first = 0
    for length in stretches:
        if _has_strangers(operands[first : first + length]):
            return None
        first += length
    for neuron in range(block.start, block.end, period):
        weights = trace.a[neuron : neuron + 2 * block.inputs : 2]
        key = weights[0], block.inputs
        if regular.get(key) != weights:
            if not _are_consecutive(weights):
                return None
            regular[key] = weights
    firsts = trace.a[block.start : block.end : period], trace.a[block.start + 1 : block.end : period]
    return None if any(map(_has_strangers, firsts)) else KnownLoops(block, tuple(stretches))


def _are_consecutive(operands: array[int]) -> bool:
    """Whether leaves follow each other in memory."""
    first = operands[0]
    return operands == array("i", range(first, first - len(operands), -1))


def _has_strangers(operands: array[int]) -> bool:
    """Whether the first or the last operand breaks the steps of the three next to it."""
    return any(
        len(part) == FEWEST and part[1] - part[2] == part[2] - part[3] != part[0] - part[1]
        for part in (operands[:FEWEST], operands[: -FEWEST - 1 : -1])
    )


class KnownSteps:
    """What is known of the operands of blocks: along which loops they change by the same step everywhere.

    Args:
        blocks: of a trace.
        right: its column of second operands.
    """

    def __init__(self, blocks: Sequence[Block], right: array[int]) -> None:
        self._right = right
        self._blocks = {block.start: block for block in blocks}
        self._starts = list(self._blocks)

    def of(self, column: array[int], origin: int, dimensions: Sequence[Dimension]) -> frozenset[int]:
        """The numbers of these loops.

        Args:
            column: of the operands.
            origin: the record of the first iteration.
            dimensions: the loops around it.
        """
        number = bisect_right(self._starts, origin) - 1
        block = self._blocks[self._starts[number]] if number >= 0 else None
        if block is None or origin >= block.end:
            return frozenset()
        offset = (origin - block.start) % block.period
        neurons = inputs = None
        for k, d in enumerate(dimensions):
            last = origin + (d.high - d.low - 1) * d.period
            if d.period == block.period and last < block.end:
                neurons = k
            elif d.period == 2 and offset + last - origin < 2 * block.inputs:
                inputs = k
        outer = [d for k, d in enumerate(dimensions) if k not in (neurons, inputs)]
        if neurons is None or not self._are_alike(block, outer):
            return frozenset()
        is_right, is_product = column is self._right, offset % 2 == 0 and offset < 2 * block.inputs
        if is_product:
            return frozenset((neurons,)) if is_right else frozenset()  # each neuron has the same inputs
        if not is_right and offset == 1:  # the bias, and what follows on it
            return frozenset()
        return frozenset((neurons,) if inputs is None else (neurons, inputs))

    def repeated(self, start: int, period: int, count: int) -> list[Block]:
        """The blocks in one iteration of a loop that has the same ones in all of them."""
        low, high = bisect_left(self._starts, start), bisect_left(self._starts, start + period)
        blocks = [self._blocks[at] for at in self._starts[low:high]]
        end = start + period
        return [
            block
            for block in blocks
            if block.end <= end and all(self._form(block.start + k * period) == block[1:] for k in range(1, count))
        ]

    def _form(self, start: int) -> tuple[int, ...] | None:
        block = self._blocks.get(start)
        return None if block is None else block[1:]

    def _are_alike(self, block: Block, outer: Sequence[Dimension]) -> bool:
        """Whether there is a block of the same form in all iterations of the loops around one."""
        starts = [block.start]
        for d in outer:
            starts = [start + k * d.period for start in starts for k in range(d.high - d.low)]
        return all(self._form(start) == block[1:] for start in starts)
