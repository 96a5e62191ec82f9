"""Undo a call for which one output says that plain Python may have raised an error.

The code has then run, but nothing has been copied back to the user's objects.  What it has written into parameters,
gradients and state, and the states of the generators that it has drawn from, are saved before each call.  Code that
asks first (compiler/simplify/ask_first.py) has written nothing.
"""

from __future__ import annotations

import ctypes
import struct
from itertools import chain
from typing import TYPE_CHECKING, Any, Callable

from ..base.interruption import with_cleanup
from ..engine.leaks import PlainCall
from ..tracing.draws.saved import SavedStates

if TYPE_CHECKING:
    from array import array

    from ..compiler.build.code import Code
    from .kernel import Kernel

#: So many memories are copied by a statement each.
_MOST_STATEMENTS = 8
#: What a quick call returns when it was undone.
UNDONE = object()


def written(code: Code) -> list[int]:
    """The slots of what code writes, beside outputs and scratch."""
    return [k for k, slot in enumerate(code.slots) if slot.space in ("parameter", "gradient", "state")]


class Undone(PlainCall):
    """The call was undone: plain Python may raise an error where the kernel has computed an infinity or nan."""

    def __init__(self) -> None:
        super().__init__("an operation has no finite result, where Python may raise an error: that call was undone")


class Missed(PlainCall):
    """The call was undone: it is one for another path than that of the kernel, whose `missed` says why."""

    def __init__(self) -> None:
        super().__init__("its numbers take a path that no kernel is for")


class Undo:
    """What the calls of a kernel may have to undo.

    Args:
        kernel: whose buffers are saved; another code of it needs another object.
        whatever: whether calls are undone that were for this kernel, too.
    """

    def __init__(self, kernel: Kernel, whatever: bool = False) -> None:
        self._kernel = kernel
        slots = written(kernel.code) if whatever or not kernel.code.asks_first else []
        views = [memoryview(kernel.buffers[k]).cast("B") for k in slots if len(kernel.buffers[k])]
        self._pairs = [(memoryview(bytearray(len(view))), view) for view in views]
        self._verdict = kernel.verdict
        self._states = None if kernel.draws is None else SavedStates(kernel.draws.generators)

    def save(self) -> None:
        """Copy all memory that a call may change, before it."""
        for saved, view in self._pairs:
            saved[:] = view
        if self._states is not None:
            self._states.save()

    def saving(self, name_of: Callable[[Any], str]) -> list[str]:
        """Statements that do the same; `name_of` as of `SavedStates.saving`."""
        if len(self._pairs) > _MOST_STATEMENTS:
            return [f"{name_of(self.save)}()"]
        lines = [f"{name_of(saved)}[:] = {name_of(view)}" for saved, view in self._pairs]
        return lines if self._states is None else [*lines, *self._states.saving(name_of)]

    def restore(self) -> None:
        """Put the copies back, after a call that is undone; may be repeated."""
        for saved, view in self._pairs:
            view[:] = saved
        if self._states is not None:
            self._states.restore()

    def in_c(self, counter: array[int]) -> tuple[Any, ...]:
        """What a quick call in C takes, to undo a call that has been counted: addresses, and what keeps them valid."""
        exported = [ctypes.c_char.from_buffer(view) for pair in self._pairs for view in pair]
        addresses = iter(map(ctypes.addressof, exported))
        triples = [(saved, view, len(pair[0])) for pair, saved, view in zip(self._pairs, addresses, addresses)]
        packed = struct.pack(f"{3 * len(triples)}N", *chain.from_iterable(triples))
        undone = None if self._kernel.told else UNDONE
        return self._verdict, counter.buffer_info()[0], packed, undone, (self, exported, counter)

    def of_counted(self, counter: array[int]) -> Callable[[], object]:
        """A function that undoes a call that has been counted; it returns UNDONE."""
        kernel = self._kernel

        def undo() -> object:
            self.restore()
            if kernel.told:
                _note_miss(kernel)
            counter[0] -= 1
            return UNDONE

        return undo


def undoing(kernel: Kernel, work: Callable[[], Any], runs: list[Any]) -> None:
    """`work()`, which runs the code of a kernel; undone if that says that Python may have raised an error.

    Args:
        runs: gets an element from `work`, and loses it when the call is undone.

    Raises:
        Undone, Missed: it was; nothing has changed.
    """
    undo, is_undone = Undo(kernel), [False]
    undo.save()

    def run() -> None:
        work()
        is_undone[0] = kernel.outputs[kernel.verdict] != 0.0

    def finish() -> None:
        if is_undone[0]:
            undo.restore()
            runs.clear()

    with_cleanup(run, finish)
    if is_undone[0] and kernel.told:
        _note_miss(kernel)
        raise Missed
    if is_undone[0]:
        raise Undone


def _note_miss(kernel: Kernel) -> None:
    """Note which assumption does not hold, and what is so instead."""
    kernel.missed, kernel.instead = int(kernel.outputs[kernel.verdict]), kernel.outputs[kernel.verdict + 1]


def fails(kernel: Kernel) -> bool:
    """Whether a call, whose arguments have been accepted, is one for another path; nothing has changed behind it."""
    undo = Undo(kernel, whatever=True)
    undo.save()

    def run() -> None:
        if kernel.draw is not None:
            kernel.draw()
        kernel.run["step"]()
        _note_miss(kernel)

    with_cleanup(run, undo.restore)
    return kernel.missed != 0
