"""What is known of the steps that have been made of one function: of a step that is made again, and again.

A step that is decorated inside of a function is another one each time that function is called.  What a trace of it
costs, and how often such a step is called, is known by then:

1. After `_EARLIER` steps of the same code, the next one is traced only if what is left of the calls of the longest of
   the last few takes ten times as long as a trace in plain Python: to load code, compare a call and write the function
   that packs its arguments takes as long as some more traces.  One that has been called `_OUTLIVES` times as often as
   all of them is on its own.
   With `background=False`, which asks for code at the first call, as long as one trace is enough; and steps whose
   calls have to be compiled are always traced.
2. If many traces of such steps have come to nothing, and none has got a kernel, the next ones are plain Python at once.
   So they are if the compiled calls of `_SLOWER` of them have taken longer than plain ones, and those of none have not.
3. Of those for which that is known, most are made without what a trace needs (`unbegun`; later.py).  One in so many is
   not, so that it is noticed when calls take longer by now.

What belongs to the code of their kernels is shared in any case, by the structure of the trace (build.py).
"""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Hashable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from ...base.lookup import classes_of
from . import earnings
from .earnings import Waiting

if TYPE_CHECKING:
    from ...runtime.stats import Stats

#: So many steps of one code are known before the next one is judged by them; and so many of the last ones count.
_EARLIER, _LAST = 2, 4
#: What a trace has to save, in traces; the same where calls wait for code; and what one is taken to cost until there
#: has been one, in seconds.
_GAIN, _GAIN_AT_ONCE, _FIRST_SECONDS = 10.0, 1.0, 0.03
#: Calls of one that lives longer than those before, in calls of the longest of these.
_OUTLIVES = 2
#: So many traces that have come to nothing are enough.
_FRUITLESS = 6
#: So many steps that were slower when they were compiled are enough.
_SLOWER = 2
#: So many combinations of what is in their closures, and of options, are told apart.
_MOST_KINDS = 64
#: A step that is never traced begins after so many calls: then it is given up, and its calls are quicker.
_MOST_UNBEGUN = 128
#: One in so many steps begins at once; and so do those whose plain calls take so many seconds.
_AT_ONCE, _LONG = 64, 100e-6


class _Life:
    """How often one step has been called, also when it is gone."""

    def __init__(self, stats: Stats) -> None:
        self._stats, self._noted = weakref.ref(stats), 0

    def is_of(self, stats: Stats) -> bool:
        """Whether it is that of the step with these."""
        return self._stats() is stats

    def calls(self) -> int:
        """How many calls there have been, as far as known."""
        stats = self._stats()
        if stats is not None:
            self._noted = stats.all_calls
        return self._noted


class Unbegun:
    """The same of a step that has not begun.

    Attributes:
        made: calls that it has made. most: how many it may make.
    """

    __slots__ = ("made", "most")

    def __init__(self, most: int) -> None:
        self.made, self.most = 0, most

    def is_of(self, stats: Stats) -> bool:
        """As of the others; it has none."""
        return False

    def calls(self) -> int:
        """As of the others."""
        return self.made


class Lives:
    """The steps of one code.

    Attributes:
        reason: why the last trace that came to nothing did so.
    """

    def __init__(self) -> None:
        self._lives: deque[_Life | Unbegun] = deque(maxlen=_LAST + 1)
        self._seconds = self._plain = 0.0
        self._asked = 0
        self._fruitless, self._has_kernels = 0, False
        self._slower, self._has_quicker = 0, False
        self.reason = ""

    def begin(self, stats: Stats) -> None:
        """Note a new step."""
        self.note_calls()
        self._lives.append(_Life(stats))

    def may_begin_later(self) -> bool:
        """Whether enough is known of earlier steps."""
        return len(self._lives) >= _EARLIER and 0.0 < self._plain < _LONG and earnings._FIRST_SECONDS > 0.0

    def unbegun(self) -> Unbegun | None:
        """Note a new step that begins later; None if it is to begin at once."""
        self._asked += 1
        is_hopeless = self.are_hopeless()
        most = _MOST_UNBEGUN if is_hopeless else max([life.calls() for life in self._lives], default=0)
        if not most or not self._asked % _AT_ONCE:
            return None
        if not is_hopeless and most * self._plain >= _GAIN * (self._seconds or _FIRST_SECONDS):
            return None
        made = Unbegun(most)
        self._lives.append(made)
        return made

    def note_calls(self, plain: float = 0.0) -> None:
        """Note how often the steps have been called that still exist.

        Args:
            plain: what the last plain call has taken, in seconds.
        """
        self._plain = plain or self._plain
        for life in self._lives:
            life.calls()

    def note_trace(self, seconds: float) -> None:
        """Note what a trace has cost, with all that came after it."""
        self._seconds, self._has_kernels = seconds, True

    def note_fruitless(self, reason: str) -> None:
        """Note a trace that has come to nothing."""
        self._fruitless, self.reason = self._fruitless + 1, reason

    def note_weighed(self, reason: str) -> None:
        """Note that compiled calls of a step are quicker than plain ones, or why not."""
        self._slower, self._has_quicker = self._slower + bool(reason), self._has_quicker or not reason
        self.reason = reason or self.reason

    def are_slower(self) -> bool:
        """Whether a new step would be slower when it is compiled."""
        return self._slower >= _SLOWER and not self._has_quicker

    def are_hopeless(self) -> bool:
        """Whether a new step need not be traced."""
        return self.are_slower() or (self._fruitless >= _FRUITLESS and not self._has_kernels)

    def require(self, key: Hashable, stats: Stats, plain_seconds: float, is_patient: bool) -> None:
        """Return if a trace of the newest step may pay.

        Args:
            key: of the structure of the arguments. plain_seconds: what a plain call takes.
            is_patient: whether calls are to wait for code.

        Raises:
            Waiting: steps of this code do not live so long.
        """
        earlier = [life.calls() for life in self._lives if not life.is_of(stats)]
        calls = stats.all_calls
        if not earnings._FIRST_SECONDS or len(earlier) < _EARLIER or calls >= _OUTLIVES * max(earlier):
            return
        gain = _GAIN_AT_ONCE if is_patient else _GAIN
        if (max(earlier) - calls) * plain_seconds < gain * (self._seconds or _FIRST_SECONDS):
            raise Waiting(key, "steps of the same code have been called too seldom for a trace to pay")


_known: dict[int, tuple[weakref.ref[CodeType], dict[Hashable, Lives]]] = {}


def lives_of(function: Callable[..., Any], options: Hashable) -> Lives:
    """The steps that have been made of the code of a function with the same options.

    What it has in its closure counts: the classes of objects, and the code of functions that it may do no more than
    call.
    """
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if not isinstance(code, CodeType):
        return Lives()
    number = id(code)
    if number not in _known:
        _known[number] = weakref.ref(code, lambda _: _known.pop(number, None)), {}
    of_classes = _known[number][1]
    names = (*_parts_of(function), options) if len(of_classes) < _MOST_KINDS else None
    return of_classes.setdefault(names, Lives())


def _parts_of(function: Any) -> tuple[Hashable, ...]:
    """The names of classes of which a method or closure has objects, and of functions: both may be made again, too."""
    things = [getattr(function, "__self__", None)]
    for cell in getattr(getattr(function, "__func__", function), "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # it is empty
            things.append(cell.cell_contents)
    named = [thing if isinstance(thing, FunctionType) else kind for thing, kind in zip(things, classes_of(things))]
    return tuple([one and (one.__module__, one.__qualname__) for one in named])
