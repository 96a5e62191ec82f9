"""Run the instrumented code of a step on copies of its memory, to see how long each part takes.

1. Every region of memory is a copy of what the step's kernel has now: parameters, state, the arguments of its last
   call.  Indices that would be out of range, because that call has failed, are set to 0.
2. Each run begins with the same numbers, so that training many times does not lead anywhere else.
3. The time of a part is the median of its times in all runs, without that of the clock itself.
4. The clock may count anything: how long one of it takes is known from the first and the last time that it is read.

Nothing that the program can see is changed, and no random number is drawn.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import Any, Callable

from ..base import ffi
from ..compiler.codegen.clock import Clock
from ..compiler.codegen.layout import Layout
from ..compiler.codegen.python import load_python
from ..compiler.pipeline.pipeline import Lowered
from ..engine.state import zero_array
from ..ir.opcodes import PARAMETER
from ..ir.parameters import Layouts
from ..kernels.factory import Noted
from ..memory.buffers import aligned_zeros, memory_of, moving, state_numbers
from ..runtime.kernel import Kernel
from ..tracing.call.node import flat_view
from ..tracing.copies.copies import Copies

#: Seconds that the runs take together, about; and the fewest and the most runs.
_SECONDS = 0.25
_FEWEST, _MOST = 5, 300


class Measured:
    """How long the parts of a step take.

    Attributes:
        parts: in seconds.
        runs: how many runs there were.
    """

    def __init__(self, parts: list[float], runs: int) -> None:
        self.parts, self.runs = parts, runs

    @property
    def call(self) -> float:
        """How long all of them take, in seconds."""
        return sum(self.parts)


class Memory:
    """Copies of the memory of a kernel, for other code of the same step.

    Args:
        kernel: it is not changed.
        noted: the trace of the code.
        lowered, layout: the Program, and where its arrays lie.

    Raises:
        Moved: another thread has just moved the parameters.
    """

    def __init__(self, kernel: Kernel, noted: Noted, lowered: Lowered, layout: Layout) -> None:
        self._kernel, self._noted, self._trace = kernel, noted, noted.traced.trace
        self.precision = noted.plan.precision
        self.layout = layout
        arrays = [array_ for _, array_ in lowered.memory.regions[PARAMETER]]
        size = [array_.size if array_.joined is None else array_.joined.size for array_ in arrays]
        parameters = self._parameters(lowered)
        regions: dict[str, list[Any]] = {
            "parameter": [data for data, _ in parameters],
            "gradient": [gradient for _, gradient in parameters],
            "state": self._states(lowered.memory.layouts),
            "input": self._inputs(),
            "output": [zero_array(self._trace.outputs, self.precision)],
            "constant": [lowered.program.constants],
            "table": [layout.tables],
            "scratch": [aligned_zeros(layout.scratch_size, self.precision)],
        }
        assert [len(data) for data in regions["parameter"]] == size
        self.buffers = [regions[slot.space][slot.region] for slot in layout.slots]
        changed = ("parameter", "gradient", "state")
        views = [memoryview(regions[slot.space][slot.region]) for slot in layout.slots if slot.space in changed]
        self._kept = [(view, view.tobytes()) for view in (v.cast("B") for v in views if len(v))]

    def restore(self) -> None:
        """Put the numbers back that the code has changed."""
        for view, before in self._kept:
            view[:] = before

    def _parameters(self, lowered: Lowered) -> list[tuple[Any, Any]]:
        found = []
        if self._trace.new_parameters:
            move = self._noted.traced.move(lowered.memory.layouts)
            with moving:
                move.fill()
            found.append((move.storage.data, move.storage.grad))
        kernel, objects = self._kernel, self._noted.traced.objects
        instead = {id(self._noted.slots): kernel.values}  # what this trace has of its own
        if objects is not None and kernel.objects is not None:
            instead[id(objects.storage)] = kernel.objects.storage
        for _, bound in self._trace.bound_storages:
            storage = instead.get(id(bound)) or bound
            found.append((self._copy(storage.data), self._copy(storage.grad)))
        return found

    def _copy(self, numbers: Any) -> Any:
        copy = aligned_zeros(len(numbers), self.precision)
        copy[:] = numbers
        return copy

    def _states(self, layouts: Layouts) -> list[Any]:
        heap, packed = self._noted.traced.heap, self._kernel.frame.packed
        if heap.copied:  # its State belongs to this trace
            Copies(heap.state, heap.copied, array("q", [0]), heap.tables).copy_in(packed)
        found = []
        for region, (_, state) in enumerate(self._trace.states):
            numbers = state_numbers(len(state), self.precision, layouts.states.get(region, state._layout))
            for index, number in enumerate(state._buffer):
                numbers[index] = number
            found.append(memory_of(numbers))
        return found

    def _inputs(self) -> list[Any]:
        plan, frame = self._noted.plan, self._kernel.frame
        packed = array(self.precision.format, frame.packed)
        found: list[Any] = [packed]
        for node, buffer in zip(plan.buffers, frame.buffers):
            empty = array(_typecode(node.format), bytes(node.size * struct.calcsize(node.format)))
            if buffer is not None:
                memoryview(empty).cast("B")[:] = memoryview(buffer).cast("B")
            found.append(empty)
        for check in self._trace.checks:
            for node, buffer in zip(plan.buffers, found[1:]):
                if node.place <= check.input_index < node.place + node.size:
                    _limit(buffer, check.input_index - node.place, check.count)
            if check.input_index < plan.packed_size:
                _limit(packed, check.input_index, check.count)
        if self._noted.traced.draws.size:
            found.append(array(self.precision.format, self._kernel.drawn))
        return found


def _typecode(format: str) -> str:
    return "B" if format == "?" else format


def _limit(numbers: Any, place: int, count: int) -> None:
    if not 0 <= numbers[place] < count or numbers[place] != int(numbers[place]):
        numbers[place] = 0


def measure(memory: Memory, clock: Clock, library: ffi.Library | None, source: str) -> Measured:
    """Run instrumented code.

    Args:
        memory: for the code.
        clock: what it was emitted with.
        library: the code; None if it is Python.
        source: of the code.
    """
    run, take = _native(memory, clock, library) if library is not None else _in_python(memory, clock, source)
    rows: list[list[float]] = []
    began, first = perf_counter(), take()[-1]
    while len(rows) < _FEWEST or (len(rows) < _MOST and perf_counter() - began < _SECONDS):
        memory.restore()
        take()
        run()
        *counted, last = take()
        rows.append([max(0.0, count) for count in counted])
    unit = (perf_counter() - began) / max(last - first, 1e-9)
    rows = rows[1:]  # the first run has met cold caches
    return Measured([median(column) * unit for column in zip(*rows)], len(rows))


def _native(
    memory: Memory, clock: Clock, library: ffi.Library
) -> tuple[Callable[[], Any], Callable[[], Sequence[float]]]:
    block = ffi.PointerBlock(len(memory.buffers))
    for number, buffer in enumerate(memory.buffers):
        if len(buffer):
            block.set(number, buffer)
    counts = array("q", bytes(8 * (len(clock.parts) + 1)))
    own = ffi.PointerBlock(1)
    own.set(0, counts)
    read = library.bind("mgjit_clock", own)

    def take() -> Sequence[float]:
        read()
        return list(counts)

    return library.bind("mgjit_step", block), take


def _in_python(memory: Memory, clock: Clock, source: str) -> tuple[Callable[[], Any], Callable[[], Sequence[float]]]:
    step = load_python(source, clock)["step"]
    buffers: list[Any] = [
        buffer if slot.space != "input" or not len(buffer) else flat_view(buffer, slot.format)
        for slot, buffer in zip(memory.layout.slots, memory.buffers)
    ]
    buffers[memory.layout.slot_number("scratch")] = [0.0] * memory.layout.scratch_size
    return lambda: step(buffers), clock.take
