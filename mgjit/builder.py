"""A process that builds code, one request after the other, as the program sees it; worker.py is what runs in it.

1. It is started by `subprocess`: `multiprocessing` would import the user's script again, and a thread would hold up the
   others.  Starting Python and importing mgjit takes a good part of a second, so it may be started before there is a
   request, and it waits some time for the next one.
2. Requests and answers are files in memory, so that nobody waits for the other to read.  Two pipes tell when they are
   complete: its lifeline (`GO`), and one on which it tells that it has answered (`DONE`).
3. At an ordinary exit of the program it is told to finish what it works on: a script that is shorter than its build
   leaves a warm cache.  If the lifeline is closed without a word, the program was killed or interrupted, or does not
   want the answer any more: the process ends, with the compiler that it runs.
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
from typing import IO, Any

from . import settings
from .interruption import recover_after_fork

#: What the lifeline says: a request is complete; the program ends, and what is being built is to be finished.
GO, FINISH = b"g", b"f"
#: What the process says when its answer is complete.
DONE = b"d"

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from mgjit.worker import main; main(int(sys.argv[2]), int(sys.argv[3]))"
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
        self._lifeline = self._done = -1
        self.is_fresh = True
        self._files = _file_in_memory(), _file_in_memory()
        lifeline, self._lifeline = os.pipe()
        try:
            self._done, done = os.pipe()
            try:
                self.process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _START, json.dumps(_path()), str(lifeline), str(done)],
                    stdin=self._files[0],
                    stdout=self._files[1],
                    stderr=subprocess.DEVNULL,
                    pass_fds=(lifeline, done),
                    start_new_session=True,  # Ctrl-C in a terminal is for the program
                )
            finally:
                os.close(done)
        except BaseException:
            self._close()
            raise
        finally:
            os.close(lifeline)
        recover_after_fork(self)

    def begin(self, request: bytes) -> None:
        """Hand a request over."""
        self.is_fresh = False
        file = self._files[0]
        file.seek(0)
        file.truncate()
        file.write(request)
        file.flush()
        with contextlib.suppress(OSError):  # it has ended, which `wait` will find out
            os.write(self._lifeline, GO)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has answered or ended, or so many seconds; returns whether it has."""
        poll = select.poll()
        poll.register(self._done, select.POLLIN)
        return bool(poll.poll(None if seconds is None else 1000.0 * seconds))

    def answer(self) -> Any:
        """The answer to the last request; None if the process has ended without one.  After `wait`."""
        if os.read(self._done, 1) != DONE:
            return None
        file = self._files[1].fileno()
        return pickle.loads(os.pread(file, os.fstat(file).st_size, 0))  # noqa: S301 - of our own process

    def is_there(self) -> bool:
        """Whether the process waits for a request."""
        return self._done >= 0 and not self.wait(0.0)

    def finish(self) -> None:
        """Tell the process to finish its work when this one has ended."""
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
        lines, self._lifeline, self._done = (self._lifeline, self._done), -1, -1
        for line in lines:
            if line >= 0:
                os.close(line)
        for file in self._files:
            file.close()


def _path() -> list[str]:
    """Where modules are looked for, with mgjit itself first."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [root, *(os.path.abspath(place) for place in sys.path)]


def _file_in_memory() -> IO[bytes]:
    """A file without a name."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("mgjit", os.MFD_CLOEXEC), "w+b")
    return tempfile.TemporaryFile(dir=next(iter(settings.scratch_directories()), None))
