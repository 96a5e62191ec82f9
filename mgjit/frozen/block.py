"""One block for all numbers that a forward trace only reads: the weights.

Parameters, those that other kernels have moved, states and numbers of the user's objects lie in memories of their own
while a step trains.  Here they become the new parameters of one storage, one memory after the other.  So the same
model has the same code, trained or not, and all of it can be laid out for the forward pass (lift/layout.py).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..ir.opcodes import GRADIENT, NO_OPERAND, PARAMETER, STATE, leaf, leaf_index, leaf_kind
from ..ir.trace import NEW_BASE, Trace
from ..memory.buffers import ParameterStorage


class Part(NamedTuple):
    """Leaves that follow one another, and their numbers.

    Attributes:
        kind: PARAMETER, whose GRADIENT leaves belong to it, or STATE.
        start, size: the leaves.
        data, grad: the numbers, in the order of the leaves; a state has no `grad`.
    """

    kind: int
    start: int
    size: int
    data: Any
    grad: Any = None


def with_block(trace: Trace, parts: Sequence[Part]) -> tuple[Trace, ParameterStorage]:
    """The trace with all these leaves in one storage, which has their numbers, in its natural order."""
    storage = ParameterStorage(sum(part.size for part in parts), trace.precision)
    places, end = _Places(), 0
    for part in parts:
        places.ranges.append((part.kind, part.start, part.start + part.size, NEW_BASE + end))
        if part.kind == PARAMETER:
            places.ranges.append((GRADIENT, part.start, part.start + part.size, NEW_BASE + end))
        for into, numbers in ((storage.data, part.data), (storage.grad, part.grad)):
            if numbers is not None:
                into[end : end + part.size] = array(trace.precision.format, numbers)
        end += part.size

    def column(of: array[int]) -> array[int]:
        return array(of.typecode, [x if x >= NO_OPERAND else places[x] for x in of])

    parameters: list[tuple[int, Any]] = [(number, None) for number in sorted({NEW_BASE, NEW_BASE + end - 1})]
    moved = replace(
        trace,
        a=column(trace.a),
        b=column(trace.b),
        c=None if trace.c is None else column(trace.c),
        new_parameters=parameters if end else [],
    )
    return moved, storage


class _Places(dict[int, int]):
    """By leaf: the leaf that it becomes."""

    def __init__(self) -> None:
        super().__init__()
        self.ranges: list[tuple[int, int, int, int]] = []

    def __missing__(self, operand: int) -> int:
        kind, index = leaf_kind(operand), leaf_index(operand)
        found = operand
        if kind in (PARAMETER, GRADIENT, STATE):
            for of, start, end, place in self.ranges:
                if of == kind and start <= index < end:
                    found = leaf(PARAMETER if kind == STATE else kind, place + index - start)
                    break
        self[operand] = found
        return found
