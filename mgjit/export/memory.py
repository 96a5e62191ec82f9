"""What the memory of an exported step holds at first: parameters, gradients and state, in their natural order.

In the process, parameters lie in the layout that suits the kernels that use them.  An export has them in the order in
which they were made, whether or not the step has been called before: so its text is the same.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..engine.state import zeros
from ..ir.parameters import NATURAL
from ..ir.trace import Trace
from ..kernels.factory import Maker
from ..memory.buffers import ParameterStorage
from ..tracing.copies.copies import Copies
from ..tracing.tracer.tracer import TracedCall


@dataclass
class Contents:
    """Copies of all numbers that a traced step works on.

    Attributes:
        trace: the trace, whose parameters lie in their natural order.
        parameters, gradients, states: an array for each region.
    """

    trace: Trace
    parameters: list[array[float]]
    gradients: list[array[float]]
    states: list[array[float]]


def contents(traced: TracedCall, maker: Maker) -> Contents:
    """The numbers that a traced step would work on if it was called now; nothing of the user's changes."""
    trace = traced.trace
    heap = traced.heap
    if heap.copied:
        Copies(heap.state, heap.copied, array("q", [0]), heap.tables).copy_in()
    storages, states = maker.filled(traced, NATURAL)
    return Contents(
        _as_new(trace),
        [natural(storage, storage.data) for storage in storages],
        [natural(storage, storage.grad) for storage in storages],
        [array(trace.precision.format, buffer) for buffer in states],
    )


def _as_new(trace: Trace) -> Trace:
    """The trace as it would be had no kernel moved its parameters; where several have, only without their layouts.

    State has no layout either.
    """
    states = [(start, zeros(len(state)) if state._layout is not None else state) for start, state in trace.states]
    trace = replace(trace, states=states)
    if len(trace.bound_storages) == 1 and not trace.new_parameters:
        base, storage = trace.bound_storages[0]
        ends = [(base, None), (base + len(storage) - 1, None)]
        return replace(trace, new_parameters=ends, bound_storages=[])
    bound = [(base, ParameterStorage(len(storage), trace.precision)) for base, storage in trace.bound_storages]
    return replace(trace, bound_storages=bound, has_pointers=False)


def natural(storage: ParameterStorage, numbers: Sequence[Any]) -> array[float]:
    """The parameters or gradients of a storage in their natural order."""
    form = storage.precision.format
    if storage.layout is None:
        return array(form, numbers)
    found: array[float] = array(form, bytes(storage.precision.size * len(storage)))
    for block in storage.layout.blocks:
        for row in range(block.rows):
            start = block.base + row * block.row_step
            places = range(block.position(row, 0), block.position(row, block.columns), block.column_stride)
            for number, place in enumerate(places, start):
                found[number] = numbers[place]
    return found
