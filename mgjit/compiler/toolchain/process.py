"""Run a compiler: a list of arguments, never a shell, with limits, and without leaving processes behind.

1. The compiler gets its own session, so that a time-out, Ctrl-C or any other exception here also ends the processes
   that it started.  Meanwhile SIGTERM and SIGHUP, which would end Python at once, raise exceptions instead.
2. Its environment is the user's, except for variables that would translate or colour its messages, write files
   elsewhere or change its flags.  Its temporary files go to its working directory, which is removed.
3. Its address space is limited, so that it runs out of memory before the machine does.  On Linux the limit is set from
   outside once it has started (`prlimit`).  Setting it in the child between fork and exec would run Python there while
   other threads may hold any lock; that is done only where there is no other way, see `_before_exec`.
4. A thread reads everything it prints, so that it never blocks, and keeps the beginning, as plain text.
5. On a time-out or an interruption, the whole process group is killed.

A host program that ignores SIGCHLD, or reaps all children itself, hides the exit code, which then reads as 0.
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Callable

from mgjit.base import settings
from mgjit.base.interruption import with_cleanup
from mgjit.errors import CompilerError, CompilerTimeout

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

compiler_runs = 0
"""How many compiler processes this process has started; tests check that it stays zero where nothing compiles."""

OUTPUT_LIMIT = 64 * 1024
"""How many bytes of a compiler's output are kept; the rest is read and discarded."""

_count_lock = threading.Lock()

#: Variables that would make a compiler write extra files, or change its flags, which are part of the cache key.
_UNWANTED = (
    "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "CCC_OVERRIDE_OPTIONS", "CCC_ADD_ARGS",
    "GCC_COLORS", "GCC_EXTRA_DIAGNOSTIC_OUTPUT", "CLICOLOR_FORCE", "FORCE_COLOR",
)  # fmt: skip

#: Messages in the compiler's own language and without colours.
_MESSAGES = {"LC_ALL": "C", "TERM": "dumb", "NO_COLOR": "1"}

#: A relative path, so that unusual characters in the absolute one cannot cause trouble.
_TEMPORARY_FILES = {"TMPDIR": ".", "TMP": ".", "TEMP": "."}

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")

#: How often an interrupted call looks whether the process that it has asked for runs.
_STARTING_SECONDS = 0.001
#: How often it is looked whether a process has ended while something else holds its output open.
_READING_SECONDS = 0.25


class CompilerNotStarted(CompilerError):
    """The machine is short of something (processes, file descriptors, disk space); it may work later."""


def run(argv: Sequence[str], *, directory: str | None = None, time_limit: float | None = None) -> tuple[int, str]:
    """Run a compiler to its end: (exit code, first part of what it printed).

    Args:
        argv: the command.
        directory: where it runs and has its temporary files.
        time_limit: in seconds; None: MGJIT_COMPILE_SECONDS.

    Raises:
        CompilerTimeout: it took longer than that.
        CompilerError: it cannot be run.
    """
    limit = settings.compile_seconds() if time_limit is None else time_limit
    attended = _Attended(argv, directory)
    with orderly_termination():
        try:
            return with_cleanup(lambda: attended.run(limit), attended.end)
        except subprocess.TimeoutExpired:
            raise CompilerTimeout(f"{argv[0]} did not finish within {limit:g} seconds") from None


def plain_text(output: bytes) -> str:
    """A compiler's output without terminal control sequences."""
    text = _ESCAPES.sub("", output.decode("utf-8", "replace").replace("\r\n", "\n").replace("\t", " "))
    return _CONTROLS.sub("?", text)


# ----------------------------------------------------------------------------------------------- start


class _Attended:
    """A process, and the thread that starts it and reads its output.

    Signal handlers run in the main thread only.  So an exception from a handler cannot come between the start of the
    process and the moment when we have its handle.  It can come while we wait for that.  An interrupted
    `Thread.start()` or `Event.wait()` may keep a lock for ever, or raise another exception; so what is waited for are
    plain locks, which the thread releases, and `end` looks at flags alone.
    """

    def __init__(self, argv: Sequence[str], directory: str | None) -> None:
        self._argv, self._directory = argv, directory
        self._process: subprocess.Popen[bytes] | None = None
        self._error: BaseException | None = None
        self._has_begun = self._is_started = self._is_read = self._is_abandoned = self._is_over = False
        self._until_started, self._until_read = threading.Lock(), threading.Lock()
        self._owner = os.getpid()
        self._output = bytearray()

    def run(self, time_limit: float) -> tuple[int, str]:
        """Run the process to its end: (exit code, first part of what it printed)."""
        process = self._start()
        self._wait(process, time_limit)
        self._is_over = True
        return process.returncode, plain_text(bytes(self._output))

    def end(self) -> None:
        """End the process if `run` has not come to its end, even if the process has yet to start.  Repeatable."""
        if self._is_over or self._owner != os.getpid():  # the child of a fork, which has no such process
            return
        self._is_abandoned = True  # set before looking: the thread looks at this before it starts the process
        while self._has_begun and not self._is_started:
            time.sleep(_STARTING_SECONDS)
        if self._process is not None:
            _kill(self._process)
        self._is_over = True

    def _start(self) -> subprocess.Popen[bytes]:
        self._until_started.acquire()
        self._until_read.acquire()
        try:
            _thread.start_new_thread(self._attend, ())
        except RuntimeError as reason:  # no more threads
            raise CompilerNotStarted(f"{self._argv[0]!r} cannot be started: {reason}") from None
        self._until_started.acquire()
        if self._process is None:
            assert self._error is not None
            raise self._error
        return self._process

    def _wait(self, process: subprocess.Popen[bytes], time_limit: float) -> None:
        """Wait for the end of the output, which is noticed at once, then for the end of the process.

        `Popen.wait(timeout)` alone polls and returns up to 50 ms late, which is longer than gcc takes.  A helper that
        outlives the compiler (the server of a compiler cache) may hold the pipe open; then the end of the process
        counts.
        """
        deadline = time.monotonic() + time_limit
        while not self._is_read and time.monotonic() < deadline and process.poll() is None:
            self._until_read.acquire(timeout=max(0.0, min(_READING_SECONDS, deadline - time.monotonic())))
        process.wait(timeout=max(0.0, deadline - time.monotonic()))
        if not self._is_read:
            self._until_read.acquire(timeout=_READING_SECONDS)

    def _attend(self) -> None:
        self._has_begun = True
        try:
            if not self._is_abandoned:
                self._process = _start(self._argv, self._directory)
        except BaseException as error:
            self._error = error
        finally:
            self._is_started = True
            self._until_started.release()
        try:
            if self._process is not None:
                _drain(self._process, self._output)
        finally:
            self._is_read = True
            self._until_read.release()


#: Errors that may go away a moment later.
_PASSING = frozenset((errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.ETXTBSY))


#: Whether a process is being started, as one element: an exception meanwhile would leave it to itself.
is_starting = [False]


def _start(argv: Sequence[str], directory: str | None) -> subprocess.Popen[bytes]:
    global compiler_runs  # noqa: PLW0603 - a counter of this process
    memory = settings.compile_memory()
    with _count_lock:
        compiler_runs += 1
    settings.LOGGER.debug("run %s", argv)
    is_starting[0] = True
    try:
        # Not subprocess.DEVNULL: Python 3.9 leaves it open when there is no descriptor left for the pipe.
        with open(os.devnull, "rb") as nothing:
            process = subprocess.Popen(
                list(argv),
                cwd=directory,
                env=_environment(directory),
                stdin=nothing,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_before_exec(memory),  # noqa: PLW1509 - only where there is no other way
            )
    except (OSError, ValueError, RuntimeError, subprocess.SubprocessError) as reason:
        kind = CompilerNotStarted if getattr(reason, "errno", None) in _PASSING else CompilerError
        raise kind(f"the C compiler {settings.shown(argv[0])} cannot be run: {reason}") from None
    finally:
        is_starting[0] = False
    if memory and _LIMITS_FROM_OUTSIDE:
        _limit(process.pid, _limits_below(memory))
    return process


def _environment(directory: str | None) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if name not in _UNWANTED}
    return {**kept, **_MESSAGES, **(_TEMPORARY_FILES if directory else {})}


_LIMITS = hasattr(resource, "RLIMIT_AS")
_LIMITS_FROM_OUTSIDE = hasattr(resource, "prlimit")


def _limits_below(memory: int) -> tuple[int, int]:
    """Soft and hard limit of the address space, not above the limits already in force."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = min(memory, sys.maxsize if hard == resource.RLIM_INFINITY else hard)
    return limit, limit


def _limit(pid: int, limits: tuple[int, int]) -> None:
    """Limit the address space of a process, and of any processes that it has already started."""
    with contextlib.suppress(OSError):  # it has ended already
        resource.prlimit(pid, resource.RLIMIT_AS, limits)
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            started = children.read().split()
        for child in started:
            _limit(int(child), limits)


def _before_exec(memory: int) -> Callable[[], None] | None:
    """A function for the child to run before exec, or None, which is better in a process with threads.

    A compiler that inherits "ignore SIGCHLD" does not learn how its own children ended, and treats that as a failure.
    """
    limits = _limits_below(memory) if memory and _LIMITS and not _LIMITS_FROM_OUTSIDE else None
    ignored = hasattr(signal, "SIGCHLD") and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
    if not ignored and limits is None:
        return None

    def prepare() -> None:
        if ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if limits is not None:
            with contextlib.suppress(OSError, ValueError):  # macOS has the limit and does not accept it
                resource.setrlimit(resource.RLIMIT_AS, limits)

    return prepare


# -------------------------------------------------------------------------------------------- to its end


def _drain(process: subprocess.Popen[bytes], kept: bytearray) -> None:
    """Read everything a process prints, so that it never blocks, and keep the beginning."""
    assert process.stdout is not None
    with process.stdout as stream:
        while True:
            part = stream.read1(OUTPUT_LIMIT)  # type: ignore[attr-defined]  # it is a BufferedReader
            if not part:
                return
            kept += part[: OUTPUT_LIMIT - len(kept)]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and everything in its group, and wait for it."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


# ------------------------------------------------------------------------------------------- termination


class _Terminated(BaseException):
    """A signal that would have ended the process at once."""


@contextlib.contextmanager
def orderly_termination() -> Iterator[None]:
    """A context in which SIGTERM and SIGHUP end this process only after the cleanup inside it.

    This applies where they would end the process, and only in the main thread, where Python runs signal handlers.
    """
    received: list[int] = []

    def terminate(number: int, frame: FrameType | None) -> None:
        received.append(number)
        raise _Terminated

    taken = []
    if threading.current_thread() is threading.main_thread():
        with contextlib.suppress(ValueError):  # the main thread of a subinterpreter
            for number in _DEADLY:
                if signal.getsignal(number) is signal.SIG_DFL:
                    signal.signal(number, terminate)
                    taken.append(number)
    try:
        yield
    except _Terminated:
        if not taken:  # an outer context has them
            raise
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
        if received:  # even if the exception was swallowed, in a destructor for example
            os.kill(os.getpid(), received[0])


_DEADLY = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
