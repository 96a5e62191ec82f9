"""The sum of the gradients and results of rows, computed without touching what the program sees.

1. The kernel gets a pointer block of its own, in which gradients and outputs point at private memory.  Parameters and
   state are those of the step: its forward and backward phases only read them (record/separation.py).
2. The gradients that are added up are a few parts of the storages, most often one: everything from the first place to
   the last.  What lies between two of them and is no parameter, such as padding, is added up as well.
3. `add_rows` runs forward and backward for each row, and adds these parts and the outputs to a block of sums: in C, by
   an entry of the generated code (codegen/entries.py), or in Python.
4. `write_mean` divides the sums, and writes them into the gradients of the step.
5. Of the first rows, and of some later ones, what the entries for rows, sums and means do is compared with the phases,
   row by row, and sums in Python.  If it is not the same, that is what is done from then on.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import add, truediv
from typing import Any, NamedTuple

from ..base import ffi
from ..errors import SeparationError, user_location
from ..memory.buffers import ParameterStorage, aligned_zeros
from ..runtime.kernel import Kernel
from ..runtime.loop import CountingRunner, in_chunks, moving_inputs
from ..tracing.call.rows import Rows
from ..verification.comparison import is_same
from ..verification.loops import copied

#: How many rows are compared with others.
_COMPARED = 3


class Part(NamedTuple):
    """Gradients that follow one another in a storage."""

    storage: ParameterStorage
    start: int
    length: int


def parts_of(kernel: Kernel) -> list[Part]:
    """The gradients that are added up."""
    found: list[Part] = []
    for storage, numbers in zip(kernel.parameters, kernel.separation.gradients):
        if not numbers:
            continue
        if len(numbers) == storage.size:
            found.append(Part(storage, 0, len(storage.grad)))
            continue
        own = sorted(storage.places(numbers))
        others = sorted(set(range(len(storage.grad))) - set(own) - set(_padding(storage)))
        found += [Part(storage, start, end - start) for start, end in _stretches(own, others)]
    return found


def _padding(storage: ParameterStorage) -> set[int]:
    """The places of a storage where no parameter lies."""
    if storage.layout is None:
        return set()
    return set(range(len(storage.grad))) - set(storage.places(range(storage.size)))


def _stretches(places: Sequence[int], others: Sequence[int]) -> list[tuple[int, int]]:
    """Stretches that contain all places and none of the others."""
    found: list[tuple[int, int]] = []
    barrier = iter([*others, max(places) + 1])
    next_other = next(barrier)
    for place in places:
        is_behind = not found
        while next_other < place:
            next_other, is_behind = next(barrier), True
        if is_behind:
            found.append((place, place + 1))
        else:
            found[-1] = found[-1][0], place + 1
    return found


class RowSums:
    """Adds up the gradients and outputs of rows through a kernel.

    Args:
        kernel: runs the phases of the step.
        parts: what is added up, in this order.

    Attributes:
        length: how many numbers a block of sums has: the gradients, then the outputs.
    """

    def __init__(self, kernel: Kernel, parts: Sequence[Part]) -> None:
        self._kernel, self._parts = kernel, list(parts)
        precision = kernel.plan.precision
        self._format = precision.format
        self._gradients = [aligned_zeros(len(storage.grad), precision) for storage in kernel.parameters]
        self._outputs = aligned_zeros(max(len(kernel.outputs), 1), precision)[: len(kernel.outputs)]
        regions = [self._region(part.storage) for part in self._parts]
        #: Slot, first element, length, and whether it is cleared after each row.
        self._plan = [
            (kernel.slot("gradient", region), part.start, part.length, 1) for region, part in zip(regions, self._parts)
        ]
        if self._outputs:
            self._plan.append((kernel.slot("output", 0), 0, len(self._outputs), 0))
        self.length = sum(length for _, _, length, _ in self._plan)
        self._by_c = True

    def _region(self, storage: ParameterStorage) -> int:
        for region, own in enumerate(self._kernel.parameters):
            if own is storage:
                return region
        raise SeparationError(f"{user_location()}: rows of different structure have different parameters.")

    def new(self, more: int = 0) -> array[float]:
        """A sum of no rows, with so many zeros behind it."""
        return array(self._format, [-0.0]) * self.length + array(self._format, [0.0]) * more

    def add_rows(self, rows: Rows, sums: array[float], draws: array[float] | None) -> None:
        """Add rows to sums.

        Args:
            rows: checked and packed.
            sums: as from `new`.
            draws: the random numbers that the rows draw, one row behind the other.
        """
        kernel, trial = self._kernel, self._kernel.loop_trial
        if not rows.count:
            return
        kind: Any = _PythonSums if kernel.code.library is None else _NativeSums
        if kernel.code.library is not None and trial is not None and not trial.passes(rows.count):
            count = min(rows.count, _COMPARED)
            self._by_c = trial.judges(count, lambda: self._difference(rows, count, draws))
            kind = kind if self._by_c else _PhaseSums
        runner = kind(kernel, rows, sums, draws, self)
        for _ in in_chunks(kernel, runner, rows.count):
            pass

    def _difference(self, rows: Rows, count: int, draws: array[float] | None) -> str:
        """How C adds up the first rows differently from Python, in words; empty if it does not."""
        some = rows.between(0, count)
        drawn = None if draws is None else draws[: count * (len(draws) // rows.count)]
        by_c, by_phases = self.new(1), self.new(1)
        _NativeSums(self._kernel, some, by_c, drawn, self).run(count)
        _PhaseSums(self._kernel, some, by_phases, drawn, self).run(count)
        found: list[tuple[str, Any, Any]] = [("sum", by_c, by_phases)]
        doubled = by_c[:]
        self._add_in_c(doubled, by_c)
        found.append(("sum of sums", doubled, array(self._format, map(add, by_c, by_c))))
        slots = {slot for slot, *_ in self._plan}
        ours, theirs = (
            {k: copied(self._kernel.buffers[k]).cast("B").cast(self._format) for k in slots} for _ in range(2)
        )
        self._write_mean_in_c(by_c, count, ours)
        self._write_mean_in_python(by_c, count, theirs)
        found += [("mean", ours[slot], theirs[slot]) for slot in slots]
        for what, one, other in found:
            different = [k for k, (x, y) in enumerate(zip(one, other)) if not is_same(x, y)]
            if different:
                k = different[0]
                return f"number {k} of the {what} is {other[k]!r} in single calls, and {one[k]!r} in a batch"
        return ""

    def memory(self) -> list[tuple[int, Any]]:
        """The slots of private memory, with that memory."""
        kernel = self._kernel
        found = [(kernel.slot("gradient", region), own) for region, own in enumerate(self._gradients)]
        return [*found, *([(kernel.slot("output", 0), self._outputs)] if self._outputs else [])]

    def add(self, sums: array[float], others: array[float]) -> None:
        """Add other sums, and what lies behind them, to sums."""
        if self._kernel.code.library is None or not self._by_c:
            sums[:] = array(self._format, map(add, sums, others))
        else:
            self._add_in_c(sums, others)

    def _add_in_c(self, sums: array[float], others: array[float]) -> None:
        library = self._kernel.code.library
        assert library is not None
        block = ffi.PointerBlock(3)
        for number, memory in enumerate((sums, others, array("q", [len(sums)]))):
            block.set(number, memory)
        library.function("mgjit_add")(block)

    def write_mean(self, sums: array[float], count: int) -> None:
        """Write the sums, divided by the number of rows, into the gradients and the outputs of the kernel."""
        kernel = self._kernel
        memory = {slot: kernel.buffers[slot] for slot, *_ in self._plan}
        if kernel.code.library is None or not self._by_c:
            self._write_mean_in_python(sums, count, memory)
        else:
            self._write_mean_in_c(sums, count, memory)

    def _write_mean_in_c(self, sums: array[float], count: int, memory: Mapping[int, Any]) -> None:
        library = self._kernel.code.library
        assert library is not None
        step = self._kernel.pointer_block()
        for slot, buffer in memory.items():
            step.set(slot, buffer)
        block = ffi.PointerBlock(4)
        block.set_block(0, step)
        for number, numbers in enumerate((self.numbers(0, []), sums, array("d", [count])), 1):
            block.set(number, numbers)
        library.function("mgjit_mean")(block)

    def _write_mean_in_python(self, sums: array[float], count: int, memory: Mapping[int, Any]) -> None:
        place = 0
        for slot, start, length, _ in self._plan:
            mean = map(truediv, sums[place : place + length], repeat(count))
            memory[slot][start : start + length] = array(self._format, mean)
            place += length

    def numbers(self, count: int, moves: Sequence[int]) -> array[int]:
        """The integers that the entries of the generated code take."""
        parts = [number for part in self._plan for number in part]
        return array("q", [count, 0, len(self._plan), len(moves) // 2, *parts, *moves])

    @property
    def plan(self) -> Sequence[tuple[int, int, int, int]]:
        """Slot, first element and length of each part, and whether it is cleared after a row."""
        return self._plan


class _NativeSums(CountingRunner):
    """Rows through C."""

    def __init__(self, kernel: Kernel, rows: Rows, sums: array[float], draws: array[float] | None, of: RowSums) -> None:
        block = kernel.pointer_block()
        moves: list[int] = []
        for slot, memory, stride in moving_inputs(kernel, rows):
            if len(memory):
                block.set(slot, memory)
                moves += [slot, stride]
        if draws is not None:
            slot = kernel.slot("input", len(rows.buffers) + 1)
            block.set(slot, draws)
            moves += [slot, draws.itemsize * len(draws) // rows.count]
        for slot, memory in of.memory():
            if len(memory):
                block.set(slot, memory)
        self._numbers = of.numbers(0, moves)
        everything = ffi.PointerBlock(3)
        everything.set_block(0, block)
        everything.set(1, self._numbers)
        everything.set(2, sums)
        assert kernel.code.library is not None
        self._call = kernel.code.library.bind("mgjit_rows", everything)


class _PythonSums:
    """Rows through generated Python, and sums in Python."""

    def __init__(self, kernel: Kernel, rows: Rows, sums: array[float], draws: array[float] | None, of: RowSums) -> None:
        self.done = 0
        self._sums, self._plan, self._format = sums, of.plan, sums.typecode
        self._phases = self._phases_of(kernel)
        self._memory = list(kernel.buffers)
        self._moves: list[tuple[int, Any, int]] = []
        moving = list(moving_inputs(kernel, rows))
        if draws is not None:
            moving.append(
                (kernel.slot("input", len(rows.buffers) + 1), draws, draws.itemsize * len(draws) // rows.count)
            )
        for slot, memory, stride in moving:
            form = kernel.code.slots[slot].format
            view = memory if isinstance(memory, array) else memoryview(memory).cast("B").cast(form)  # type: ignore[call-overload]
            self._memory[slot] = view
            if stride:
                self._moves.append((slot, view, stride // view.itemsize))
        for slot, memory in of.memory():
            self._memory[slot] = memory

    def _phases_of(self, kernel: Kernel) -> list[Callable[[Any], None]]:
        """What runs the phases on given memory."""
        return [kernel.functions["forward"], kernel.functions["backward"]]

    def run(self, count: int) -> None:
        memory = self._memory
        for row in range(self.done, self.done + count):
            for slot, view, size in self._moves:
                memory[slot] = view[row * size : (row + 1) * size]
            for phase in self._phases:
                phase(memory)
            place = 0
            for slot, start, length, is_cleared in self._plan:
                part = memory[slot][start : start + length]
                self._sums[place : place + length] = array(
                    self._format, map(add, self._sums[place : place + length], part)
                )
                if is_cleared:
                    memory[slot][start : start + length] = array(self._format, [0.0]) * length
                place += length
            self.done = row + 1


class _PhaseSums(_PythonSums):
    """Rows through the phases in C, and sums in Python."""

    def _phases_of(self, kernel: Kernel) -> list[Callable[[Any], None]]:
        block, library = kernel.pointer_block(), kernel.code.library
        assert library is not None
        entries = [library.bind(f"mgjit_{name}", block) for name in ("forward", "backward")]

        def run(memory: Any, call: Callable[[], int]) -> None:
            for slot, buffer in enumerate(memory):
                if buffer is not None and len(buffer):
                    block.set(slot, buffer)
            call()

        return [functools.partial(run, call=call) for call in entries]
