"""Impure operations, whose result would be frozen into a step: the time, files, iterators, printing.

While a step is traced, functions that read the clock or files raise an error (source/rewriting.py puts the ones below
in their place), and so do iterators from outside of the step, because each call would have to take the next element.
What is printed, written to a file or logged appears, with a warning that compiled calls leave it out.
"""

from __future__ import annotations

import datetime
import io
import itertools
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, TypeVar

from ..errors import SideEffectWarning, TraceError, user_location, user_stacklevel
from ..interruption import with_cleanup
from ..record.leaks import PlainCall
from ..record.progress import is_tracing
from ..world.places import Place, Root

T = TypeVar("T")

#: What tells something of the world outside of the program, by module.
_FROM_OUTSIDE = {
    time: (
        "time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time",
        "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns", "localtime", "gmtime",
        "ctime", "asctime", "strftime",
    ),
    os: ("getloadavg", "listdir", "lstat", "popen", "scandir", "stat", "system", "times"),
}  # fmt: skip


def _refusing(name: str, original: Callable[..., Any], advice: str) -> Callable[..., Any]:
    def function(*arguments: Any, **options: Any) -> Any:
        if not is_tracing():  # another thread
            return original(*arguments, **options)
        raise TraceError(
            f"{user_location()}: {name}() would be called while the step is traced, and not in compiled calls. {advice}"
        )

    return function


def printed(*arguments: Any, **options: Any) -> None:
    """`print(...)`, which does not happen in compiled calls."""
    _only_now("prints", "printed")
    print(*[str(each) for each in arguments], **options)  # a traced number is refused before anything is written


#: Methods that may be those of files.
WRITES = frozenset({"write", "writelines"})


def writing(method: Any) -> Any:
    """A method that is called `write`: of a file, it does not happen in compiled calls."""
    owner = getattr(method, "__self__", None)
    is_stream = owner is not None and (owner is sys.stdout or owner is sys.stderr)
    if is_stream or (isinstance(owner, io.IOBase) and not isinstance(owner, (io.StringIO, io.BytesIO))):
        _only_now("writes to a file", "written")
    return method


def with_log_records(work: Callable[[], T]) -> T:
    """`work()`, with a warning where it logs something, which does not happen in compiled calls."""
    before = logging.getLogRecordFactory()

    def made(name: str, *arguments: Any, **options: Any) -> logging.LogRecord:
        if not name.startswith(__name__.partition(".")[0]):
            _only_now("logs something", "logged")
        return before(name, *arguments, **options)

    def restore() -> None:
        if logging.getLogRecordFactory() is made:
            logging.setLogRecordFactory(before)

    def logged() -> T:
        logging.setLogRecordFactory(made)
        return work()

    return with_cleanup(logged, restore)


#: Threads in which nothing may happen that only Python can do.
_strict: set[int] = set()


def without_effects(work: Callable[[], T]) -> T:
    """`work()`, which must not print, log or write anything; other threads may.

    Raises:
        PlainCall: it would have.
    """
    me, out, err = get_ident(), sys.stdout, sys.stderr
    if me in _strict:
        return work()

    def begin() -> T:
        _strict.add(me)
        sys.stdout, sys.stderr = _Silence(out), _Silence(err)
        return with_log_records(work)

    def end() -> None:
        _strict.discard(me)
        sys.stdout, sys.stderr = out, err

    return with_cleanup(begin, end)


class _Silence:
    """Stands for a stream, for as long as one thread must not write.

    Args:
        stream: the one that other threads write to.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        if name in ("write", "writelines", "buffer", "fileno"):
            _refuse_effects("prints or writes something")
        return getattr(self._stream, name)


def _refuse_effects(does: str) -> None:
    if get_ident() in _strict:
        raise PlainCall(f"the step {does}")


def _only_now(does: str, done: str) -> None:
    _refuse_effects(does)
    if is_tracing():
        warnings.warn(
            f"the step {does}. That happens when it is traced, and not in compiled calls: return what is to be {done}.",
            SideEffectWarning,
            stacklevel=user_stacklevel(),
        )


_OUTSIDE = "Call it outside of the step, and pass what it gives as an argument."
#: The functions that are replaced, by the name of the replacement; the replacements; and the modules or classes through
#: which code may refer to them.
ORIGINALS: dict[str, Any] = {
    f"{module.__name__}_{name}": getattr(module, name)
    for module, names in _FROM_OUTSIDE.items()
    for name in names
    if hasattr(module, name)
}
ORIGINALS.update(open=open, input=input, print=print)
HELPERS: dict[str, Callable[..., Any]] = {
    name: _refusing(original.__name__, original, _OUTSIDE) for name, original in ORIGINALS.items()
}
for _name in ("now", "utcnow", "today"):
    HELPERS[f"datetime_{_name}"] = _refusing(f"datetime.{_name}", getattr(datetime.datetime, _name), _OUTSIDE)
HELPERS["print"] = printed


def names_in(name: str, meant: Any) -> dict[str, str]:
    """The calls that code can make through a name for `meant`, with the names of their replacements."""
    for module, entries in _FROM_OUTSIDE.items():
        if meant is module:
            names = {one: f"{module.__name__}_{one}" for one in entries}
            return {f"{name}.{one}": helper for one, helper in names.items() if helper in ORIGINALS}
    if meant is datetime or meant is datetime.datetime:
        inner = f"{name}.datetime" if meant is datetime else name
        return {f"{inner}.{way}": f"datetime_{way}" for way in ("now", "utcnow", "today")}
    return {}


class Iterators:
    """Iterators that existed before a step.  Those of itertools.count go on while it is traced, and are reported.

    Args:
        found: their places, and the iterators.
    """

    def __init__(self, found: Sequence[tuple[Place, Any]]) -> None:
        self._counts = [(place, thing, repr(thing)) for place, thing in found if type(thing) is itertools.count]
        others = [(place, thing) for place, thing in found if type(thing) is not itertools.count]
        self._others = [(place, thing) for place, thing in others if not isinstance(place, Root)]

    def halt(self) -> None:
        """Replace them by stand-ins that raise; `restore` must follow."""
        for place, iterator in self._others:
            place.write(_Halted(iterator, place.describe()))

    def restore(self) -> None:
        """Restore the iterators."""
        for place, iterator in self._others:
            place.write(iterator)

    def advanced(self) -> list[Place]:
        """The places of those that have advanced."""
        return [place for place, counter, before in self._counts if repr(counter) != before]


class _Halted:
    """Stands for an iterator while a step is traced.

    Args:
        text: describes its place.
    """

    __slots__ = ("_text", "original")

    def __init__(self, original: Any, text: str) -> None:
        self.original, self._text = original, text

    def __iter__(self) -> _Halted:
        return self

    def __next__(self, *_: Any) -> Any:
        raise TraceError(
            f"{user_location()}: the step takes the next element of {self._text}, which existed before it. Compiled "
            "calls would all use the one that was taken while the step was traced: take it outside of the step, and "
            "pass it as an argument."
        )

    send = throw = read = readline = readlines = __next__

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)
