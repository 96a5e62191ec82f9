"""The sum of the gradients and results of rows, computed without touching what the program sees.

1. The kernel gets a pointer block of its own, in which gradients and outputs point at private memory.  Parameters and
   state are those of the step: its forward and backward phases only read them (record/separation.py).
2. The gradients that are added up are a few parts of the storages, most often one: everything from the first place to
   the last.  What lies between two of them and is no parameter, such as padding, is added up as well.
3. `add_rows` runs forward and backward for each row, and adds these parts and the outputs to a block of sums: in C, by
   an entry of the generated code (codegen/entries.py), or in Python.
4. `write_mean` divides the sums, and writes them into the gradients of the step.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import repeat
from operator import add, truediv
from typing import Any, NamedTuple

from ..call.rows import Rows
from ..errors import SeparationError, user_location
from ..runtime import ffi
from ..runtime.buffers import ParameterStorage, aligned_zeros
from ..runtime.kernel import Kernel
from ..runtime.loop import in_chunks, moving_inputs


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
        if rows.count:
            kind = _PythonSums if self._kernel.code.library is None else _NativeSums
            runner = kind(self._kernel, rows, sums, draws, self)
            for _ in in_chunks(self._kernel, runner, rows.count):
                pass

    def memory(self) -> list[tuple[int, Any]]:
        """The slots of private memory, with that memory."""
        kernel = self._kernel
        found = [(kernel.slot("gradient", region), own) for region, own in enumerate(self._gradients)]
        return [*found, *([(kernel.slot("output", 0), self._outputs)] if self._outputs else [])]

    def add(self, sums: array[float], others: array[float]) -> None:
        """Add other sums, and what lies behind them, to sums."""
        library = self._kernel.code.library
        if library is None:
            sums[:] = array(self._format, map(add, sums, others))
            return
        block = ffi.PointerBlock(3)
        for number, memory in enumerate((sums, others, array("q", [len(sums)]))):
            block.set(number, memory)
        library.function("mgjit_add")(block)

    def write_mean(self, sums: array[float], count: int) -> None:
        """Write the sums, divided by the number of rows, into the gradients and the outputs of the kernel."""
        kernel = self._kernel
        if kernel.code.library is not None:
            block = ffi.PointerBlock(4)
            block.set_block(0, kernel.pointer_block())
            for number, memory in enumerate((self.numbers(0, []), sums, array("d", [count])), 1):
                block.set(number, memory)
            kernel.code.library.function("mgjit_mean")(block)
            return
        place = 0
        for slot, start, length, _ in self._plan:
            mean = map(truediv, sums[place : place + length], repeat(count))
            kernel.buffers[slot][start : start + length] = array(self._format, mean)
            place += length

    def numbers(self, count: int, moves: Sequence[int]) -> array[int]:
        """The integers that the entries of the generated code take."""
        parts = [number for part in self._plan for number in part]
        return array("q", [count, 0, len(self._plan), len(moves) // 2, *parts, *moves])

    @property
    def plan(self) -> Sequence[tuple[int, int, int, int]]:
        """Slot, first element and length of each part, and whether it is cleared after a row."""
        return self._plan


class _NativeSums:
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

    @property
    def done(self) -> int:
        return self._numbers[1]

    def run(self, count: int) -> None:
        self._numbers[0] = count
        self._call()


class _PythonSums:
    """Rows through generated Python."""

    def __init__(self, kernel: Kernel, rows: Rows, sums: array[float], draws: array[float] | None, of: RowSums) -> None:
        self.done = 0
        self._sums, self._plan, self._format = sums, of.plan, sums.typecode
        self._phases = [kernel.functions["forward"], kernel.functions["backward"]]
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
