"""Which threads are tracing at the moment, or making a plain call.

A step that is called in the trace of another one becomes part of it.  So it does where that other call is plain Python:
what it returns there has its graph.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

from ..base.interruption import with_cleanup
from .precision import Precision

T = TypeVar("T")

#: The threads that are inside a trace, with the precision of the trace; those inside a plain call have a negative sign.
#: While it is not empty, calls take the general path: also with an entry for no thread, while objects are detached.
tracing_threads: dict[int, Precision] = {}
#: Stands for no thread.
NO_THREAD = 0


def _forget_other_threads() -> None:
    """In the child of a fork there are none."""
    for thread in set(tracing_threads) - {threading.get_ident(), -threading.get_ident(), NO_THREAD}:
        del tracing_threads[thread]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


def is_tracing() -> bool:
    """Whether this thread is inside a trace (a compiled step called there is recorded, not run)."""
    return bool(tracing_threads) and threading.get_ident() in tracing_threads


def is_in_plain_call() -> bool:
    """Whether this thread is inside a plain call of a step, of which steps that are called there are a part."""
    return bool(tracing_threads) and -threading.get_ident() in tracing_threads


def during_plain_call(precision: Precision, call: Callable[[], T]) -> T:
    """`call()`, a plain call of a step of this precision."""
    me = -threading.get_ident()

    def work() -> T:
        tracing_threads[me] = precision
        return call()

    return with_cleanup(work, lambda: tracing_threads.pop(me, None))
