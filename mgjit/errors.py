"""Every error that mgjit raises on purpose.

Each class is also the standard exception that fits, so that `except TypeError` keeps working in
code that does not know mgjit.  Messages have three parts: what happened and where (file:line of the
user's code, path of the object inside the arguments), why it cannot work, and how to write it.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from types import FrameType
from typing import Any

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_RANDOM = os.path.abspath(random.Random.seed.__code__.co_filename)
#: Files whose frames are not the user's: those of the package, and those of Python that draw random numbers.
_PASSED_OVER = (_PACKAGE, _RANDOM, os.path.join(os.path.dirname(_RANDOM), "secrets.py"))


class MgjitError(Exception):
    """Base class of all errors of mgjit."""


class TraceError(MgjitError, TypeError):
    """The step asked a traced value for something that only a real number has.

    Typical causes: `if loss > 1:`, `int(x)`, `range(n)` over a run-time input.
    """


class LeakError(MgjitError, RuntimeError):
    """A value that belongs to one trace was used outside of it (kept in a list, a global, an attribute)."""


class RandomnessError(MgjitError, RuntimeError):
    """The step drew random numbers in a way that compiled calls cannot repeat: they would be frozen into the kernel."""


class ArgumentError(MgjitError, TypeError):
    """An argument of a compiled step has a type that cannot be an input."""


class ArgumentValueError(MgjitError, ValueError):
    """An argument has the right type and a value that the kernel cannot represent (an int above 2**53)."""


class ColumnError(ArgumentError):
    """The columns of `.loop` do not make up rows of one structure; nothing was computed."""


class IndexRangeError(MgjitError, IndexError):
    """A run-time index (`mgjit.take`, `mgjit.one_hot`) lies outside of its table; nothing was written."""


class RetraceLimitError(MgjitError, RuntimeError):
    """The step was traced for more argument structures than `limit` allows."""


class PhaseError(MgjitError, RuntimeError):
    """`.backward()` or `.update()` was called before the phase that it continues."""


class PrecisionError(MgjitError, TypeError):
    """A parameter or state that lives in the memory of a float64 step is used in a float32 step, or the reverse."""


class UnsupportedError(MgjitError, NotImplementedError):
    """A documented feature that this version does not offer yet."""


class CompilerError(MgjitError, RuntimeError):
    """A C compiler could not be run, failed, or produced something that does not load."""


class CompilerTimeout(CompilerError, TimeoutError):
    """The C compiler used more time than it was given."""


class CompilerMemoryError(CompilerError, MemoryError):
    """The C compiler used more memory than it was given, or than there is; or it crashed, which often means that."""


class CacheError(MgjitError, OSError):
    """The disk cache cannot be used (only raised when an environment variable asks for strictness)."""


class VerificationError(MgjitError, AssertionError):
    """A pass produced a Program that is not well formed: a defect of mgjit, please report it."""


class BackendWarning(UserWarning):
    """mgjit fell back to something slower and right, for the reason in the text."""


class MismatchWarning(UserWarning):
    """A kernel has computed other numbers than plain Python, and is not used any more: a defect of mgjit."""


class SideEffectWarning(UserWarning):
    """A step changes something other than numbers, which happens only while it is traced."""


class RetraceWarning(UserWarning):
    """A step has been traced many times; the text names what differs between calls."""


_describing = threading.local()


def is_describing() -> bool:
    """Whether this thread is making the text of a message: traced numbers have no other."""
    return getattr(_describing, "active", False)


def described(thing: Any) -> str:
    """Type and contents of anything in a few words, for messages; its own `__repr__` may fail."""
    _describing.active = True
    try:
        contents = repr(thing)
    except Exception:
        contents = "that has no repr"
    finally:
        _describing.active = False
    return f"{type(thing).__name__} {contents:.40}"


def user_location() -> str:
    """`file:line` of the innermost frame that is not part of mgjit, nor of Python's modules of random numbers."""
    frame, _ = _user_frame()
    return "<unknown>:0" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def user_stacklevel() -> int:
    """The `stacklevel` with which a warning of the calling function points at the user's code."""
    return _user_frame()[1]


def _user_frame() -> tuple[FrameType | None, int]:
    frame: FrameType | None = sys._getframe(2)
    level = 1
    while frame is not None:
        filename = frame.f_code.co_filename
        if not os.path.abspath(filename).startswith(_PASSED_OVER) and not filename.startswith("<frozen"):
            break
        frame = frame.f_back
        level += 1
    return frame, level
