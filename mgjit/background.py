"""Code that is built in a process of its own, while the program goes on.

1. `start` hands a trace to a new process, which builds the code and publishes it in the disk cache (worker.py).  It is
   started by `subprocess`: `multiprocessing` would import the user's script again, and a thread would hold up the
   others.  There are at most `_most_processes()` at a time; other jobs wait in line.
2. What goes to the process and what comes back are files in memory, so that nobody waits for the other to read.
3. The process also holds the reading end of a pipe, its lifeline.  At an ordinary exit this process writes that the job
   is to be finished: a script that is shorter than its build leaves a warm cache.  If the pipe is closed without a
   word, this process was killed or interrupted, and the job ends, with the compiler that it runs.
4. A process that was killed is started once more.  After that, the step stays plain Python.
5. In the child of a fork, the jobs of the parent are started anew; whichever is done first, both find the entry.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Any

from . import settings
from .interruption import new_lock, recover_after_fork
from .options import Options
from .record.trace import InputRegion, Trace

if TYPE_CHECKING:
    from .ir.parameters import ParameterLayout

#: What the lifeline says at an ordinary exit.
FINISH = b"f"
#: How many times a job is started whose process is killed.
_ATTEMPTS = 2
#: The most processes that build at the same time.
_MOST = 4

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from mgjit.worker import main; main(int(sys.argv[2]))"
)
_INTERPRETER = re.compile(r"(python|pypy)[\d.]*(t|d)?")


class Extent:
    """Stands for memory, of which building needs to know only the size and the layout."""

    def __init__(self, size: int, layout: ParameterLayout | None = None) -> None:
        self._size, self.layout = size, layout

    def __len__(self) -> int:
        return self._size


@dataclass(frozen=True)
class Request:
    """What is to be built, and the circumstances.

    Attributes:
        trace: with `Extent`s in place of parameters and states.
        inputs, options, name: as for `build`.
        environment, directory: of the process that asks.
    """

    trace: Trace
    inputs: Sequence[InputRegion]
    options: Options
    name: str
    environment: dict[str, str]
    directory: str


@dataclass(frozen=True)
class Answer:
    """What has become of a request.

    Attributes:
        facts: of the code.
        plain: why the step can only run as plain Python; empty if there is code.
        failure: why there is nothing; empty if there is something.
        entries: entries of the cache that could not be kept on disk.
        python: metadata and source of code for the Python back end, or None.
        warnings: category and text of each.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    plain: str = ""
    failure: str = ""
    entries: dict[str, Any] = field(default_factory=dict)
    python: tuple[dict[str, Any], str] | None = None
    warnings: Sequence[tuple[type[Warning], str]] = ()


class Job:
    """A request, and the process that works on it.

    Attributes:
        answer: None until the job has ended.
        is_quick: whether it goes before others.
    """

    def __init__(self, request: bytes, is_quick: bool = False) -> None:
        self._request, self.is_quick = request, is_quick
        self.answer: Answer | None = None
        self._attempts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._line = -1
        self._files: tuple[IO[bytes], IO[bytes]] | None = None
        recover_after_fork(self)

    def has_ended(self) -> bool:
        """Whether there is an answer; looks for it."""
        with _lock:
            _advance()
            return self.answer is not None

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until there is an answer, or so many seconds; returns whether there is one.

        A job in line is started at once.
        """
        with _lock:
            if self.answer is None and self._process is None:
                self._run()
            process = self._process
        while process is not None and self.answer is None:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                return False
            with _lock:
                self._look()
                process = self._process
        return self.answer is not None

    def cancel(self) -> None:
        """Give the job up; its process ends."""
        with _lock:
            if self in _jobs:
                _jobs.remove(self)
            self._close()
            self.answer = self.answer or Answer(failure="it was given up")
            _advance()

    # ---- with the lock held --------------------------------------------------------------------------------

    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None

    def _run(self) -> None:
        """Start the process."""
        self._attempts += 1
        try:
            self._start()
        except OSError as reason:  # no more processes, file descriptors or memory
            self._close()
            self._end(Answer(failure=f"no process could be started: {reason}"))

    def _start(self) -> None:
        request, answer = _file_in_memory(), _file_in_memory()
        self._files = (request, answer)
        request.write(self._request)
        request.flush()
        request.seek(0)
        reading, self._line = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _START, json.dumps(_path()), str(reading)],
                stdin=request,
                stdout=answer,
                stderr=subprocess.DEVNULL,
                pass_fds=(reading,),
                start_new_session=True,  # Ctrl-C in a terminal is for the program
            )
        finally:
            os.close(reading)

    def _look(self) -> None:
        """Find out whether the process has ended, and how."""
        if self._process is None or self._process.poll() is None:
            return
        code, answer = self._process.returncode, self._read()
        self._close()
        if answer is not None:
            self._end(answer)
        elif code < 0 and self._attempts < _ATTEMPTS:
            self._run()
        elif code < 0:  # such as for lack of memory: this process had better not try
            self._end(Answer(plain=f"the process that was to build its kernel was killed, {_ATTEMPTS} times"))
        else:
            self._end(Answer(failure=f"the process that was to build it ended with exit code {code}"))

    def _read(self) -> Answer | None:
        assert self._files is not None
        self._files[1].seek(0)
        try:
            found = pickle.loads(self._files[1].read())  # noqa: S301 - of our own process
        except Exception:  # nothing, or not all of it
            return None
        return found if isinstance(found, Answer) else None

    def _end(self, answer: Answer) -> None:
        self.answer, self._request = answer, b""
        if self in _jobs:
            _jobs.remove(self)

    def _close(self) -> None:
        """Let go of the process, which ends if it has not ended yet."""
        if self._line >= 0:
            os.close(self._line)
        for file in self._files or ():
            file.close()
        process, self._process, self._line, self._files = self._process, None, -1, None
        if process is not None and process.poll() is None:
            _ending.append(process)

    def finish(self) -> None:
        """Tell the process to finish its work when this one has ended."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                os.write(self._line, FINISH)
            self._process.returncode = self._process.poll() or 0  # nobody is going to wait for it

    def recover(self) -> None:
        """In the child of a fork: the process is the parent's."""
        if self._process is not None:
            self._process.returncode = 0
            self._process = None
            self._attempts = 0
            self._close()


_lock = new_lock()
#: Those that run, and those that wait in line.
_jobs: list[Job] = []
#: Processes that have been told to end.
_ending: list[subprocess.Popen[bytes]] = []


def start(trace: Trace, inputs: Sequence[InputRegion], options: Options, name: str) -> Job | None:
    """Begin to build the code for a trace; None where that is not possible in another process.

    What is built quickly goes before what waits in line and is not.

    Args:
        trace, inputs, options, name: as for `build`.
    """
    if not _is_possible():
        return None
    bare = replace(
        trace,
        new_parameters=[(number, None) for number, _ in trace.new_parameters],
        bound_storages=[(base, Extent(len(storage), storage.layout)) for base, storage in trace.bound_storages],
        states=[(base, Extent(len(state))) for base, state in trace.states],  # type: ignore[misc]
    )
    try:
        request = Request(bare, inputs, options, name, dict(os.environ), os.getcwd())
        job = Job(pickle.dumps(request, protocol=pickle.HIGHEST_PROTOCOL), options.quick)
    except OSError:  # the current directory does not exist any more
        return None
    with _lock:
        waiting = (k for k, other in enumerate(_jobs) if not (other.is_running() or other.is_quick))
        _jobs.insert(next(waiting, len(_jobs)) if job.is_quick else len(_jobs), job)
        _advance()
    return job


def _advance() -> None:
    """Look at the jobs that run, and start others in their place."""
    for job in _jobs.copy():
        job._look()
    _ending[:] = [process for process in _ending if process.poll() is None]
    for job in _jobs.copy():
        if sum(other.is_running() for other in _jobs) >= _most_processes():
            break
        if not job.is_running():
            job._run()


def _most_processes() -> int:
    """One less than there are processors, which the program itself needs."""
    return max(1, min(_MOST, len(os.sched_getaffinity(0)) - 1 if hasattr(os, "sched_getaffinity") else 1))


def _is_possible() -> bool:
    """Whether this process can start others that import mgjit: not where Python is part of another program."""
    name = os.path.basename(sys.executable or "")
    return os.name == "posix" and not getattr(sys, "frozen", False) and bool(_INTERPRETER.fullmatch(name))


def _path() -> list[str]:
    """Where modules are looked for, with mgjit itself first."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [root, *(os.path.abspath(place) for place in sys.path)]


def _file_in_memory() -> IO[bytes]:
    """A file without a name."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("mgjit", os.MFD_CLOEXEC), "w+b")
    return tempfile.TemporaryFile(dir=next(iter(settings.scratch_directories()), None))


def _finish_all() -> None:
    """At exit: jobs that run are finished, unless the program ends by Ctrl-C; jobs in line are dropped."""
    if getattr(sys, "last_type", None) is not KeyboardInterrupt:
        for job in _jobs:
            job.finish()


atexit.register(_finish_all)
