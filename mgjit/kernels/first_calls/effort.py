"""How much work a plain call is, told without a clock: so that a program takes the same decision in every run.

When a step is traced for the first time decides at which call its refusals are said.  Clocks differ from run to run by
a factor of two.  So the first plain call of a step counts the lines that it executes, up to `_MOST`, of its own code
and of all that it calls; that takes some milliseconds at most, once.

A step whose own code branches is the most likely to be refused.  So it is traced at its second call in any case, to see
whether it can be, unless one of the same code has been (`may_be_refused`).
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar
from weakref import WeakSet

from ...base.interruption import with_cleanup
from ...tracing.surroundings.code import codes

T = TypeVar("T")

#: So many lines are counted; a call that executes more takes longer than it matters.
_MOST = 25_000
#: What an executed line takes, and a call besides, in seconds, on some usual machine.
_OF_LINE, _OF_CALL = 50e-9, 1e-6
#: What a call takes at least of which not all lines are counted.
LONG = _MOST * _OF_LINE


def counted(call: Callable[[], T], note: Callable[[float], Any]) -> T:
    """`call()`; `note` gets the seconds that it takes on some usual machine, unless somebody else traces the thread."""
    if sys.gettrace() is not None:
        return call()
    lines = 0

    def tracer(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += 1
        if lines < _MOST:
            return tracer
        sys.settrace(None)
        return None

    def begin() -> T:
        sys.settrace(tracer)
        return call()

    def end() -> None:
        if sys.gettrace() is tracer:
            sys.settrace(None)

    result = with_cleanup(begin, end)
    note(_OF_CALL + lines * _OF_LINE)
    return result


#: What need not be traced to see whether it can be: it has been, or does not branch.
_seen: WeakSet[CodeType] = WeakSet()


def may_be_refused(function: Any) -> bool:
    """Whether the own code of a step branches, and none of its steps has been looked at."""
    code = _code_of(function)
    if code is None or code in _seen:
        return False
    names = (instruction.opname for each in codes(code) for instruction in dis.get_instructions(each))
    branches = any("JUMP" in name and "_IF_" in name for name in names)
    if not branches:
        _seen.add(code)
    return branches


def note_looked_at(function: Any) -> None:
    """Note that the code of a step can be traced, or cannot."""
    code = _code_of(function)
    if code is not None:
        _seen.add(code)


def _code_of(function: Any) -> CodeType | None:
    code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
    return code if isinstance(code, CodeType) else None
