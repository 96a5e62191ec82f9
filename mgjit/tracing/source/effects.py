"""What a step prints, writes and logs while it is traced: it waits for the end of the trace, and happens at most once.

1. While a step is traced, a print, a write to a file and a log record are held (`Effects`); their texts are made at
   once, so that a traced number among them is refused where it stands.
2. If the trace is of use, a SideEffectWarning for each line says that compiled calls leave it out (`warn`).
3. They happen if the kernel makes the call (`perform`).  If plain Python makes it, that has its own effects.

What is tried out, such as a class of the user's, must have none (`without_effects`).
"""

from __future__ import annotations

import functools
import io
import logging
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident
from typing import Any, TypeVar

from ...base.interruption import with_cleanup
from ...engine.leaks import PlainCall
from ...errors import SideEffectWarning, user_frame

T = TypeVar("T")

#: Methods that may be those of files.
WRITES = frozenset({"write", "writelines"})
_IN_MEMORY = (io.StringIO, io.BytesIO)
#: Where the classes of files are that do nothing else.
_LIBRARY = getattr(sys, "stdlib_module_names", frozenset({"_io", "io", "gzip", "bz2", "lzma", "codecs", "tempfile"}))
#: What threads hold while they trace.
_holding: dict[int, Effects] = {}
#: Threads in which nothing may happen that only Python can do.
_strict: set[int] = set()


@dataclass
class _Held:
    """An effect that waits.

    Attributes:
        text: of the warning. place: file, line and module of the user's.
        happen: lets it happen.
    """

    text: str
    place: tuple[str, int, dict[str, Any]] | None
    happen: Callable[[], Any]


class Effects:
    """The effects of a trace, which wait.

    Attributes:
        streams: where it prints.
    """

    def __init__(self) -> None:
        self.streams = (sys.stdout, sys.stderr)
        self._held: list[_Held] = []

    def during(self, work: Callable[[], T]) -> T:
        """`work()`, whose effects wait; those of other threads do not."""
        me, handle = get_ident(), logging.Logger.handle

        def handled(logger: logging.Logger, record: logging.LogRecord) -> None:
            if get_ident() != me or _is_ours(record.name):
                handle(logger, record)
                return
            record.msg, record.args = record.getMessage(), None
            _happens("logs something", "logged", functools.partial(handle, logger, record))

        def begin() -> T:
            _holding[me] = self
            logging.Logger.handle = handled  # type: ignore[method-assign,assignment]
            return work()

        def end() -> None:
            _holding.pop(me, None)
            if logging.Logger.handle is handled:
                logging.Logger.handle = handle  # type: ignore[method-assign]

        return with_cleanup(begin, end)

    def hold(self, text: str, happen: Callable[[], Any]) -> None:
        """Let an effect wait; `text` is what is said about it."""
        frame = user_frame()
        place = None
        if frame is not None:
            place = frame.f_code.co_filename, frame.f_lineno, frame.f_globals
        self._held.append(_Held(text, place, happen))

    def count(self) -> int:
        """How many wait."""
        return len(self._held)

    def warn(self) -> None:
        """Warn of each."""
        for held in self._held:
            if held.place is not None:
                file, line, names = held.place
                warned = names.setdefault("__warningregistry__", {})  # here, since a trace must not change the module
                module = names.get("__name__", "<unknown>")
                warnings.warn_explicit(held.text, SideEffectWarning, file, line, module, warned)

    def perform(self) -> None:
        """Let them happen, in their order."""
        while self._held:
            self._held.pop(0).happen()

    def forget(self) -> None:
        """Let them never happen."""
        self._held = []


def printed(*arguments: Any, **options: Any) -> None:
    """`print(...)`, which does not happen in compiled calls."""
    file = options.get("file")
    file = sys.stdout if file is None else file
    show = functools.partial(print, *[str(each) for each in arguments], **{**options, "file": file})
    if _is_stream(file):
        _happens("prints", "printed", show)
    elif type(file) in _IN_MEMORY or get_ident() not in {*_holding, *_strict}:
        show()
    else:  # print would call a method that the survey does not follow
        raise PlainCall(f"the step prints to a {type(file).__name__}, which may do anything")


def writing(method: Any) -> Any:
    """A method that is called `write`: of a file, it does not happen in compiled calls."""
    if not _is_stream(getattr(method, "__self__", None)):
        return method

    def written(given: Any) -> Any:
        given = given if method.__name__ == "write" else list(given)
        if get_ident() not in _holding and get_ident() not in _strict:  # another thread
            return method(given)
        _happens("writes to a file", "written", functools.partial(method, given))
        return len(given) if method.__name__ == "write" else None

    return written


def _is_stream(thing: Any) -> bool:
    """Whether what is written to something is seen outside of the program, and has no other effects."""
    effects = _holding.get(get_ident())
    streams = (sys.stdout, sys.stderr) if effects is None else effects.streams
    if any(thing is stream for stream in streams):
        return True
    is_library = type(thing).__module__.partition(".")[0] in _LIBRARY
    return isinstance(thing, io.IOBase) and is_library and type(thing) not in _IN_MEMORY


def _happens(does: str, done: str, happen: Callable[[], Any]) -> None:
    """Something happens in this thread that compiled calls leave out; in a trace, it waits."""
    _refuse_effects(does)
    effects = _holding.get(get_ident())
    if effects is None:
        happen()
        return
    text = f"the step {does}. That happens when it is traced, and not in compiled calls: return what is to be {done}."
    effects.hold(text, happen)


def _is_ours(logger: str) -> bool:
    return logger.partition(".")[0] == __name__.partition(".")[0]


def without_effects(work: Callable[[], T]) -> T:
    """`work()`, which must not print, log or write anything; other threads may.

    Raises:
        PlainCall: it would have.
    """
    me, out, err, make = get_ident(), sys.stdout, sys.stderr, logging.getLogRecordFactory()
    if me in _strict:
        return work()

    def made(name: str, *arguments: Any, **options: Any) -> logging.LogRecord:
        if not _is_ours(name):
            _refuse_effects("logs something")
        return make(name, *arguments, **options)

    def begin() -> T:
        _strict.add(me)
        sys.stdout, sys.stderr = _Silence(out), _Silence(err)
        logging.setLogRecordFactory(made)
        return work()

    def end() -> None:
        _strict.discard(me)
        sys.stdout, sys.stderr = out, err
        if logging.getLogRecordFactory() is made:
            logging.setLogRecordFactory(make)

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
