"""Why a step is traced again, told apart: what changes at nearly every call and becomes no input.

A kernel works on what the trace has found.  Where something else is there, or arguments have another structure, the
step is traced again.  Mostly that ends it: what has changed is memory in the next trace, does not change any more, or
is one of a few structures that take turns.  Otherwise every call would be a trace, without an end:

1. A cause is a place, such as an attribute or an argument, whose contents are others, whatever they are (`cause_of`).
   The length of a list is none: there are few, and their kernels share code.
2. A trace is in vain if its kernel has made fewer calls than a trace costs before the next one for the same cause.
   After `_MOST` of them the call is plain, with the cause in one sentence; after `_MANY` where each trace learns
   something, or where objects may take turns.
3. Then, plain.py says when a trace is tried again.  If that one is in vain as well, the next call is plain at once.  If
   something has changed before there was its kernel, all that follow are, whatever it was: a growing list makes each
   trace longer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...engine.leaks import PlainCall

#: So many traces for one cause may be in vain; and so many where they may yet come to an end.
_MOST, _MANY = 3, 8
#: What a trace costs, in plain calls, for steps of all sizes; and one for other arguments, whose code may be shared.
_CALLS, _CALLS_OF_STRUCTURE = 1000, 4
_CURE_OF_INTS = (
    "An int that chooses an object, a length or a text is part of the code: choose numbers by it, as in table[index], "
    "or by a sum of products with mgjit.one_hot(index, n)"
)
_CURE = "Pass what changes as numbers or lists of numbers, or leave it out of the step"


@dataclass
class _Cause:
    """One cause.

    Attributes:
        reason: in words, when it was first met.
        traces: in vain, one after the other.
        calls: compiled ones, until the last trace.
        is_plain: whether it has made a call plain since then.
    """

    reason: str
    traces: int = 0
    calls: int = 0
    is_plain: bool = False


class Causes:
    """The causes for which one step has been traced again."""

    def __init__(self) -> None:
        self._causes: dict[str, _Cause] = {}
        self._refused = self._calls = 0  # refusals without a kernel in between, and compiled calls at the last one

    def require(self, reason: str, calls: int, is_structure: bool, may_end: bool, is_outdated: bool) -> None:
        """Return if a trace for this reason may come to an end of such traces.

        Args:
            reason: what is another than in the last trace. calls: compiled ones so far.
            is_structure: whether arguments are. may_end: whether what is known from traces has become more.
            is_outdated: whether that was so before there was a kernel.

        Raises:
            PlainCall: the call runs as plain Python.
        """
        found = self._causes.setdefault(cause_of(reason), _Cause(reason))
        if calls - found.calls >= (_CALLS_OF_STRUCTURE if is_structure else _CALLS):
            found.traces = 0
        found.calls = calls
        if calls - self._calls >= _CALLS:
            self._refused, self._calls = 0, calls
        is_too_often = found.traces >= (_MANY if may_end else _MOST) and not found.is_plain
        if is_too_often or (is_outdated and self._refused):
            found.is_plain, self._refused = True, self._refused + 1
            raise PlainCall(told(found.reason))
        found.traces += 1
        found.is_plain = False

    def are_hopeless(self) -> bool:
        """Whether a trace that was tried again has been in vain as well."""
        return self._refused > 1


def told(reason: str) -> str:
    """What is said where nearly each call would be another trace."""
    are_ints = re.search(r"was -?\d+, is -?\d+$", reason)
    return f"nearly each call would be another trace, since {reason}. {_CURE_OF_INTS if are_ints else _CURE}"


def cause_of(reason: str) -> str:
    """What is the same in all such reasons, whatever the contents are."""
    return reason.partition(" was ")[0]
