"""Work that allocates much and frees little runs without the garbage collector, which would only look for cycles."""

from __future__ import annotations

import gc
from typing import Callable, TypeVar

from .interruption import with_cleanup

T = TypeVar("T")


def without_garbage_collection(work: Callable[[], T]) -> T:
    """`work()`, with the garbage collector switched off; afterwards it is as it was."""
    enabled = gc.isenabled()

    def uncollected() -> T:
        gc.disable()
        return work()

    def restore() -> None:
        if enabled:
            gc.enable()

    return with_cleanup(uncollected, restore)
