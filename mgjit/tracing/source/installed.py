"""Install the rewritten code of the user's functions during a trace (source/rewriting.py).

The function objects stay the same: only their `__code__` is exchanged, so closures, defaults, decorators and identities
are unchanged.  For everything that is not traced, rewritten code means the same, also in other threads.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import TypeVar

from ...base.interruption import with_cleanup
from ..surroundings.allowed import NOTHING, Outside
from .names import NAME_OF_HELPERS, STAND_INS
from .outside import identities
from .rewriting import rewritten
from .semantics import HELPERS

T = TypeVar("T")


def with_captured_functions(functions: Iterable[FunctionType], work: Callable[[], T], outside: Outside = NOTHING) -> T:
    """Return `work()`, run while these functions have their rewritten code.

    Args:
        outside: where they may meet what depends on the world outside of the step.
    """
    changed: list[tuple[FunctionType, CodeType]] = []

    def run() -> T:
        # The helpers are not removed: other threads, or a generator, may still run rewritten code after the trace.
        for name, thing in {NAME_OF_HELPERS: HELPERS, **STAND_INS}.items():
            setattr(builtins, name, thing)
        identities.update(outside.identities)
        for function, code in rewritten(functions, outside):
            changed.append((function, function.__code__))
            function.__code__ = code
        return work()

    def put_back() -> None:
        identities.clear()
        for function, original in changed:
            function.__code__ = original

    return with_cleanup(run, put_back)
