"""Which threads are tracing at the moment."""

from __future__ import annotations

import threading

from ..engine.precision import Precision

#: The threads that are inside a trace, with the precision of the trace.
tracing_threads: dict[int, Precision] = {}


def is_tracing() -> bool:
    """Whether this thread is inside a trace (a compiled step called there is recorded, not run)."""
    return bool(tracing_threads) and threading.get_ident() in tracing_threads
