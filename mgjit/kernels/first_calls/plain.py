"""When a call of a step runs as plain Python: the policy for what cannot be compiled correctly.

A trace, or what comes before it, ends with a `PlainCall` if the call has to run as plain Python.  A trace takes longer
than a call, so not every later call is traced to find out the same once more:

1. A structure of arguments that has had to run as plain Python n times after a trace is traced again once there have
   been 8**n calls with it; until then its calls are plain at once (`require_trace`).  After three traces, at calls 1, 8
   and 64, it is never traced again.
2. A structure that is new is traced, unless earlier ones have had to run as plain Python: then only if at least
   2**(traces of these) calls have been plain, so that a step that gets another structure in every call stays cheap.
   Models of another class are judged by themselves.
3. What a step makes in its first calls (`NewStructure`: an attribute, an entry) is there in later ones, so a structure
   whose last trace found that is traced at the very next call, three times in all; after that, rule 1 holds for one
   more trace.
4. A structure whose kernel differed from plain Python in a comparison is never traced again (`distrust`).
5. Every plain call is counted in `stats.plain_calls`.  Its reason is warned about once and kept in
   `stats.plain_reasons`, which `explain()` prints (`note_call`).  What rule 3 expects to pass is not mentioned before
   the third trace; the warning then is a SideEffectWarning, otherwise a PlainWarning.  Of a kernel that is wrong the
   comparison itself has warned.
6. Steps that are called in a plain call are a part of it, as of a trace, so that what they return has its graph
   (`as_part`).  Only where a step will never be compiled, and has no backward pass, do they run their kernels.
"""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from ...engine.leaks import NewStructure, PlainCall
from ...engine.precision import Precision
from ...engine.progress import during_plain_call
from ...errors import PlainWarning, SideEffectWarning, user_stacklevel
from ...runtime.stats import Stats
from ...tracing.surroundings.code import read
from ...verification.documented import as_returned
from .refusals import Refused

#: Rule 1: calls before another trace, to the power of the traces so far.
_CALLS_BETWEEN_TRACES = 8
#: Rule 3: so many traces find out whether what the step makes is there in later calls.
_TRACES_TO_SETTLE = 3
#: What does not settle is told after so many calls, or where most calls are plain, in however many structures.
_MOST_UNTOLD = 8
#: Rule 2: so many combinations of classes are judged by themselves.
_MOST_CLASSES = 8
#: Rule 1: so many traces there are of a structure; rule 3: one more.
_MOST_TRACES = 3
#: A key of a dict, or an index, in a reason.
_KEYS = re.compile(r"\[[^][]*\]")


@dataclass
class _Structure:
    """Arguments of one structure, with which the step runs as plain Python.

    Attributes:
        reason: why.
        traces: how many have found that.
        calls: how many calls with them there have been after the first.
        settles: whether it is to be expected that later calls are no such calls.
        is_wrong: whether its kernel was wrong, or does not pay.
        parameters: as of `PlainCall`.
        classes: of the objects among the arguments.
        cause: of a refusal, whose text may name other numbers each time.
    """

    reason: str
    traces: int = 0
    calls: int = 0
    settles: bool = False
    is_wrong: bool = False
    parameters: Sequence[Any] = ()
    classes: Hashable = ()
    cause: Hashable = None

    @property
    def is_final(self) -> bool:
        """Whether it is never traced again."""
        return self.is_wrong or self.traces >= _MOST_TRACES + self.settles

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
        self._causes: set[Hashable] = set()  # of what was warned of: those of refusals, and reasons without keys
        self._given_up: _Structure | None = None
        self.current: _Structure | None = None  # of the last plain call; None if it has not been traced
        self.classes: Hashable = ()  # of the objects among the arguments of the last call that was planned

    def require_trace(self, key: Hashable) -> None:
        """Return if a call with arguments of this structure is worth a trace.

        Raises:
            PlainCall: it runs as plain Python without one.
        """
        known = self.current = self._structures.get(key)
        if known is None:
            tried = self._tried()
            if self._stats.plain_calls + 1 < 2 ** sum(structure.traces for structure in tried):
                raise PlainCall(tried[-1].reason, tried[-1].parameters)
            return
        known.calls += 1
        is_time = known.calls >= _CALLS_BETWEEN_TRACES**known.traces and not known.is_final
        if not (known.is_settling or is_time):
            raise PlainCall(known.reason, known.parameters)

    def calls_without_trace(self, structure: _Structure | None) -> int:
        """How many calls with arguments of this structure are certain to be plain; None: of another new one."""
        if structure is None:
            return int(2 ** sum(each.traces for each in self._tried()) - self._stats.plain_calls - 2)
        if structure.is_final:
            return sys.maxsize
        return 0 if structure.is_settling else _CALLS_BETWEEN_TRACES**structure.traces - structure.calls - 1

    def are_final(self) -> bool:
        """Whether nothing is going to be traced any more, as far as one knows."""
        if self.current is not None and self.current.is_final:
            return True
        tried = self._tried()
        return sum(each.traces for each in tried) >= _MOST_TRACES and len(tried) > 1

    def _tried(self) -> list[_Structure]:
        """The structures that have been traced, of objects of the same classes as in the last call."""
        tried = [each for each in self._structures.values() if not each.is_wrong]
        if len({each.classes for each in tried}) > _MOST_CLASSES:
            return tried
        return [each for each in tried if each.classes == self.classes]

    def require_plan(self, key: Hashable) -> None:
        """Return if arguments of these types are worth a plan.

        Raises:
            PlainCall: the call runs as plain Python without one.
        """
        if key in self._structures:
            self.require_trace(key)

    def give_up(self, reason: str, is_told: bool = True) -> None:
        """Let all calls be plain; those of `.loop` may still be compiled.

        Args:
            is_told: whether the next call warns of it.
        """
        if not is_told:
            self._stats.plain_reasons.append(reason)
        self._given_up = _Structure(reason, is_wrong=True)

    @property
    def is_given_up(self) -> bool:
        """Whether all calls are plain, whatever their arguments."""
        return self._given_up is not None

    def require_gain(self) -> None:
        """Return if kernels are worth it.

        Raises:
            PlainCall: the call runs as plain Python.
        """
        if self._given_up is not None:
            self.current = self._given_up
            raise PlainCall(self._given_up.reason)

    def note_trace(self, key: Hashable, plain: PlainCall, is_final: bool = False) -> None:
        """Note that a trace has ended with this, or that there is to be no other one."""
        known = self.current = self._structures.setdefault(key, _Structure(str(plain), classes=self.classes))
        known.reason, known.settles, known.parameters = str(plain), isinstance(plain, NewStructure), plain.parameters
        known.cause = getattr(plain, "cause", None)
        known.traces = _MOST_TRACES + known.settles if is_final else known.traces + 1

    def distrust(self, key: Hashable, mismatch: str, parameters: Sequence[Any]) -> None:
        """Note that the kernel for arguments of this structure is wrong, of which the user has been warned."""
        reason = f"its kernel is wrong: {mismatch}"
        self._stats.plain_reasons.append(reason)
        self.current = self._structures[key] = _Structure(reason, is_wrong=True, parameters=parameters)

    def close(self, key: Hashable, reason: str) -> None:
        """Note that kernels for arguments of this structure do not pay."""
        self.current = self._structures[key] = _Structure(reason, is_wrong=True)

    def note_refused(self, refused: Refused, is_made: bool) -> None:
        """Count a call that runs as plain Python because it was refused, and say why, once for each cause and text.

        Args:
            is_made: whether plain Python has made it.  Where a warning is an error, the next call raises it then,
                before it has changed anything.
        """
        self._stats.plain_calls += 1
        self._stats.note_plain(str(refused))
        if refused.cause in self._causes:
            return
        self._causes.add(refused.cause)
        if str(refused) in self._stats.plain_reasons:  # told of a row of `.loop`, or of a call
            return
        try:
            self._say(str(refused), refused.kind)
        except Warning:
            if not is_made:
                raise
            self._causes.discard(refused.cause)
            self._stats.plain_reasons.remove(str(refused))

    def note_call(self, reason: str) -> None:
        """Count a call that is about to run as plain Python, and say why, each reason once."""
        self._stats.plain_calls += 1
        self._stats.note_plain(reason)
        found = [structure for structure in self._structures.values() if structure.reason == reason]
        settles = any(structure.settles for structure in found)
        is_early = self._stats.plain_calls <= max(_MOST_UNTOLD, self._stats.calls)  # each call may have a structure
        if settles and is_early and all(structure.traces < _TRACES_TO_SETTLE for structure in found):
            return
        cause = _KEYS.sub("[]", reason) if settles else reason  # a dict that grows gets another key each time
        is_told = not self._causes.isdisjoint([cause, *(structure.cause for structure in found)])
        if reason not in self._stats.plain_reasons and not is_told:
            self._say(reason, SideEffectWarning if settles else PlainWarning)
            self._causes.add(cause)

    def tell(self, reason: str) -> None:
        """Warn, if that was not done, of why calls wait for a kernel that may never come."""
        if reason not in self._stats.plain_reasons:
            self._say(reason, PlainWarning)

    def _say(self, reason: str, kind: type[Warning]) -> None:
        """Warn of a reason.

        Raises:
            Warning: this warning, where the program wants it to be an error.
        """
        self._stats.plain_reasons.append(reason)
        text = f"{self._name} runs as plain Python: {reason}"
        try:
            warnings.warn(text, kind, stacklevel=user_stacklevel())
        except kind:
            raise kind(f"{text}. Nothing has changed: this is raised before the call, and not by later ones") from None


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
