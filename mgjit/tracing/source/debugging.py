"""Debuggers, which are to find the user's lines, not ours.

1. While a debugger traces this thread, calls of steps are plain Python (`is_debugged`): each line can be stepped
   through, and what is looked at are numbers.  Tools that measure which lines run are no debuggers; they see the lines
   of traces and plain calls.
2. A step that stops for a debugger itself is plain Python (`refusing_debuggers`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container
from threading import get_ident
from typing import Any, NoReturn, TypeVar

from ...base.interruption import with_cleanup
from ...engine.leaks import PlainCall
from ...errors import user_location

T = TypeVar("T")

#: Packages whose functions for `sys.settrace` only measure.
_MEASURING = frozenset({"mgjit", "coverage", "pytest_cov", "slipcover", "hunter", "trace"})
_monitoring: Any = getattr(sys, "monitoring", None)  # from Python 3.12 on


def is_debugged() -> bool:
    """Whether a debugger is at work in this thread."""
    tracer = sys.gettrace()
    if tracer is None:
        return _monitoring is not None and _monitoring.get_tool(_monitoring.DEBUGGER_ID) is not None
    owner = getattr(tracer, "__self__", tracer)
    module = getattr(owner, "__module__", None) or type(owner).__module__
    return str(module).partition(".")[0] not in _MEASURING


def refusing_debuggers(names: Container[str], work: Callable[[], T]) -> T:
    """`work()`, a trace, which no debugger may stop.

    Args:
        names: that its code mentions.

    Raises:
        PlainCall: it would have been stopped.
    """
    me = get_ident()
    if "set_trace" in names:
        import bdb  # the base of all debuggers, which the step may not have imported yet

        return _refusing(bdb.Bdb, "set_trace", me, lambda: _refusing(sys, "breakpointhook", me, work))
    return _refusing(sys, "breakpointhook", me, work) if "breakpoint" in names else work()


def _refusing(owner: Any, name: str, thread: int, work: Callable[[], T]) -> T:
    """`work()`, in which a function or method raises a PlainCall in this thread."""
    original = getattr(owner, name)

    def stop(*arguments: Any, **named: Any) -> Any:
        return original(*arguments, **named) if get_ident() != thread else _refuse()

    def begin() -> T:
        setattr(owner, name, stop)
        return work()

    def end() -> None:
        if getattr(owner, name) is stop:
            setattr(owner, name, original)

    return with_cleanup(begin, end)


def _refuse() -> NoReturn:
    raise PlainCall(f"{user_location()}: it stops for a debugger")
