"""The process that builds code for another one; see background.py.

1. Read the request from standard input, and take on the circumstances of the process that asks.
2. Build, as that process would, and publish the entry in the disk cache.
3. Write the answer to standard output.

Meanwhile a thread watches the lifeline.  When the other process is gone, it interrupts the work by SIGTERM, which ends
the compiler and removes temporary files; if that takes too long, the whole process group is killed.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from types import FrameType

from .background import FINISH, Answer, Request
from .build import build, entries_in_memory
from .errors import MgjitError
from .record.leaks import PlainCall

#: How much less urgent building is than the program.
_NICENESS = 5
#: Seconds for an orderly end.
_PATIENCE = 2.0


def main(line: int) -> None:
    """Answer the request on standard input.

    Args:
        line: the descriptor of the lifeline.
    """
    signal.signal(signal.SIGTERM, _end)
    threading.Thread(target=_watch, args=(line,), daemon=True).start()
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    answer = _answered(pickle.load(sys.stdin.buffer))  # noqa: S301 - of the process that has started this one
    sys.stdout.buffer.write(pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL))
    sys.stdout.buffer.flush()


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _watch(line: int) -> None:
    """End this process when the other one is gone without having said that the work is to be finished."""
    if os.read(line, 1) == FINISH:
        return
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_PATIENCE)
    os.killpg(0, signal.SIGKILL)


def _answered(request: Request) -> Answer:
    os.environ.clear()
    os.environ.update(request.environment)
    os.chdir(request.directory)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            code = build(request.trace, request.inputs, request.options, request.name)
        except PlainCall as reason:
            return Answer(plain=str(reason), warnings=_texts(caught))
        except (MgjitError, MemoryError, RecursionError) as error:
            return Answer(failure=f"{type(error).__name__}: {error}", warnings=_texts(caught))
    python = (code.metadata(), code.source) if code.library is None else None
    return Answer(code.facts, entries=entries_in_memory(request.options), python=python, warnings=_texts(caught))


def _texts(caught: list[warnings.WarningMessage]) -> list[tuple[type[Warning], str]]:
    return [(warning.category, str(warning.message)) for warning in caught]
