"""Kernels: loaded machine code (or generated Python) together with the memory that it works on.

`Code` is what can be shared and cached: functions of one pointer block, and what the block must contain.
`Kernel` is one step's instance of it: the block filled with this step's parameters, state and inputs.
"""

from __future__ import annotations

import base64
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from ..codegen.layout import Layout, Slot
from ..codegen.python import load_python
from ..engine.state import State, zero_array
from ..errors import IndexRangeError
from ..passes.layout import ParameterLayout
from ..passes.pipeline import Lowered
from ..trace.arguments import Frame
from ..trace.recorder import IndexCheck
from ..trace.results import ResultTree
from ..trace.signature import ArgumentPlan
from . import ffi
from .buffers import ParameterStorage, aligned_zeros

PHASES = ("forward", "backward", "update", "step")


@dataclass
class Code:
    """The executable form of a Program.

    Attributes:
        slots: what each pointer of the block points at.
        scratch_size: elements of scratch memory.
        constants, tables: contents of the blocks that belong to the code.
        library: the loaded shared object, or None for Python code.
        source: C or Python.
    """

    slots: list[Slot]
    scratch_size: int
    constants: array[float]
    tables: array[int]
    library: ffi.Library | None
    source: str
    facts: dict[str, Any] = field(default_factory=dict)
    parameter_layout: ParameterLayout | None = None

    @classmethod
    def of_lowered(cls, lowered: Lowered, layout: Layout, source: str) -> Code:
        """Code for a freshly generated source, which is not loaded yet."""
        constants, parameters = lowered.program.constants, lowered.memory.layout
        return cls(layout.slots, layout.scratch_size, constants, layout.tables, None, source, {}, parameters)

    def metadata(self) -> dict[str, Any]:
        """What a cache entry needs besides the binary and the source, as JSON."""
        return {
            "slots": [list(slot) for slot in self.slots],
            "scratch_size": self.scratch_size,
            "constants": base64.b64encode(self.constants.tobytes()).decode("ascii"),
            "tables": base64.b64encode(self.tables.tobytes()).decode("ascii"),
            "facts": self.facts,
            "parameter_layout": None if self.parameter_layout is None else self.parameter_layout.to_json(),
        }

    @classmethod
    def of_metadata(cls, metadata: dict[str, Any], library: ffi.Library, source: str) -> Code:
        """Code from a cache entry."""
        slots = [Slot(*slot) for slot in metadata["slots"]]
        constants: array[float] = array(next(slot.format for slot in slots if slot.space == "constant"))
        constants.frombytes(base64.b64decode(metadata["constants"]))
        tables = array("i")
        tables.frombytes(base64.b64decode(metadata["tables"]))
        stored = metadata["parameter_layout"]
        layout = None if stored is None else ParameterLayout.of_json(stored)
        return cls(slots, metadata["scratch_size"], constants, tables, library, source, metadata["facts"], layout)


class Kernel:
    """Code bound to the memory of one step and one argument structure."""

    def __init__(
        self,
        code: Code,
        plan: ArgumentPlan,
        parameters: Sequence[ParameterStorage],
        states: Sequence[State],
        outputs: int,
        checks: Sequence[IndexCheck],
        result: ResultTree,
        values: ParameterStorage | None,
    ) -> None:
        self.code, self.plan, self.result = code, plan, result
        self.frame: Frame = plan.frame()
        self.outputs = zero_array(outputs, plan.precision)
        self.values = values
        self._checks = checks
        self.parameters, self._states = parameters, states
        #: Whether a call has anything to do besides filling the frame.
        self.needs_accepting = bool(checks or plan.buffers or values is not None)
        memory: dict[str, Any] = {
            "parameter": [storage.data for storage in parameters],
            "gradient": [storage.grad for storage in parameters],
            "state": [state._buffer for state in states],
            "input": [self.frame.packed, *([None] * len(plan.buffers))],
            "output": [self.outputs],
            "constant": [code.constants],
            "table": [code.tables],
            "scratch": [aligned_zeros(code.scratch_size, plan.precision)],
        }
        buffers = [memory[slot.space][slot.region] for slot in code.slots]
        self._buffer_slots = [
            number for number, slot in enumerate(code.slots) if slot.space == "input" and slot.region > 0
        ]
        if code.library is not None:
            self._start_native(buffers)
        else:
            self._start_python(buffers)

    def _start_native(self, buffers: list[Any]) -> None:
        assert self.code.library is not None
        block = ffi.PointerBlock(len(buffers))
        for number, buffer in enumerate(buffers):
            if buffer is not None and len(buffer):
                block.set(number, buffer)
        self._set_buffer: Callable[[int, Any], None] = block.set
        library = self.code.library
        self.run: dict[str, Callable[[], Any]] = {name: library.bind(f"mgjit_{name}", block) for name in PHASES}
        self.step = self.run["step"]

    def _start_python(self, buffers: list[Any]) -> None:
        scratch = next(number for number, slot in enumerate(self.code.slots) if slot.space == "scratch")
        buffers[scratch] = [0.0] * self.code.scratch_size  # a list is faster than an array here

        def set_buffer(number: int, buffer: Any) -> None:
            buffers[number] = flat_view(buffer, self.code.slots[number].format)

        def bound(function: Callable[[Any], None]) -> Callable[[], None]:
            return lambda: function(buffers)

        self._set_buffer = set_buffer
        self.run = {name: bound(function) for name, function in load_python(self.code.source).items()}
        self.step = self.run["step"]

    def accept(self) -> None:
        """Take the arguments that are in the frame: check indices, pass buffers, copy Values in.

        Raises:
            IndexRangeError: a run-time index is out of range; nothing has been written.
        """
        for check in self._checks:
            self._check(check)
        for number, buffer in zip(self._buffer_slots, self.frame.buffers):
            self._set_buffer(number, buffer)
        if self.values is not None:
            for index, value in enumerate(self.frame.values):
                self.values.data[index] = value.data
                self.values.grad[index] = value.grad

    def finish(self) -> Any:
        """Copy argument Values back and build the result."""
        if self.values is not None:
            for index, value in enumerate(self.frame.values):
                value.data = self.values.data[index]
                value.grad = self.values.grad[index]
        return self.result(self.outputs)

    def _check(self, check: IndexCheck) -> None:
        number = self._input(check.input_index)
        if not (0 <= number < check.count and number == int(number)):
            raise IndexRangeError(
                f"{check.location}: the index {number:g} is not an integer in 0 .. {check.count - 1}. "
                "Nothing was computed or written."
            )

    def _input(self, index: int) -> float:
        if index < self.plan.packed_size:
            return self.frame.packed[index]
        for node in self.plan.buffers:
            if node.place <= index < node.place + node.size:
                view = flat_view(self.frame.buffers[node.region], node.format)
                return self.plan.precision.rounded(view[index - node.place])
        raise AssertionError("an index that is no input")


def flat_view(buffer: Any, format: str) -> memoryview:
    """A contiguous buffer as one row of elements of a struct format."""
    return memoryview(buffer).cast("B").cast(format)  # type: ignore[call-overload, no-any-return]
