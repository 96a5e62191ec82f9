"""The kernels of all steps in this process."""

from __future__ import annotations

import atexit
import contextlib
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from .kernels import Kernels

#: One for each step that is still there.
KERNELS: WeakSet[Kernels] = WeakSet()


def _note_all_repaid() -> None:
    with contextlib.suppress(RuntimeError):  # threads that still run may add to the set
        for kernels in list(KERNELS):
            kernels.note_repaid()


atexit.register(_note_all_repaid)
