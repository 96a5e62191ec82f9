"""Running work without the garbage collector, which only costs time where much is allocated and little freed."""

from __future__ import annotations

import gc
from typing import Callable, TypeVar

from .interruption import with_cleanup

T = TypeVar("T")


def without_garbage_collection(work: Callable[[], T]) -> T:
    """Return `work()`, run with the garbage collector switched off; afterwards its state is restored."""
    enabled = gc.isenabled()

    def uncollected() -> T:
        gc.disable()
        return work()

    def restore() -> None:
        if enabled:
            gc.enable()

    return with_cleanup(uncollected, restore)


def leave_out() -> None:
    """Let the garbage collector look no more at what there is now, such as the objects that kernels keep.

    Of that, what becomes garbage with cycles is collected the next time.
    """
    if hasattr(gc, "freeze") and gc.isenabled():
        gc.unfreeze()
        gc.collect()
        gc.freeze()
