"""Which threads are tracing at the moment."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ..engine.precision import Precision

if TYPE_CHECKING:
    from .recorder import Recorder

#: The threads that are inside a trace, with the precision of the trace.
tracing_threads: dict[int, Precision] = {}
#: The recorders of their traces.
recorders: dict[int, Recorder] = {}


def is_tracing() -> bool:
    """Whether this thread is inside a trace (a compiled step called there is recorded, not run)."""
    return bool(tracing_threads) and threading.get_ident() in tracing_threads


def current_recorder() -> Recorder | None:
    """The recorder of the trace that this thread is inside of."""
    return recorders.get(threading.get_ident()) if recorders else None
