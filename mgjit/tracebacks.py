"""Shorten tracebacks to the user's frames: those of this package are left out, except for the entry itself.

Between the call of a step and the line in it that fails are some forty frames that tell the user nothing.
`MGJIT_LOG=2` keeps them; they are also kept if no line of the user's caused the error, which is probably a defect.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from . import settings
from .errors import MgjitError, VerificationError, is_package_file

F = TypeVar("F", bound=Callable[..., Any])


def with_short_tracebacks(entry: F) -> F:
    """Decorate a function through which user code enters this package: its exceptions get a short traceback."""

    @functools.wraps(entry)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return entry(*args, **kwargs)
        except BaseException as error:
            if settings.log_level() <= logging.DEBUG:
                raise
            inner = error.__traceback__ and error.__traceback__.tb_next
            raise error.with_traceback(_shortened(inner, _is_expected(error)))  # noqa: B904 - it is the same error

    return call  # type: ignore[return-value]


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
