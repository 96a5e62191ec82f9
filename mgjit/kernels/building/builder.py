"""A process that builds code, one request after the other, as the program sees it; worker.py is what runs in it.

1. It is started by `subprocess`: `multiprocessing` would import the user's script again, and a thread would hold up the
   others.  Starting Python and importing mgjit takes a good part of a second, so it may be started before there is a
   request, and it waits some time for the next one.
2. Requests and answers are files in memory, so that nobody waits for the other to read.  Two pipes tell when they are
   complete: its lifeline (`GO`), and one on which it tells that it has answered (`DONE`).
3. At an ordinary exit of the program it is told to finish what it works on: a script that is shorter than its build
   leaves a warm cache.  If the lifeline is closed without a word, the program was killed or interrupted, or does not
   want the answer any more: the process ends, with the compiler that it runs.
4. A program may close file descriptors that it does not know, and then get the same numbers for files of its own: so
   before one is used, a look at it tells whether it is still ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import subprocess
import sys
import tempfile
from typing import Any

from ...base import settings
from ...base.handover import Parts, write
from ...base.interruption import recover_after_fork
from ...errors import PACKAGE

#: What the lifeline says: a request is complete; the program ends, and what is being built is to be finished.
GO, FINISH = b"g", b"f"
#: What the process says when its answer is complete.
DONE = b"d"

_START = (
    "import gc, json, sys; gc.disable(); sys.path[:] = json.loads(sys.argv[1]); "
    "from mgjit.kernels.building.worker import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)


class Builder:
    """A process that builds code.

    Attributes:
        process: it, also in the child of a fork, where nothing can be asked of it.
        is_fresh: whether it has not had a request yet.

    Raises:
        OSError: there are no more processes, file descriptors or memory.
    """

    def __init__(self) -> None:
        self.is_fresh = True
        self._ours: dict[int, tuple[int, int]] = {}
        theirs: list[int] = []
        try:
            self._request, self._answer = self._kept(_file_in_memory()), self._kept(_file_in_memory())
            reading, writing = os.pipe()
            self._lifeline = self._kept(writing)
            theirs.append(reading)
            reading, writing = os.pipe()
            self._done = self._kept(reading)
            theirs.append(writing)
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _START, json.dumps(_path()), *map(str, theirs)],
                stdin=self._request,
                stdout=self._answer,
                stderr=subprocess.DEVNULL,
                pass_fds=theirs,
                start_new_session=True,  # Ctrl-C in a terminal is for the program
            )
        except BaseException:
            self._close()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        recover_after_fork(self)

    def _kept(self, descriptor: int) -> int:
        state = os.fstat(descriptor)
        self._ours[descriptor] = state.st_dev, state.st_ino
        return descriptor

    def _is_ours(self, descriptor: int) -> bool:
        try:
            state = os.fstat(descriptor)
        except OSError:
            return False
        return self._ours.get(descriptor) == (state.st_dev, state.st_ino)

    def _is_intact(self) -> bool:
        return bool(self._ours) and all(map(self._is_ours, self._ours))

    def begin(self, request: Parts) -> None:
        """Hand a request over."""
        self.is_fresh = False
        if not self._is_intact():
            return  # which `wait` will find out
        write(request, self._request)
        with contextlib.suppress(OSError):  # it has ended, which `wait` will find out
            os.write(self._lifeline, GO)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has answered or ended, or so many seconds; returns whether it has."""
        if not self._is_ours(self._done):
            return True
        poll = select.poll()
        poll.register(self._done, select.POLLIN)
        return bool(poll.poll(None if seconds is None else 1000.0 * seconds))

    def answer(self) -> Any:
        """The answer to the last request; None if the process has ended without one.  After `wait`."""
        if not self._is_intact() or os.read(self._done, 1) != DONE:
            return None
        return pickle.loads(os.pread(self._answer, os.fstat(self._answer).st_size, 0))  # noqa: S301 - of our own process

    def is_there(self) -> bool:
        """Whether the process waits for a request."""
        return bool(self._ours) and not self.wait(0.0)

    def finish(self) -> None:
        """Tell the process to finish its work when this one has ended."""
        if self._is_ours(self._lifeline):
            with contextlib.suppress(OSError):
                os.write(self._lifeline, FINISH)
        self.disown()

    def disown(self) -> None:
        """Note that nobody in this process is going to wait for it."""
        self.process.returncode = self.process.poll() or 0

    def dismiss(self) -> subprocess.Popen[bytes]:
        """Let go of the process, which ends; returns it."""
        self._close()
        return self.process

    def recover(self) -> None:
        """In the child of a fork: the process is the parent's."""
        self.process.returncode = 0
        self._close()

    def _close(self) -> None:
        for descriptor in list(self._ours):
            if self._is_ours(descriptor):
                os.close(descriptor)
            self._ours.pop(descriptor, None)


def _path() -> list[str]:
    """Where modules are looked for, with mgjit itself first."""
    root = os.path.dirname(PACKAGE)
    return [root, *(os.path.abspath(place) for place in sys.path)]


def _file_in_memory() -> int:
    """A file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("mgjit", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile(dir=next(iter(settings.scratch_directories()), None)) as file:
        return os.dup(file.fileno())
