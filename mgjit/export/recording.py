"""Calls that an exported program repeats to check itself: their inputs, and what the compiled step makes of them.

1. The code of the step is found or built as for any call (build.py), so it has its own schedule, with vectors.
2. It runs on copies of the memory: no parameter, state or argument changes.
3. What is recorded are the results of each call, and the parameters and state after the last one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..base import ffi
from ..compiler.build.code import Code
from ..engine.state import zero_array
from ..kernels.factory import Maker
from ..memory.buffers import LaidOut, aligned_zeros, memory_of
from ..runtime.kernel import check_index
from ..tracing.call.node import Frame, flat_view
from ..tracing.call.plan import ArgumentPlan
from ..tracing.tracer.tracer import TracedCall
from .memory import natural


@dataclass
class Recording:
    """Recorded calls.

    Attributes:
        frames: the arguments of each call.
        results: of each call, all outputs.
        parameters, states: after the last call, an array for each region, in natural order.
    """

    frames: list[Frame]
    results: list[array[float]]
    parameters: list[array[float]]
    states: list[array[float]]


def record(maker: Maker, plan: ArgumentPlan, traced: TracedCall, frames: Sequence[Frame]) -> Recording:
    """Run the calls of some frames, one after the other.

    Args:
        maker: of the kernels of the step.
        plan: of the arguments.
        traced: the trace, whose memory is as `contents` has left it.
        frames: the arguments of the calls.

    Raises:
        IndexRangeError: a run-time index is out of range.
    """
    trace = traced.trace
    for frame in frames:
        for check in trace.checks:
            check_index(check, plan, frame)
    code = maker.code(trace, plan.regions(0))
    storages, numbers = maker.filled(traced, code.layouts)
    data, gradients = [_copy(s.data, plan) for s in storages], [_copy(s.grad, plan) for s in storages]
    states = [one.copy() if isinstance(one, LaidOut) else one[:] for one in numbers]
    outputs = zero_array(trace.outputs, plan.precision)
    packed = zero_array(plan.packed_size, plan.precision)
    memory: dict[str, Any] = {
        "parameter": data,
        "gradient": gradients,
        "state": list(map(memory_of, states)),
        "input": [packed, *([None] * len(plan.buffers))],
        "output": [outputs],
        "constant": [code.constants],
        "table": [code.tables],
        "scratch": [aligned_zeros(code.scratch_size, plan.precision)],
    }
    slots = [memory[slot.space][slot.region] for slot in code.slots]
    run = _native(code, slots) if code.library is not None else _python(code, slots)
    results = []
    for frame in frames:
        packed[:] = frame.packed
        for node in plan.buffers:
            slot = next(k for k, s in enumerate(code.slots) if (s.space, s.region) == ("input", node.region + 1))
            slots[slot] = flat_view(frame.buffers[node.region], node.format)
        run()
        results.append(outputs[:])
    found = [natural(storage, data_) for storage, data_ in zip(storages, data)]
    return Recording(list(frames), results, found, [one[:] for one in states])


def _copy(numbers: Sequence[float], plan: ArgumentPlan) -> Any:
    made = aligned_zeros(len(numbers), plan.precision)
    made[:] = numbers
    return made


def _native(code: Code, buffers: list[Any]) -> Callable[[], Any]:
    assert code.library is not None
    block = ffi.PointerBlock(len(buffers))
    bound = code.library.bind("mgjit_step", block)

    def run() -> None:
        for number, buffer in enumerate(buffers):
            if buffer is not None and len(buffer):
                block.set(number, buffer)
        bound()

    return run


def _python(code: Code, buffers: list[Any]) -> Callable[[], Any]:
    from ..compiler.codegen.python import load_python

    step = load_python(code.source)["step"]
    return lambda: step(buffers)
