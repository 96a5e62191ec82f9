"""Whether what is computed remembers how: `no_grad` and `enable_grad`, for each thread."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_modes = threading.local()


def gradients_are_on() -> bool:
    """Whether operations are remembered for `backward`."""
    return getattr(_modes, "gradients", True)


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
    """`with mgjit.no_grad():` or `@mgjit.no_grad()`: what is computed inside needs no gradient."""

    _gradients = False


class enable_grad(_Mode):
    """The reverse, inside of `no_grad`."""
