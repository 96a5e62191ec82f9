"""The recorders of the traces in progress; progress.py says which threads make them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .recorder import Recorder

#: By thread.
recorders: dict[int, Recorder] = {}


def current_recorder() -> Recorder | None:
    """The recorder of the trace that this thread is inside of."""
    return recorders.get(threading.get_ident()) if recorders else None
