"""For the time of a trace, the user's functions run rewritten (trace/rewriting.py).

The functions themselves stay: only their `__code__` is exchanged, so closures, defaults, decorators and identities are
what they were.  Rewritten code means the same for everything that is not traced, also in other threads meanwhile.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType

from .rewriting import NAME_OF_HELPERS, rewritten
from .semantics import HELPERS


@contextmanager
def captured_functions(functions: Iterable[FunctionType]) -> Iterator[None]:
    """Let functions run rewritten while the block runs."""
    changed = []
    setattr(builtins, NAME_OF_HELPERS, HELPERS)
    try:
        for function, code in rewritten(functions):
            changed.append((function, function.__code__))
            function.__code__ = code
        yield
    finally:
        for function, original in changed:
            function.__code__ = original
        # The helpers stay: a generator that was started during the trace may go on after it.
