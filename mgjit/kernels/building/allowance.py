"""What a process that builds code may take: so much memory, and so much time; beyond, the step stays plain Python.

1. The address space of the process is limited to an eighth of the machine's memory, but not below 1.5 GB, where no more
   than half of the machine is needed for that.  The compilers that it runs have a limit of their own
   (toolchain/process.py).
2. A request that takes longer than `MOST_SECONDS` is interrupted by a timer.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

#: The longest that a request may take, in seconds; and when the program that has asked has ended.
MOST_SECONDS, MOST_SECONDS_AFTERWARDS = 300.0, 20.0
#: Bytes, and parts of the machine's memory.
_LEAST, _PART, _MOST_PART = 3 << 29, 1 / 8, 1 / 2


class OutOfTime(BaseException):
    """A request has taken too long.  No `except Exception` stops it on its way out."""


def most_memory() -> int:
    """The bytes of address space that a building process may have; 0 where the system does not tell."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0
    return int(min(max(_LEAST, _PART * there), _MOST_PART * there)) if there > 0 else 0


def limit_memory() -> int:
    """Limit this process, from now on; returns the bytes that it may have, 0 where there is no limit."""
    most = most_memory()
    if not most:
        return 0
    try:
        import resource  # which Windows does not have

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ImportError, ValueError, OSError):  # not on this system
        return 0
    return most


@contextlib.contextmanager
def limited_time(seconds: float) -> Iterator[None]:
    """Interrupt, in the main thread, what takes longer.

    Raises:
        OutOfTime: it has.
    """

    def end(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
