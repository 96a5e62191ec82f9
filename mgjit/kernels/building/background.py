"""Code that is built in another process, while the program goes on.

1. `start` hands a trace to a process, which builds the code and publishes it in the disk cache.  There are at most
   `_most_processes()` that build at a time (builder.py), and as many that do it quickly; other jobs wait in line.
2. A process that has answered is kept for the next job.  `prepare` starts one early, while the trace is being made.
3. A process that was killed is replaced once for each job.  After that, the step stays plain Python.
4. In the child of a fork, the jobs of the parent are started anew; whichever is done first, both find the entry.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ...base.announced import Announced
from ...base.handover import Parts, parts_of
from ...base.interruption import new_lock, recover_after_fork
from ...compiler.build.families import Alone, Kin
from ...compiler.build.options import Options
from ...compiler.cache.key import structure_hash
from ...ir.trace import InputRegion, Trace
from .builder import Builder

if TYPE_CHECKING:
    from ...ir.parameters import ParameterLayout

#: How many times a job is started whose process is killed.
_ATTEMPTS = 2
#: The longest that a thread waits before it looks whether another one has taken the answer, in seconds.
_SLICE = 0.1
#: The most processes that build at the same time.
_MOST = 4
#: What is built quickly, of so many bytes, takes less time than to start a process.
_SMALL = 1 << 19

_INTERPRETER = re.compile(r"(python|pypy)[\d.]*(t|d)?")


class Extent:
    """Stands for memory, of which building needs to know only the size, the layout, and whether it can get one."""

    def __init__(self, size: int, layout: ParameterLayout | None = None, is_new: bool = False) -> None:
        self._size, self._is_new = size, is_new
        self.layout = self._layout = layout

    def __len__(self) -> int:
        return self._size


@dataclass(frozen=True)
class Request:
    """What is to be built, and the circumstances.

    Attributes:
        trace: with `Extent`s in place of parameters and states.
        inputs, options, name, kin: as for `build`.
        environment, directory: of the process that asks.
    """

    trace: Trace
    inputs: Sequence[InputRegion]
    options: Options
    name: str
    environment: dict[str, str]
    directory: str
    kin: Kin | None = None


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
        processor: seconds that the process has spent on it, with the compiler.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    plain: str = ""
    failure: str = ""
    entries: dict[str, Any] = field(default_factory=dict)
    python: tuple[dict[str, Any], str] | None = None
    warnings: Sequence[tuple[type[Warning], str]] = ()
    processor: float = 0.0


class Job:
    """A request, and the process that works on it.

    Attributes:
        answer: None until the job has ended.
        is_quick: whether it goes before others.
        builder: the process; None while the job waits in line, and when it has ended.
        structure: of the trace; later its memory may be that of a kernel.
    """

    def __init__(self, request: Parts, is_quick: bool = False, structure: str = "", name: str = "") -> None:
        self._request, self.is_quick, self.structure = request, is_quick, structure
        self.answer: Answer | None = None
        self.builder: Builder | None = None
        self._attempts, self._is_first = 0, True
        self._announced = Announced(name, "building its code in another process", "took at most").begin()
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
            if self.answer is None and self.builder is None:
                self._run()
            builder = self.builder
        end = math.inf if seconds is None else perf_counter() + seconds
        while builder is not None and self.answer is None:
            left = end - perf_counter()
            builder.wait(min(max(left, 0.0), _SLICE))  # another thread may have taken the answer
            with _lock:
                self._look()
                builder = self.builder
            if left <= 0.0:
                break
        return self.answer is not None

    def cancel(self) -> None:
        """Give the job up: its process ends, or goes on to the next job where it is quicker to finish this one."""
        with _lock:
            if self in _jobs:
                _jobs.remove(self)
            if self.is_quick and self.builder is not None and sum(map(len, self._request)) < _SMALL:
                _finishing.append(self.builder)
                self.builder = None
            self._dismiss()
            self._announced.end()
            self.answer = self.answer or Answer(failure="it was given up")
            _advance()

    # ---- with the lock held --------------------------------------------------------------------------------

    def is_running(self) -> bool:
        """Whether there is a process."""
        return self.builder is not None

    def _run(self) -> None:
        """Give the job to a process."""
        try:
            self.builder = _idle_builder() or Builder()
            self._is_first = self.builder.is_fresh
            self._attempts += self._is_first
            self.builder.begin(self._request)
        except OSError as reason:  # no more processes, file descriptors or memory
            self._dismiss()
            self._end(Answer(failure=f"no process could be started: {reason}"))

    def _look(self) -> None:
        """Find out whether the process has answered, or ended."""
        if self.builder is None or not self.builder.wait(0.0):
            return
        builder, self.builder = self.builder, None
        answer = builder.answer()
        if answer is not None:
            _idle.append(builder)
            self._end(answer)
            return
        code = builder.dismiss().wait()
        if not self._is_first or (code <= 0 and self._attempts < _ATTEMPTS):
            self._run()  # it was killed, or had waited for too long when the request came
        elif code < 0:  # such as for lack of memory: this process had better not try
            self._end(Answer(plain=f"the process that was to build its kernel was killed, {_ATTEMPTS} times"))
        else:
            self._end(Answer(failure=f"the process that was to build it ended with exit code {code}"))

    def _end(self, answer: Answer) -> None:
        self._announced.end()
        self.answer, self._request = answer, ()
        if self in _jobs:
            _jobs.remove(self)

    def _dismiss(self) -> None:
        builder, self.builder = self.builder, None
        if builder is not None:
            _ending.append(builder.dismiss())

    def recover(self) -> None:
        """In the child of a fork: the process is the parent's."""
        self.builder, self._attempts = None, 0


_lock = new_lock()
#: Those that run, and those that wait in line.
_jobs: list[Job] = []
#: Processes that wait for a job.
_idle: list[Builder] = []
#: Processes that finish what nobody waits for any more.
_finishing: list[Builder] = []
#: Processes that have been told to end.
_ending: list[subprocess.Popen[bytes]] = []


def start(
    trace: Trace,
    inputs: Sequence[InputRegion],
    options: Options,
    name: str,
    kin: Kin | None = None,
    is_call_next: bool = False,
) -> Job | None:
    """Begin to build the code for a trace; None where that is not possible in another process.

    What is built quickly goes before what waits in line and is not.

    Args:
        trace, inputs, options, name, kin: as for `build`.
        is_call_next: whether a plain call comes next, and then `go_on`: with a single processor, the job waits for it.
    """
    if not _is_possible():
        return None
    if kin is not None:
        kin = replace(kin, alone=[Alone(_bare(one.bound()), one.inputs) for one in kin.others(trace)])
    try:
        request = Request(_bare(trace), inputs, options, name, dict(os.environ), os.getcwd(), kin)
        job = Job(parts_of(request), options.quick, structure_hash(trace, inputs), name)
    except OSError:  # the current directory does not exist any more
        return None
    with _lock:
        waiting = (k for k, other in enumerate(_jobs) if not (other.is_running() or other.is_quick))
        _jobs.insert(next(waiting, len(_jobs)) if job.is_quick else len(_jobs), job)
        if not (is_call_next and _processors() == 1):
            _advance()
    return job


def go_on() -> None:
    """Start jobs that have let a plain call go first."""
    if _jobs:
        with _lock:
            _advance()


def _bare(trace: Trace) -> Trace:
    """A trace without the program's memory; of new parameters, only the numbers of the first and the last count."""
    return replace(
        trace,
        new_parameters=[(number, None) for number, _ in (*trace.new_parameters[:1], *trace.new_parameters[-1:])],
        bound_storages=[(base, Extent(len(storage), storage.layout)) for base, storage in trace.bound_storages],
        states=[
            (base, Extent(len(state), state._layout, state._is_new))  # type: ignore[misc]
            for base, state in trace.states
        ],
    )


def prepare() -> None:
    """Start a process for a job that is about to come, unless there is one, or a single processor, for the trace."""
    with _lock:
        if _is_possible() and not _jobs and not _idle and _processors() > 1:
            with contextlib.suppress(OSError):  # the job is going to say so
                _idle.append(Builder())


def _idle_builder() -> Builder | None:
    """A process that waits for a job, if there is one."""
    while _idle:
        builder = _idle.pop()
        if builder.is_there():
            return builder
        _ending.append(builder.dismiss())
    return None


def _advance() -> None:
    """Look at the jobs that run, and start others in their place."""
    for job in _jobs.copy():
        job._look()
    for builder in _finishing.copy():
        if builder.wait(0.0):
            _finishing.remove(builder)
            if builder.answer() is None:
                _ending.append(builder.dismiss())
            else:
                _idle.append(builder)
    _ending[:] = [process for process in _ending if process.poll() is None]
    most = _most_processes() - len(_finishing)
    for job in _jobs.copy():
        # What is built quickly does not wait for what is not.
        before = sum(other.is_running() and (other.is_quick or not job.is_quick) for other in _jobs)
        if not job.is_running() and before < most:
            job._run()


def _most_processes() -> int:
    """One less than there are processors, which the program itself needs."""
    return max(1, min(_MOST, _processors() - 1))


def _processors() -> int:
    """How many processors this program may use; two where the system does not tell."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2


def seconds_taken_by(answer: Answer | None) -> float:
    """How much later a program gets on because of a job: not at all where another processor has done it."""
    return 0.0 if answer is None or _processors() > 1 else answer.processor


def _is_possible() -> bool:
    """Whether this process can start others that import mgjit: not where Python is part of another program."""
    name = os.path.basename(sys.executable or "")
    return os.name == "posix" and not getattr(sys, "frozen", False) and bool(_INTERPRETER.fullmatch(name))


def _finish_all() -> None:
    """At exit: jobs that run are finished, unless the program ends by Ctrl-C; jobs in line are dropped."""
    if getattr(sys, "last_type", None) is not KeyboardInterrupt:
        for job in _jobs:
            if job.builder is not None:
                job.builder.finish()
    for builder in (*_idle, *_finishing):
        builder.disown()


atexit.register(_finish_all)
