"""When a call of a step runs as plain Python: the policy for what cannot be compiled correctly.

A trace, or what comes before it, ends with a `PlainCall` if the call has to run as plain Python.  A trace takes longer
than a call, so not every later call is traced to find out the same once more:

1. A structure of arguments that has had to run as plain Python n times after a trace is traced again once there have
   been 8**n calls with it; until then its calls are plain at once (`require_trace`).
2. A structure that is new is traced, unless earlier ones have had to run as plain Python: then only if at least
   2**(traces of these) calls have been plain, so that a step that gets another structure in every call stays cheap.
3. What a step makes in its first calls (`NewStructure`: an attribute, an entry) is there in later ones, so a structure
   whose last trace found that is traced at the very next call, three times in all; after that, rule 1 holds.
4. A structure whose kernel differed from plain Python in a comparison is never traced again (`distrust`).
5. Every plain call is counted in `stats.plain_calls`.  Its reason is warned about once and kept in
   `stats.plain_reasons`, which `explain()` prints (`note_call`).  What rule 3 expects to pass is not mentioned before
   the third trace; the warning then is a SideEffectWarning, otherwise a BackendWarning.  Of a kernel that is wrong the
   comparison itself has warned.
6. Steps that are called in a plain call are a part of it, as of a trace, so that what they return has its graph
   (`as_part`).  Only where a step will never be compiled, and has no backward pass, do they run their kernels.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from .engine.precision import Precision
from .errors import BackendWarning, SideEffectWarning, user_stacklevel
from .record.leaks import NewStructure, PlainCall
from .record.progress import during_plain_call
from .stats import Stats
from .verification.documented import as_returned
from .world.code import read

#: Rule 1: calls before another trace, to the power of the traces so far.
_CALLS_BETWEEN_TRACES = 8
#: Rule 3: so many traces find out whether what the step makes is there in later calls.
_TRACES_TO_SETTLE = 3


@dataclass
class _Structure:
    """Arguments of one structure, with which the step runs as plain Python.

    Attributes:
        reason: why.
        traces: how many have found that.
        calls: how many calls with them there have been after the first.
        settles: whether it is to be expected that later calls are no such calls.
        is_final: whether it is never traced again.
        parameters: as of `PlainCall`.
    """

    reason: str
    traces: int = 0
    calls: int = 0
    settles: bool = False
    is_final: bool = False
    parameters: Sequence[Any] = ()

    @property
    def is_settling(self) -> bool:
        """Whether the next call is expected to be compiled."""
        return self.settles and self.traces < _TRACES_TO_SETTLE


class PlainCalls:
    """The structures of arguments with which a step runs as plain Python.

    Args:
        name: of the step. stats: of the step.
    """

    def __init__(self, name: str, stats: Stats) -> None:
        self._name, self._stats = name, stats
        self._structures: dict[Hashable, _Structure] = {}

    def require_trace(self, key: Hashable) -> None:
        """Return if a call with arguments of this structure is worth a trace.

        Raises:
            PlainCall: it runs as plain Python without one.
        """
        known = self._structures.get(key)
        if known is None:
            tried = [structure for structure in self._structures.values() if not structure.is_final]
            if self._stats.plain_calls + 1 < 2 ** sum(structure.traces for structure in tried):
                raise PlainCall(tried[-1].reason, tried[-1].parameters)
            return
        known.calls += 1
        is_time = known.calls >= _CALLS_BETWEEN_TRACES**known.traces and not known.is_final
        if not (known.is_settling or is_time):
            raise PlainCall(known.reason, known.parameters)

    def note_trace(self, key: Hashable, plain: PlainCall) -> None:
        """Note that a trace has ended with this."""
        known = self._structures.setdefault(key, _Structure(str(plain)))
        known.reason, known.settles, known.parameters = str(plain), isinstance(plain, NewStructure), plain.parameters
        known.traces += 1

    def distrust(self, key: Hashable, mismatch: str, parameters: Sequence[Any]) -> None:
        """Note that the kernel for arguments of this structure is wrong, of which the user has been warned."""
        reason = f"its kernel is wrong: {mismatch}"
        self._stats.plain_reasons.append(reason)
        self._structures[key] = _Structure(reason, is_final=True, parameters=parameters)

    def note_call(self, reason: str) -> None:
        """Count a call that is about to run as plain Python, and say why, each reason once."""
        self._stats.plain_calls += 1
        found = [structure for structure in self._structures.values() if structure.reason == reason]
        settles = any(structure.settles for structure in found)
        if settles and all(structure.traces < _TRACES_TO_SETTLE for structure in found):
            return
        if reason not in self._stats.plain_reasons:
            self._stats.plain_reasons.append(reason)
            kind = SideEffectWarning if settles else BackendWarning
            warnings.warn(f"{self._name} runs as plain Python: {reason}", kind, stacklevel=user_stacklevel())


def as_part(precision: Precision, call: Callable[[], Any], of_values: bool = True) -> Any:
    """What a plain call returns to the program; steps that are called in it are a part of it.

    Args:
        of_values: as of `as_returned`.
    """
    return as_returned(during_plain_call(precision, call), of_values)


def differentiates(function: Any) -> bool:
    """Whether a step's own code has a backward pass, which may begin at what another step returns."""
    code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
    return code is not None and "backward" in read(code).names
