"""Work that takes long says so: on a terminal while it lasts, and to the logger when it is over."""

from __future__ import annotations

import contextlib
import os
import sys
from threading import Timer
from time import perf_counter

from . import settings

#: Work of fewer seconds is silent.
PATIENCE = 2.0


class Announced:
    """`with Announced("train_step", "building its code"):`, or `begin` and `end`.

    A terminal gets a line after two seconds, and one at the end.  They are written past `sys.stderr`, which may stand
    for something else while a step is traced.

    Args:
        name: of the step.
        what: is done.
        took: what is said of the seconds, such as "took at most" where nobody may have looked when it was done.
    """

    def __init__(self, name: str, what: str, took: str = "took") -> None:
        self._name, self._what, self._took = name, what, took
        self._timer: Timer | None = None
        self._terminal: int | None = None
        self._started: float | None = None

    def begin(self) -> Announced:
        """The work begins."""
        self._started = perf_counter()
        self._terminal = _terminal()
        if self._terminal is not None:
            self._timer = Timer(PATIENCE, self._write, [f"has taken {PATIENCE:g} s so far"])
            self._timer.daemon = True
            with contextlib.suppress(RuntimeError):  # no more threads
                self._timer.start()
        return self

    def end(self) -> None:
        """The work is done, or given up."""
        timer, self._timer = self._timer, None
        started, self._started = self._started, None
        if timer is not None:
            timer.cancel()
        if started is not None and (seconds := perf_counter() - started) >= PATIENCE:
            if timer is not None:
                self._write(f"{self._took} {seconds:.1f} s")
            settings.LOGGER.info("%s: %s %s %.1f s", self._name, self._what, self._took, seconds)

    def __enter__(self) -> Announced:
        return self.begin()

    def __exit__(self, *_: object) -> None:
        self.end()

    def _write(self, text: str) -> None:
        assert self._terminal is not None
        with contextlib.suppress(OSError):
            os.write(self._terminal, f"mgjit: {self._name}: {self._what} {text}\n".encode(errors="replace"))


def _terminal() -> int | None:
    """The file descriptor of the terminal that errors go to; None if it is none, or the program writes elsewhere."""
    stream = sys.__stderr__
    try:
        return stream.fileno() if stream is not None and sys.stderr is stream and stream.isatty() else None
    except (OSError, ValueError):  # closed
        return None
