"""What the tests of single stages share: trace a step, run it through some of the passes, interpret the result.

The oracle is the undecorated step itself: `Example.check` runs a Program in the reference interpreter on copies of
all memory, then the plain Python function on the real objects, and compares every bit.
"""

from __future__ import annotations

import inspect
import struct
from array import array as packed_array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from mgjit.compiler.codegen.layout import Layout
from mgjit.compiler.lift.folded import Folded
from mgjit.compiler.lift.memory import Memory
from mgjit.compiler.pipeline.order import PASSES, Work
from mgjit.compiler.roll.growing import roll_growing
from mgjit.compiler.roll.reach import reach
from mgjit.compiler.roll.roll import roll
from mgjit.compiler.toolchain.target import Processor
from mgjit.engine.precision import FLOAT32, FLOAT64, Precision
from mgjit.ir.interpreter import Interpreter
from mgjit.ir.opcodes import GRADIENT, INPUT, OUTPUT, PARAMETER, STATE
from mgjit.ir.parameters import ParameterLayout
from mgjit.ir.program import Array, Joined, Program
from mgjit.ir.trace import InputRegion
from mgjit.ir.verify import verify
from mgjit.memory.buffers import memory_of, state_numbers
from mgjit.tracing.call.plan import plan_arguments
from mgjit.tracing.tracer.tracer import trace_call

#: A processor with vectors of eight numbers, and one without vectors.
WIDE, SCALAR = Processor(lanes=8, registers=32), Processor(lanes=1, registers=12)


#: The names of the passes that every Program goes through.
STAGES = ["lift", *(one.name for one in PASSES)]


def bits(number: float) -> bytes:
    """The bit pattern of a float; all nans are one."""
    number = float(number)
    return b"nan" if number != number else struct.pack("<d", number)


def flat(result: Any) -> list[float]:
    """The numbers of a result tree, in order."""
    if isinstance(result, (list, tuple)):
        return [number for part in result for number in flat(part)]
    if isinstance(result, dict):
        return flat(list(result.values()))
    return [float(getattr(result, "data", result))]


class Example:
    """A traced call of a step."""

    def __init__(self, function: Callable[..., Any], *arguments: Any, precision: Precision = FLOAT64) -> None:
        self.function, self.arguments = function, arguments
        names = list(inspect.signature(function).parameters)
        self.plan = plan_arguments(names, arguments, frozenset(), precision=precision)
        call = trace_call(lambda traced: function(*traced), self.plan, None)
        self.trace, self.result = call.trace, call.result
        self.reach = reach(self.trace)
        buffers = [InputRegion(node.place, node.size, node.format) for node in self.plan.buffers]
        self.regions = [InputRegion(0, self.plan.packed_size, precision.format), *buffers]
        self.memory = Memory(self.trace, self.regions)
        self.grads = True

    def in_float32(self) -> Example:
        """The same call of a float32 step."""
        return Example(self.function, *self.arguments, precision=FLOAT32)

    def lower(
        self,
        until: str = "",
        rolled: bool = True,
        laid_out: bool = False,
        processor: Processor | None = WIDE,
        grads: bool = True,
        separate: bool = False,
        growing: bool = True,
    ) -> Program:
        """The Program after the pass `until`, or after all of them.

        Args:
            until: of `STAGES`.
            rolled: whether the trace is rolled first.
            laid_out: move the new parameters, as lift/layout.py wants them.
            processor: what is scheduled for.
            grads: whether gradients can be read after a whole step.
            separate: whether its phases are to be run separately.
            growing: whether loops may grow.
        """
        self.grads = grads
        assert not until or until in STAGES, until
        work = self._lifted(rolled, growing, processor, grads, separate)
        for one in () if until == "lift" else PASSES:
            if one.name != "layout" or laid_out:
                work.run(one)
            if one.name == until:
                break
        assert not laid_out or work.memory.layouts
        return self._result(work)

    def after_each_pass(self, rolled: bool) -> Iterator[tuple[str, Program]]:
        """The Programs that `lower` makes until one pass after the other, each made of the one before."""
        self.grads = True
        work = self._lifted(rolled)
        yield "lift", self._result(work)
        for one in PASSES:
            if one.name != "layout":
                work.run(one)
            yield one.name, self._result(work)

    def _lifted(
        self,
        rolled: bool,
        growing: bool = True,
        processor: Processor | None = WIDE,
        grads: bool = True,
        separate: bool = False,
    ) -> Work:
        if rolled and growing:
            trace, reached, forest = roll_growing(self.trace, self.reach)
        else:
            trace, reached = self.trace, self.reach
            forest = roll(trace, reached.marks) if rolled else list(range(len(trace)))
        folded = Folded(trace, self.regions, reached, forest)
        return Work(*folded.lifted(), processor, grads, separate, folded)

    def _result(self, work: Work) -> Program:
        self.memory = work.memory
        verify(work.program)
        return work.program

    def contents(self) -> dict[Array, Any]:
        """Copies of everything that the step may read or write, by array."""
        new = self.trace.new_parameters
        data: list[Any] = []
        gradients: list[Any] = []
        if new:
            places = [number - new[0][0] for number, _ in new]
            layout, size = self.memory.layouts.parameters, places[-1] + 1
            if layout is not None:
                places, size = layout.positions(places), layout.size
            data.append([0.0] * size)
            gradients.append([0.0] * size)
            for place, (_, value) in zip(places, new):
                data[0][place], gradients[0][place] = value.data, value.grad
        data += [list(storage.data) for _, storage in self.trace.bound_storages]
        gradients += [list(storage.grad) for _, storage in self.trace.bound_storages]
        frame = self.plan.frame()
        assert self.plan.pack(self.arguments, frame)
        inputs = [list(frame.packed), *(list(memoryview(buffer)) for buffer in frame.buffers)]
        states = []
        for region, (_, state) in enumerate(self.trace.states):
            numbers = state_numbers(len(state), FLOAT64, self._layout_of_state(region))
            numbers[:] = packed_array("d", state)
            states.append(list(memory_of(numbers)))
        rounded = self.plan.precision.rounded
        data, gradients, states = ([list(map(rounded, part)) for part in parts] for parts in (data, gradients, states))
        found: dict[int, list[Any]] = {
            PARAMETER: data, GRADIENT: gradients, STATE: states, INPUT: inputs, OUTPUT: [[0.0] * self.trace.outputs],
        }  # fmt: skip
        return {
            array: part
            for kind, parts in found.items()
            for array, part in by_array(self.memory.regions[kind], parts).items()
        }

    def places(self, array: Array) -> Sequence[int]:
        """The elements that anybody has; rows of parameters may have room behind them."""
        layout, new = self.memory.layouts.parameters, self.trace.new_parameters
        if array.joined is not None:
            joined = array.joined
            return [number * joined.pitch + k for number in range(len(joined.regions)) for k in range(joined.size)]
        if array.space == "state" and (beside := self._layout_of_state(array.region)) is not None:
            return beside.positions(range(len(self.trace.states[array.region][1])))
        own = [self.memory.regions[kind][0][1] for kind in (PARAMETER, GRADIENT) if self.memory.regions[kind]]
        if layout is None or array not in own:
            return range(array.size)
        return layout.positions([number - new[0][0] for number, _ in new])

    def _layout_of_state(self, region: int) -> ParameterLayout | None:
        state = self.trace.states[region][1]
        layout: ParameterLayout | None = self.memory.layouts.states.get(region, state._layout)
        return layout

    def run(self, program: Program) -> dict[Array, Any]:
        """What the reference interpreter leaves in memory."""
        contents = self.contents()
        Interpreter(program, contents).run()
        return contents

    def check(self, program: Program) -> None:
        """Compare the Program with the undecorated step, bit for bit; the step runs once."""
        self.compare(self.run(program))

    def compare(self, memory: dict[Array, Any]) -> None:
        """Run the undecorated step and compare all memory with it, gradients if wanted."""
        outputs = memory[self.memory.regions[OUTPUT][0][1]]
        expected = flat(self.function(*self.arguments))
        assert [bits(x) for x in flat(self.result(outputs))] == [bits(x) for x in expected]
        after = self.contents()
        for array, content in after.items():
            if array.space != "output" and (array.space != "gradient" or self.grads):
                found, wanted = ([part[k] for k in self.places(array)] for part in (memory[array], content))
                assert [bits(x) for x in found] == [bits(x) for x in wanted], array

    @staticmethod
    def buffers(layout: Layout, program: Program, memory: dict[Array, Any], given: Sequence[int] = ()) -> list[Any]:
        """The pointer block of a kernel, as lists, over `memory`; emitting code completes a layout."""
        by_slot: list[Any] = [None] * len(layout.slots)
        for array, number in layout.slot_of.items():
            if array in memory and array.joined is not None:
                for slot, part in zip(layout.slots_of[array], memory[array].parts):
                    by_slot[slot] = part
            elif array in memory:
                by_slot[number] = memory[array]
        by_slot[layout.slot_number("constant")] = list(program.constants)
        by_slot[layout.slot_number("table")] = list(layout.tables)
        by_slot[layout.slot_number("scratch")] = [0.0] * layout.scratch_size
        if program.given:
            by_slot[layout.slot_number("given")] = list(given)
        return by_slot


class JoinedMemory:
    """The memory of an array that is joined of several regions."""

    def __init__(self, joined: Joined, parts: Sequence[Any]) -> None:
        self.joined, self.parts = joined, parts

    def __len__(self) -> int:
        return self.joined.size * len(self.parts)

    def __iter__(self) -> Iterator[float]:
        return chain.from_iterable(self.parts)

    def __getitem__(self, index: int) -> float:
        number: float = self.parts[index // self.joined.pitch][index % self.joined.pitch]
        return number

    def __setitem__(self, index: int, number: float) -> None:
        self.parts[index // self.joined.pitch][index % self.joined.pitch] = number


def by_array(regions: Sequence[tuple[int, Array]], parts: Sequence[Any]) -> dict[Array, Any]:
    """The contents of regions of one kind, by array."""
    return {
        array: part if array.joined is None else JoinedMemory(array.joined, [parts[k] for k in array.joined.regions])
        for (_, array), part in zip(regions, parts)
    }


def numbers(count: int, seed: int = 1) -> list[float]:
    """Reproducible floats with all kinds of low bits, of both signs."""
    import random

    draw = random.Random(seed)
    return [draw.uniform(-1.0, 1.0) for _ in range(count)]


def sgd(parameters: Sequence[Any], rate: Any) -> None:
    """A plain update."""
    for p in parameters:
        p.data -= rate * p.grad
