"""What each thread computes with: whether results remember how (`no_grad`, `enable_grad`), and which floats they are.

A step computes with floats of one type, and refuses tensors of the other.  It does so as well where a call of it runs
as plain Python (`computing_with`), so that what works does not depend on that.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from ..engine.precision import Precision

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

_modes = threading.local()


def gradients_are_on() -> bool:
    """Whether operations are remembered for `backward`."""
    return getattr(_modes, "gradients", True)


def floats_of_step() -> Precision | None:
    """What the step computes with whose plain call this thread is inside of."""
    return getattr(_modes, "precision", None)


def use_floats(precision: Precision | None) -> Precision | None:
    """Compute with these floats from now on; returns those before."""
    before = getattr(_modes, "precision", None)
    _modes.precision = precision
    return before


def computing_with(precision: Precision, call: Callable[[], R]) -> R:
    """`call()`, a plain call of a step of this precision."""
    before = use_floats(precision)
    try:
        return call()
    finally:
        _modes.precision = before


class _Mode:
    """A context manager and decorator that switches gradients on or off."""

    _gradients = True

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(gradients_are_on())
        _modes.gradients = self._gradients

    def __exit__(self, *_: object) -> None:
        _modes.gradients = self._before.pop()

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def wrapped(*arguments: Any, **named: Any) -> Any:
            with type(self)():
                return function(*arguments, **named)

        return wrapped  # type: ignore[return-value]


class no_grad(_Mode):
    """`with mgjit.no_grad():` or `@mgjit.no_grad()`: what is computed inside needs no gradient.

    Examples:
        >>> w = mgjit.tensor.ones(2, requires_grad=True)
        >>> with mgjit.no_grad():
        ...     w -= 0.5
        >>> w.tolist()
        [0.5, 0.5]
    """

    _gradients = False


class enable_grad(_Mode):
    """The reverse, inside of `no_grad`."""
