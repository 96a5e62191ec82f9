"""Shorten tracebacks to the user's frames: those of this package are left out, except for the entry itself.

Between the call of a step and the line in it that fails are some forty frames that tell the user nothing.
`MGJIT_LOG=2` keeps them; they are also kept if no line of the user's caused the error, which is probably a defect.

A function that an exception leaves is in its traceback.  So calls of steps do not raise in a function of ours: they
return an object to Python that raises it, from C (`Failed`).  That takes 0.3 us, which would be a sixth of a short
compiled call: the generated functions that make these are in tracebacks, under the name of the step.  On PyPy, where
`Failed` is written in Python as well, the entry is there, too.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Generator, Iterator
from operator import methodcaller
from types import TracebackType
from typing import Any, TypeVar

from ..errors import MgjitError, VerificationError, is_package_file
from . import settings

_IS_PYPY = sys.implementation.name == "pypy"
F = TypeVar("F", bound=Callable[..., Any])


def with_short_tracebacks(entry: F) -> F:
    """Decorate a function through which user code enters this package: its exceptions get a short traceback."""

    @functools.wraps(entry)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return entry(*args, **kwargs)
        except BaseException as error:
            raise shortened(error)  # noqa: B904 - it is the same error

    return call  # type: ignore[return-value]


def _nothing() -> Generator[None, None, None]:
    yield from ()


_ended = _nothing()
next(_ended, None)


class Failed:
    """A call that an exception has left.

    To call a class is to call its `__new__` and, if that returns an object of the class, to ask for the `__init__` of
    that object: a property that raises the exception, by functions in C, where the call is.
    """

    __slots__ = ("fail",)
    fail: Callable[[], Any]
    __init__ = property(methodcaller("fail"))

    def __new__(cls, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """What a call returns, or else an object of this class."""
        try:
            return call(*args, **kwargs)
        except BaseException as error:
            return failed(cls, error)


def failed(cls: type[Failed], error: BaseException) -> Failed:
    """The call that an exception has left on its way to the function that calls this."""
    made = object.__new__(cls)
    made.fail = functools.partial(_ended.throw, shortened(error))  # a generator that has ended raises it as it is
    return made


def unseen(entry: Callable[..., Any]) -> Callable[..., Any]:
    """A function through which user code enters this package, so that no traceback shows it."""
    return with_short_tracebacks(entry) if _IS_PYPY else functools.partial(Failed, entry)


def shortened(error: BaseException) -> BaseException:
    """An exception that has come to the function that calls this, with a short traceback."""
    if settings.log_level() <= logging.DEBUG:
        return error
    inner = error.__traceback__ and error.__traceback__.tb_next
    return error.with_traceback(_shortened(inner, _is_expected(error)))


def _is_expected(error: BaseException) -> bool:
    return isinstance(error, MgjitError) and not isinstance(error, VerificationError)


def _shortened(traceback: TracebackType | None, is_expected: bool) -> TracebackType | None:
    """A traceback without the frames of this package; unchanged if that would leave nothing of an unexpected error."""
    of_user = [part for part in _parts(traceback) if not is_package_file(part.tb_frame.f_code.co_filename)]
    if not of_user and not is_expected:
        return traceback
    made: TracebackType | None = None
    for part in reversed(of_user):
        try:
            made = TracebackType(made, part.tb_frame, part.tb_lasti, part.tb_lineno)
        except TypeError:  # an interpreter on which tracebacks cannot be made
            return traceback
    return made


def _parts(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next
