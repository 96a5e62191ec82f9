"""The process that builds code for another one; see builder.py.

1. Import what building needs, and wait for a request.
2. Read it, and take on the circumstances of the process that asks.
3. Build, as that process would, and publish the entry in the disk cache.
4. Write the answer, say that it is complete, and wait for the next request, but not for long.

Meanwhile a thread watches the lifeline.  When the other process is gone, it interrupts the work by SIGTERM, which ends
the compiler and removes temporary files; if that takes too long, the whole process group is killed.  What the other one
wanted to be finished may take some time more.  How much memory and time there is for a request: allowance.py.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import pickle
import queue
import signal
import sys
import threading
import time
import warnings
from dataclasses import replace
from types import FrameType

from ...base.handover import read
from ...base.threads import OwnThread
from ...compiler.build.build import build, entries_in_memory
from ...compiler.build.choices import import_generator
from ...compiler.toolchain.process import is_starting
from ...engine.leaks import PlainCall
from ...errors import CompilerMemoryError, MgjitError
from .allowance import MOST_SECONDS, MOST_SECONDS_AFTERWARDS, OutOfTime, limit_memory, limited_time
from .background import Answer, Request
from .builder import DONE, FINISH, GO

#: How much less urgent than the program it is to build better code; what is built quickly the program waits for.
_NICENESS = 5
#: Seconds for an orderly end.
_PATIENCE = 2.0
#: How often it is looked whether a request is finished that nobody waits for, in seconds.
_GLANCE = 0.1
#: Seconds without a request after which the process ends.
_IDLE = 20.0

#: True for each request that is complete; False when there will be no more.
_requests: queue.SimpleQueue[bool] = queue.SimpleQueue()
#: Whether there is a request that has not been answered.
_is_busy = threading.Event()


def main(lifeline: int, done: int) -> None:
    """Answer the requests on standard input.

    Args:
        lifeline, done: the descriptors of both pipes.
    """
    signal.signal(signal.SIGTERM, _end)
    OwnThread(_watch, lifeline, name="lifeline")
    with contextlib.suppress(MgjitError):  # which each request will meet again
        import_generator()
    if hasattr(gc, "freeze"):
        gc.freeze()  # what was imported, with the garbage collector switched off, stays
    gc.enable()
    most = limit_memory()
    while _has_request():
        before = sum(os.times()[:4])
        try:
            answer = _answered(read(0))
        except MemoryError:
            answer = Answer(plain=f"its kernel cannot be built in {most / 2**30:.1f} GB of memory")
        answer = replace(answer, processor=sum(os.times()[:4]) - before)
        os.lseek(1, 0, os.SEEK_SET)
        os.ftruncate(1, 0)
        with open(1, "wb", closefd=False) as file:
            pickle.dump(answer, file, protocol=pickle.HIGHEST_PROTOCOL)
        _is_busy.clear()
        os.write(done, DONE)


@functools.cache
def _be_nice() -> None:
    """Leave the processors to others, from now on: there is no way back."""
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)


def _has_request() -> bool:
    try:
        return _requests.get(timeout=_IDLE)
    except queue.Empty:
        return False


def _end(number: int, frame: FrameType | None) -> None:
    if is_starting[0]:  # nobody would end that compiler
        threading.Timer(_GLANCE, os.kill, (os.getpid(), number)).start()
    else:
        sys.exit(128 + number)


def _watch(lifeline: int) -> None:
    """Pass requests on; end this process when the other one is gone without having said that work is to be finished."""
    said = GO
    while said == GO:
        said = os.read(lifeline, 1)
        if said == GO:
            _is_busy.set()
            _requests.put(True)
    _requests.put(False)
    end = time.monotonic() + (MOST_SECONDS_AFTERWARDS if said == FINISH else 0.0)
    while _is_busy.is_set() and time.monotonic() < end:
        time.sleep(_GLANCE)
    if _is_busy.is_set():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_PATIENCE)
        os.killpg(0, signal.SIGKILL)


def _answered(request: Request) -> Answer:
    """What becomes of a request.

    Raises:
        MemoryError: this process may not have enough.
    """
    if not request.options.quick:
        _be_nice()
    os.environ.clear()
    os.environ.update(request.environment)
    try:
        os.chdir(request.directory)
    except OSError as reason:
        return Answer(failure=f"its directory cannot be entered: {reason}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with limited_time(MOST_SECONDS):
                code = build(request.trace, request.inputs, request.options, request.name, request.kin)
        except PlainCall as reason:
            return Answer(plain=str(reason), warnings=_texts(caught))
        except OutOfTime:
            return Answer(plain=f"it takes longer than {MOST_SECONDS:.0f} s to build its kernel")
        except CompilerMemoryError as error:
            return Answer(plain=f"its compiler has too little memory: {error}", warnings=_texts(caught))
        except (MgjitError, RecursionError) as error:
            return Answer(failure=f"{type(error).__name__}: {error}", warnings=_texts(caught))
    python = (code.metadata(), code.source) if code.library is None else None
    return Answer(code.facts, entries=entries_in_memory(request.options), python=python, warnings=_texts(caught))


def _texts(caught: list[warnings.WarningMessage]) -> list[tuple[type[Warning], str]]:
    return [(warning.category, str(warning.message)) for warning in caught]
