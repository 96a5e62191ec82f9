"""The memory of a member: its numbers, as long as compiled code works on them.

A kernel works on the memory of the user's objects.  A member has memory of its own, of the same form, so that the code
of the kernel can work on it at the same time as on that of other members:

1. `take` copies what the kernel works on, while the member's numbers are in the user's objects: parameters, gradients,
   State, the numbers that the kernel copies from the user's objects, and the states of random generators.
2. `put` copies it back there.
3. `Bound` is the kernel's pointer block with the member's memory in it.  Inputs and results belong to a call
   (`Piece`), scratch memory to the thread that runs it.

Kernels of other lengths of the arguments work on the same memory; what they copy from the user's objects is handed over
place by place (`hand_over`).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from ...base import ffi
from ...memory.buffers import ParameterStorage, aligned_zeros
from ...runtime.kernel import Kernel
from ...runtime.loop import NativeRunner
from ...tracing.call.rows import Rows
from ...tracing.copies.copies import Copied, Copies
from ...tracing.draws.plan import restore_state


class Memory:
    """The numbers of a member.

    Args:
        kernels: those that have been found to fit this member.
    """

    def __init__(self, kernels: Sequence[Kernel] = ()) -> None:
        self._storages: dict[int, tuple[ParameterStorage, Any, Any]] = {}
        self._states: dict[int, tuple[array[float], array[float]]] = {}
        self._generators: dict[int, tuple[Any, Any]] = {}
        self._copies: Copies | None = None  # whose numbers `_copied` are
        self._copied: array[float] = array("d")
        self.kernels = list(kernels)

    def take(self, kernel: Kernel, anew: bool = False) -> None:
        """Copy what a kernel works on out of the user's objects.

        Args:
            anew: also what is here already.
        """
        for storage in kernel.parameters:
            if anew or id(storage) not in self._storages:
                self._storages[id(storage)] = storage, _copy(storage.data, storage), _copy(storage.grad, storage)
        for buffer in kernel.states():
            if anew or id(buffer) not in self._states:
                self._states[id(buffer)] = buffer, buffer[:]
        if kernel.copies is not None:
            kernel.copies.copy_in()
            self._copies, self._copied = kernel.copies, kernel.copies.numbers[:]
        if kernel.draws is not None:
            for generator, state in zip(kernel.draws.generators, kernel.draws.states()):
                if anew or id(generator) not in self._generators:
                    self._generators[id(generator)] = generator, state
        if not self._knows(kernel):
            self.kernels.append(kernel)

    def taken_anew(self, kernel: Kernel) -> Memory:
        """Other memory, with what a kernel has just changed in the user's objects, which were those of the member."""
        made = Memory(self.kernels)
        made._storages, made._states = dict(self._storages), dict(self._states)
        made._generators = dict(self._generators)
        made._copies, made._copied = self._copies, self._copied
        made.take(kernel, anew=True)
        return made

    def copied(self) -> Memory:
        """Other memory with the same numbers."""
        made = Memory(self.kernels)
        for key, (storage, data, grad) in self._storages.items():
            made._storages[key] = storage, _copy(data, storage), _copy(grad, storage)
        made._states = {key: (buffer, numbers[:]) for key, (buffer, numbers) in self._states.items()}
        made._generators = dict(self._generators)
        made._copies, made._copied = self._copies, self._copied[:]
        return made

    def has_same_generators(self, other: Memory) -> bool:
        """Whether the generators that are here are in the same states there."""
        return all(state == other._generators[key][1] for key, (_, state) in self._generators.items())

    def put(self) -> None:
        """Copy everything into the user's objects; may be repeated."""
        for storage, data, grad in self._storages.values():
            storage.data[:], storage.grad[:] = data, grad
        for buffer, numbers in self._states.values():
            buffer[:] = numbers
        for generator, state in self._generators.values():
            restore_state(generator, state)
        if self._copies is not None:
            self._copies.copy_in()
            self._copies.numbers[:] = self._copied
            self._copies.show()

    def hand_over(self, kernel: Kernel) -> bool:
        """Let a kernel that fits this member go on with it; returns False if it needs what is not here yet."""
        draws = [] if kernel.draws is None else kernel.draws.generators
        is_here = (
            all(id(storage) in self._storages for storage in kernel.parameters)
            and all(id(buffer) in self._states for buffer in kernel.states())
            and all(id(generator) in self._generators for generator in draws)
        )
        if not (is_here and self._knows(kernel)):
            return False
        if kernel.copies is None or kernel.copies is self._copies:
            return True
        moves = None if self._copies is None else _moves(self._copies, kernel.copies)
        if moves is None:
            return False
        numbers = kernel.copies.numbers[:]
        for start, end, count in moves:
            numbers[end : end + count] = self._copied[start : start + count]
        for part in kernel.copies.parts:
            part.check_indices(numbers[part.offset : part.offset + part.count])
        self._copies, self._copied = kernel.copies, numbers
        return True

    def is_of(self, kernel: Kernel) -> bool:
        """Whether what a kernel copies from the user's objects is here as that kernel left it."""
        return kernel.copies is None or kernel.copies is self._copies

    def would_lose(self, kernel: Kernel) -> bool:
        """Whether a kernel does not copy all that the one before has assigned."""
        if self._copies is None or kernel.copies is None:
            return False
        if self._copies.built.places:
            return kernel.copies is not self._copies
        copied = set(map(_identity, kernel.copies.parts))
        return any(part.assigned and _identity(part) not in copied for part in self._copies.parts)

    def _knows(self, kernel: Kernel) -> bool:
        return any(kernel is known for known in self.kernels)

    def drawn(self, kernel: Kernel, count: int) -> tuple[array[float], list[Any]]:
        """What the member draws in its next calls, and the states of the generators after them.

        The generators themselves are left somewhere else: whoever calls this restores them.
        """
        assert kernel.draws is not None
        kernel.draws.restore([self._generators[id(generator)][1] for generator in kernel.draws.generators])
        numbers = kernel.draws.rows(count, kernel.frame.packed.typecode)
        return numbers, kernel.draws.states()

    def note_drawn(self, kernel: Kernel, states: Sequence[Any]) -> None:
        """The generators are in these states now."""
        if kernel.draws is None:
            return
        for generator, state in zip(kernel.draws.generators, states):
            self._generators[id(generator)] = generator, state

    def buffer(self, kernel: Kernel, number: int) -> Any:
        """What the member has in place of a buffer of the kernel's; None for what is not the member's."""
        slot, buffer = kernel.code.slots[number], kernel.buffers[number]
        if slot.space == "parameter":
            return self._storages[id(kernel.parameters[slot.region])][1]
        if slot.space == "gradient":
            return self._storages[id(kernel.parameters[slot.region])][2]
        if slot.space != "state":
            return None
        if kernel.copies is not None and buffer is kernel.copies.numbers:
            return self._copied
        return self._states[id(buffer)][1]


class Bound:
    """A kernel whose code works on the memory of a member, or on its own memory, but with other scratch memory."""

    def __init__(self, kernel: Kernel, memory: Memory | None = None) -> None:
        self.kernel, self.memory = kernel, memory
        self.outputs, self.frame = kernel.outputs, kernel.frame
        self.draws = None if kernel.draws is None else Drawn(kernel.draws.size)

    def pointer_block(self) -> ffi.PointerBlock:
        """A new block of pointers to the member's memory; scratch memory is missing."""
        kernel = self.kernel
        block = ffi.PointerBlock(len(kernel.buffers))
        for number, shared in enumerate(kernel.buffers):
            own = None if self.memory is None else self.memory.buffer(kernel, number)
            buffer = shared if own is None else own
            if buffer is not None and len(buffer) and kernel.code.slots[number].space != "scratch":
                block.set(number, buffer)
        return block

    def slot(self, space: str, region: int) -> int:
        """The number of the slot of a region of memory."""
        return self.kernel.slot(space, region)


class Drawn:
    """Random numbers that have been drawn, in place of the plan by which they are drawn."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.numbers: array[float] = array("d")

    def rows(self, count: int, typecode: str) -> array[float]:
        """Those of the next calls."""
        return self.numbers


class Scratch:
    """Scratch memory of a kernel for each of several threads."""

    def __init__(self, kernel: Kernel, threads: int) -> None:
        self.threads = threads
        size, precision = kernel.code.scratch_size, kernel.plan.precision
        self.blocks = [aligned_zeros(size, precision) for _ in range(threads if size else 0)]
        self.slot = kernel.slot("scratch", 0)


class Piece:
    """Rows that are run through the code of a kernel, some at a time, in any thread.

    Args:
        bound: the kernel, and the memory that it works on. rows: the rows.
        scratch: for each thread. outputs: gets what the rows return.

    Attributes:
        kernel, code: that run them. memory: on which they work.
    """

    def __init__(self, bound: Bound, rows: Rows, scratch: Scratch, outputs: Any) -> None:
        kernel = self.kernel = bound.kernel
        self.code, self.memory, self.outputs = kernel.code, bound.memory, outputs
        assert kernel.code.library is not None
        self._scratch, self._drawn = scratch, bound.draws
        self._runner = NativeRunner(kernel.code.library, bound, rows, outputs)
        self._end = 0

    @property
    def done(self) -> int:
        """How many rows have been run."""
        return self._runner.done

    def advance(self, count: int, drawn: array[float] | None) -> None:
        """Let `run` run so many more rows.

        Args:
            drawn: the random numbers of these rows.
        """
        self._end = self._runner.done + count
        if self._drawn is not None and drawn is not None:
            self._drawn.numbers = drawn

    def run(self, thread: int) -> None:
        """Run them in a thread; does nothing once that is done."""
        count = self._end - self._runner.done
        if count > 0:
            if self._scratch.blocks:
                self._runner.block.set(self._scratch.slot, self._scratch.blocks[thread])
            self._runner.run(count)


def _copy(buffer: Any, storage: ParameterStorage) -> Any:
    made = aligned_zeros(len(buffer), storage.precision)
    made[:] = buffer
    return made


def _moves(before: Copies, after: Copies) -> list[tuple[int, int, int]] | None:
    """How the numbers that one kernel copies lie in the State of another: (from, to, how many); None if they do not."""
    if before.built.places or after.built.places:
        return None
    known = {_identity(part): part for part in before.parts}
    wanted = {_identity(part): part for part in after.parts}
    if not wanted.keys() <= known.keys():
        return None
    for identity, part in known.items():
        if part.assigned and (identity not in wanted or _ints(part, part.integers) != _ints(
            wanted[identity], wanted[identity].given_integers
        )):  # fmt: skip
            return None
    return [(known[name].offset, part.offset, part.count * (1 + part.mixed)) for name, part in wanted.items()]


def _identity(part: Copied) -> Any:
    return part.place.key, part.size, part.mixed


def _ints(part: Copied, offsets: frozenset[int]) -> set[int]:
    """Which numbers of a part are ints."""
    return {offset - part.offset for offset in offsets if offset in part.offsets}
