"""What becomes of a call that mgjit refuses: a plain call, and one warning.

A step may do what cannot be compiled, its arguments may be of a type that cannot be inputs, a compiler may fail, mgjit
may have a defect.  Plain Python finishes such a program, and so does a decorated step:

1. Whatever exception comes out of planning, tracing, lowering, building or accepting a call is a `Refused`, which is a
   `PlainCall`; by then the trace has put back everything (`refusal`).
2. Whether it is an exception of the user's own is not known before plain Python has made the call.  So that comes
   first; if it raises an exception, that is the one that the user gets, as without the decorator.
3. Otherwise the structure of the arguments is noted as one that is plain, and a `PlainWarning` says where and why,
   once for each cause (plain.py).  Of what is certain to be refused, it does so before the call.
4. What comes from a signal handler, or was raised in this thread by another one, is not ours and passes through, and so
   does a warning of ours that the program wants to be an error.

`@mgjit.compile(refuse="error")` and MGJIT_REFUSE=error raise the exceptions instead.  So do `.forward`, `.lower` and
others that have nothing to fall back to, whatever the option says.
"""

from __future__ import annotations

import builtins
import re
import signal
from collections.abc import Hashable, Iterator
from types import TracebackType
from typing import Any

from ...engine.leaks import Leaked, PlainCall, Symbol, Traced
from ...errors import (
    DefectWarning,
    LeakError,
    MgjitError,
    PlainWarning,
    RandomnessError,
    TraceError,
    VerificationError,
    is_defect,
    is_package_file,
)
from ...tracing.source import semantics

#: What is raised of a step's own code, wherever plain Python gets by.
_CERTAIN = (LeakError, RandomnessError, TraceError)
#: Makes operations in place of the user's code: on PyPy, a list says itself that a traced number is no index.
_OPERATIONS = semantics.__file__
_ADVICE = (
    "Something there needs a plain number, such as a library that is not written in Python: do it outside of the step, "
    "and pass in what it gives"
)


class Refused(PlainCall):
    """This call runs as plain Python because mgjit cannot do what it does, or has failed.

    Attributes:
        key: of the structure of its arguments, where that is known.
        cause: the same for all refusals of one line and kind.
        kind: of the warning.
        is_certain: whether it is no exception of the user's own.
    """

    def __init__(self, reason: str, key: Hashable, cause: Hashable, kind: type[Warning], is_certain: bool) -> None:
        super().__init__(reason)
        self.key, self.cause, self.kind, self.is_certain = key, cause, kind, is_certain


def refusal(error: Exception, location: str, key: Hashable = None) -> Refused:
    """What an exception means for a call that has not had any effect.

    Args:
        location: `file:line` of the step, for what has no line in it.
        key: of the structure of the arguments.

    Raises:
        Exception: the same one, if it is neither mgjit's own nor that of code that it has run.
    """
    is_warning = isinstance(error, Warning) and type(error).__module__ == PlainWarning.__module__
    if is_warning or _is_from_elsewhere(error):
        raise error
    frames = [(part.tb_frame.f_code.co_filename, part.tb_lineno) for part in _parts(error.__traceback__)]
    places = [f"{file}:{line}" for file, line in frames if not is_package_file(file)]
    place = places[-1] if places else location
    cause, said = (type(error), place), without_our_names(str(error))
    if isinstance(error, MgjitError) and not isinstance(error, VerificationError):
        return Refused(str(error).rstrip("."), key, cause, PlainWarning, isinstance(error, _CERTAIN))
    what = f"{type(error).__name__}: {said}"
    is_of_operation = bool(frames) and frames[-1][0] == _OPERATIONS and isinstance(error, TypeError)
    if is_defect(error) and not (is_of_operation or isinstance(error, RecursionError)):
        where = f"{frames[-1][0]}:{frames[-1][1]}" if frames else ""
        reason = f"{place}: a part of mgjit has failed ({what}, {where}), which is a defect: please report it"
        return Refused(reason, key, cause, DefectWarning, is_certain=False)
    reason = f"{place}: the line raises {what} while the step is traced, and not in plain Python. {_ADVICE}"
    return Refused(reason, key, cause, PlainWarning, is_certain=False)


def without_our_names(text: str) -> str:
    """A text of Python's without the names of the classes that stand for numbers while a step is traced."""
    names = {kind.__name__ for base in (Traced, Leaked, Symbol) for kind in _derived(base)} - set(vars(builtins))
    return re.sub(rf"(?:\b\w+\.)*\b({'|'.join(map(re.escape, sorted(names)))}|\w*Traced\w*)\b", "number", text)


def _derived(kind: type[Any]) -> Iterator[type[Any]]:
    yield kind
    for one in kind.__subclasses__():
        yield from _derived(one)


def _is_from_elsewhere(error: Exception) -> bool:
    """Whether an exception comes from a signal handler, or from another thread."""
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    frames = [part.tb_frame for part in _parts(error.__traceback__)]
    if any(frame.f_code in handlers for frame in frames):
        return True
    # mgjit, and what it calls, raises exceptions of its own and of Python.
    is_ours = type(error).__module__.partition(".")[0] in ("builtins", "mgjit") or not frames
    return not is_ours and is_package_file(frames[-1].f_code.co_filename)


def _code_of(handler: Any) -> Any:
    """The code of a signal handler; None if it is not written in Python."""
    function = getattr(handler, "__func__", handler)
    call = vars(type(function)).get("__call__")
    return getattr(function, "__code__", None) or getattr(call, "__code__", None)


def _parts(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
