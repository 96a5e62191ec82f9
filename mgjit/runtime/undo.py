"""Undo a call whose last output says that plain Python may have raised an error.

The code has then run, but nothing has been copied back to the user's objects.  What it has written into parameters,
gradients and state, and the states of the generators that it has drawn from, are saved before each call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..interruption import with_cleanup
from ..record.leaks import PlainCall

if TYPE_CHECKING:
    from .kernel import Kernel

_WRITTEN = ("parameter", "gradient", "state")


class Undone(PlainCall):
    """The call was undone: plain Python may raise an error where the kernel has computed an infinity or nan."""

    def __init__(self) -> None:
        super().__init__("an operation has no finite result, where Python may raise an error: that call was undone")


def undoing(kernel: Kernel, work: Callable[[], Any], runs: list[Any]) -> None:
    """`work()`, which runs the code of a kernel; undone if that says that Python may have raised an error.

    Args:
        runs: gets an element from `work`, and loses it when the call is undone.

    Raises:
        Undone: it was; nothing has changed.
    """
    slots = [k for k, slot in enumerate(kernel.code.slots) if slot.space in _WRITTEN and len(kernel.buffers[k])]
    views = [memoryview(kernel.buffers[k]).cast("B") for k in slots]
    before = [bytes(view) for view in views]
    drawn = [] if kernel.draws is None else kernel.draws.states()

    def undo() -> None:
        if is_undone[0]:
            for view, content in zip(views, before):
                view[:] = content
            if kernel.draws is not None:
                kernel.draws.restore(drawn)
            runs.clear()

    is_undone = [False]

    def run() -> None:
        work()
        is_undone[0] = kernel.outputs[kernel.verdict] != 0.0

    with_cleanup(run, undo)
    if is_undone[0]:
        raise Undone
