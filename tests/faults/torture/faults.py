"""Every call of the file system that the disk store makes, failing once.

`mgjit/base/files.py` has a function for each kind of call, and the store makes no other.  The four situations below
make a known number of calls of each kind; for the n-th call of a kind, for every n and every kind, there is a process
in which that call fails once (EIO, ENOSPC, EACCES, EINTR), one that dies right before it and one right after it, and,
for reading and writing, one in which the call handles fewer bytes than it was asked to.

The process computes right, whatever fails, and the user sees one warning at most.  The next process computes right
as well, without a warning, and finds or leaves a whole entry.
"""

from __future__ import annotations

import errno
import inspect
import os
import shutil
from collections import Counter
from collections.abc import Callable
from typing import Any

from mgjit.base import files

from .harness import Place, Torture, compute, require, require_right

NUMBER = 1
ERRORS = ("EIO", "ENOSPC", "EACCES", "EINTR")
DEATHS = ("dies before", "dies after")
SHORT = "handles half of it"
SOME = 8
COMPOSED = ("read_all", "write_all", "uninterrupted")  # made of the others


def cold(place: Place) -> None:
    """An empty directory: the step is built and published."""


def warm(place: Place) -> None:
    """The entry is there."""
    place.compute(NUMBER)


def damaged(place: Place) -> None:
    """The entry is there, and one of its bytes is wrong."""
    place.compute(NUMBER)
    path = place.entries()[0]
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def sweep(place: Place) -> None:
    """The directory is over its limit, and another step is to be published."""
    place.compute(*range(2, 7))
    place.forget_the_last_sweep()
    (place.cache / ".abandoned.1.tmp").write_bytes(b"left behind by a process that died long ago")
    os.utime(place.cache / ".abandoned.1.tmp", (0, 0))


SITUATIONS: dict[str, Callable[[Place], None]] = {"cold": cold, "warm": warm, "damaged": damaged, "sweep": sweep}
LIMITS = {"sweep": "20 KiB"}


def faults(torture: Torture) -> None:
    """The n-th call of each kind fails, or is the last thing that happens."""
    for situation in SITUATIONS:
        prepared = _Situation(torture, situation)
        calls = _calls(prepared.again())
        require(calls, f"{situation}: the store made no call of mgjit.base.files")
        torture.figures[f"calls: {situation}"] = sum(calls.values())
        for kind, nth, how in torture.progress(_cases(calls, torture.long), situation):
            with torture.attempt(f"{situation}: call {nth + 1} of {kind} {how}"):
                _one(torture, prepared.again(), kind, nth, how)


def _cases(calls: Counter[str], everything: bool) -> list[tuple[str, int, str]]:
    """Which call suffers what; in the short form some of them, spread over all calls and all that can happen."""
    cases = []
    for kind in sorted(calls):
        ways = (*ERRORS, *DEATHS, *([SHORT] if kind in ("read", "write") else []))
        cases += [(kind, nth, how) for nth in range(calls[kind]) for how in ways]
    return cases if everything else cases[:: len(cases) // SOME | 1]


class _Situation:
    """A prepared place, of which every case gets a copy."""

    def __init__(self, torture: Torture, name: str) -> None:
        self._torture = torture
        self._limit = LIMITS.get(name)
        self._original = torture.place(MGJIT_CACHE_SIZE=self._limit)
        SITUATIONS[name](self._original)

    def again(self) -> Place:
        """A new place, as it was after the preparation, times included."""
        place = self._torture.place(MGJIT_CACHE_SIZE=self._limit)
        if self._original.cache.is_dir():
            shutil.copytree(self._original.cache, place.cache)
        return place


def _one(torture: Torture, place: Place, kind: str, nth: int, how: str) -> None:
    report = place.run(lambda: _with_fault(kind, nth, how))
    torture.count(f"calls that {'were the last' if how in DEATHS else 'failed'}")
    if how not in DEATHS:
        require_right(report, [NUMBER])
        torture.count("processes that warned", bool(report.warnings))
        require(len(report.warnings) <= 1, f"more than one warning: {report.warnings}")
    else:
        require(report.code == 9, f"the process did not die there: exit code {report.code}\n{report.error}")
    place.recovers(NUMBER)
    place.remove()


def _calls(place: Place) -> Counter[str]:
    """How many calls of each kind a process makes in a situation."""

    def counting() -> dict[str, int]:
        counted: Counter[str] = Counter()

        def wrap(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
            def counted_call(*args: Any, **rest: Any) -> Any:
                counted[kind] += 1
                return function(*args, **rest)

            return counted_call

        _replace_all(wrap)
        compute(NUMBER)
        return counted

    report = place.run(counting)
    require(not report.error, report.error)
    return Counter(report.value)


def _with_fault(kind: str, nth: int, how: str) -> dict[str, Any]:
    """The job: compute while one call fails, or ends this process."""
    made = 0

    def wrap(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **rest: Any) -> Any:
            nonlocal made
            made += 1
            if made != nth + 1:
                return function(*args, **rest)
            if how in ERRORS:
                number = getattr(errno, how)
                raise OSError(number, os.strerror(number))
            if how == SHORT:
                return _partly(name, function, *args)
            try:
                if how == "dies after":
                    function(*args, **rest)
            finally:
                os._exit(9)

        return call if name == kind else function

    _replace_all(wrap)
    return compute(NUMBER)


def _partly(kind: str, function: Callable[..., Any], descriptor: int, what: Any) -> Any:
    """Read or write half of it, as a system may."""
    return function(descriptor, what[: (len(what) + 1) // 2] if kind == "write" else (what + 1) // 2)


def _replace_all(wrap: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put something in the place of every function that stands for a system call."""
    for name in KINDS:
        setattr(files, name, wrap(name, getattr(files, name)))


KINDS = [
    name
    for name, function in vars(files).items()
    if inspect.isfunction(function)
    and function.__module__ == files.__name__
    and not name.startswith("_")
    and name not in COMPOSED
]
"""All kinds of calls: the functions that are written in that module, less those that only call others of it."""

SCENARIOS = {"faults": faults}
