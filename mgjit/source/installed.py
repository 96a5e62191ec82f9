"""For the time of a trace, the user's functions run rewritten (source/rewriting.py).

The functions themselves stay: only their `__code__` is exchanged, so closures, defaults, decorators and identities are
what they were.  Rewritten code means the same for everything that is not traced, also in other threads meanwhile.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import TypeVar

from ..interruption import with_cleanup
from .names import STAND_INS
from .rewriting import NAME_OF_HELPERS, rewritten
from .semantics import HELPERS

T = TypeVar("T")


def with_captured_functions(functions: Iterable[FunctionType], work: Callable[[], T]) -> T:
    """`work()`, while functions run rewritten."""
    changed: list[tuple[FunctionType, CodeType]] = []

    def run() -> T:
        # The helpers stay: calls of other threads, or a generator, may go on with rewritten code after the trace.
        for name, thing in {NAME_OF_HELPERS: HELPERS, **STAND_INS}.items():
            setattr(builtins, name, thing)
        for function, code in rewritten(functions):
            changed.append((function, function.__code__))
            function.__code__ = code
        return work()

    def put_back() -> None:
        for function, original in changed:
            function.__code__ = original

    return with_cleanup(run, put_back)
