"""Loops whose iterations are timed, until it is known whether a step is worth a try.

1. A step is tried if what is to come is worth three times what the try is expected to cost, loading mgjit and a trace,
   and if a try that fails leaves the program hardly later than plain Python (purse.py).  One that paid in an earlier
   run is tried in the first iteration.
2. Of loops that run in one another, in the same function or not, the outermost one is tried first whose iterations are
   neither too long nor too few (`is_ahead`).  Those in it are plain code meanwhile, also while it is traced, and have
   their turn when it is given up.  An outer loop that does nothing but go through others waits for them (`Reserve`),
   unless calls would be much of their iterations, and its own are short enough to be one call.
3. Of expressions that evaluate a model, evaluations are timed (`WatchingValue`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from time import thread_time

from .purse import LOADING, PURSE
from .running import around, comes_last, is_inert
from .section import Off, Section, loops
from .trying import TOO_SLOW, Trying

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .rewrite import StepSource

#: What a trace costs, if it comes to nothing, in iterations.
_TRACE = 10.0
#: What is to come has to be worth so many times that.
_GAIN = 3.0
#: An outer loop is tried if its iterations take at most so many seconds, and there are at least so many.
_SHORT, _MANY = 0.3, 20
#: The part of what an earlier run has shown to be saved that may be spent before it is.
_TRUSTED = 0.5
#: So many seconds of iterations tell how long one takes: the first ones take longer.
_WATCHED = 0.05
#: Iterations that are shorter than this gain nothing, since a compiled call takes half of it; so many show it.
_TINY, _SURE = 12e-6, 1000
#: The same where one call makes at least so many iterations; what the trace costs more.
_TINY_ROW, _FEWEST_ROWS, _ROW_TRACE = 0.5e-6, 16, 0.05
#: An outer loop is left to one in it of so many of these iterations, if they take such a part of the time.
_MANY_ROWS, _MOST_OF_TIME = 64, 0.7
#: It is not left to those in it whose iterations are shorter than this, of which the calls would be much, if its own
#: take at most so long: then its trace is short.
_QUICK, _WHOLE = 60e-6, 2e-3
_TOO_SHORT = "its iterations are too short to gain anything"
_TOO_LONG = "its iterations are too long, or too few, for one step: what is inside of it is tried instead"


def _trying_rows(section: Section) -> type[Trying]:
    from .trying_rows import TryingEach, TryingRows  # which most scripts do without

    return TryingEach if section.rows is None else TryingRows


class Untried(Section):
    """No step has been tried so far."""

    __slots__ = ()

    def _is_behind(self) -> bool:
        """Whether a section around this one is ahead of it; all of them are asked, since some may be given up."""
        found, outer = around(self), self.outer
        while outer is not None:
            found.append(outer)
            outer = outer.outer
        return sum(one.is_ahead() for one in found) > 0

    def _look(self) -> bool:
        """Count iterations at a question; returns whether it is one to be answered."""
        if is_inert():
            return False
        comes_last(self)
        self.count(True)
        return True

    def _is_tiny(self) -> bool:
        """Whether iterations are too short to gain anything; gives up if that is sure."""
        are_many = self.rows is not None and self.done > _FEWEST_ROWS * self.entries
        is_tiny = self.iteration < (_TINY_ROW if are_many else _TINY)
        if is_tiny and self.done > _SURE:
            self.end(_TOO_SHORT)
        return is_tiny

    def _pays(self, to_come: float) -> bool:
        """Whether a try costs so little that it is worth it.

        Args:
            to_come: how many iterations are to come; if that is not known, as many as there have been.
        """
        loading = 0.0 if "mgjit.script.step" in sys.modules else LOADING
        cost, seconds = loading + _TRACE * self.iteration, to_come * self.iteration
        cost += _ROW_TRACE if self.rows is not None else 0.0
        return _GAIN * cost <= seconds and cost <= PURSE.left(seconds)

    def _try(self, to_come: float) -> None:
        """Try a step from now on."""
        PURSE.trust(_TRUSTED * self.worth)
        self.allowed, self.calls_to_come = max(0.0, PURSE.left(to_come * self.iteration)), to_come
        self.start = self.done
        self.let_go(0)
        self.__class__ = Trying if self.source.rows is None else _trying_rows(self)  # type: ignore[assignment]


class Watching(Untried):
    """Its iterations are timed."""

    __slots__ = ()

    @property
    def ready(self) -> bool:
        """Whether a step is to be tried now."""
        if not self._look():
            return False
        if self._is_to_be_tried():
            self._try(self.to_come())
            return True
        if type(self) is Watching:
            self.rest()
        return False

    def _is_to_be_tried(self) -> bool:
        if self.worth:
            return not any(isinstance(one, Trying) and one.calls for one in around(self))
        if not self.done or (self.done * self.iteration < max(_WATCHED, self.patience) and not self.is_eager):
            return False
        is_tiny = self._is_tiny()  # which is asked first: it may end what would be counted on behind others
        if is_tiny or self._is_behind() or not self._is_sensible() or self._is_left_to_rows():
            return False
        if any(isinstance(one, Trying) and one.calls for one in (*self.inner, *self.within)):
            return False
        return self.is_eager or self._pays(self.to_come())

    def _is_left_to_rows(self) -> bool:
        """Whether most of the time goes into a loop in it of which a call makes many iterations: its trace is short."""
        inside = [one for one in (*self.inner, *self.within) if one.on and one.rows is not None]
        most = _MOST_OF_TIME * self.total() * self.iteration
        return any(one.done > _MANY_ROWS * one.entries and one.total() * one.iteration > most for one in inside)

    def _is_sensible(self) -> bool:
        """Whether iterations are neither too long nor too few, if loops in it may be tried instead; gives up if not."""
        if not (self.inner or any(one.done and one.iteration > _TINY and one.on for one in self.within)):
            return True
        to_come = self.left_to_do()
        if self.iteration <= _SHORT and not 0 <= to_come < _MANY:
            return True
        self.end(_TOO_LONG)
        return False

    def is_ahead(self) -> bool:
        if not self.done:  # the first iteration
            if self.asked and thread_time() - self.mark > _SHORT:
                self.end(_TOO_LONG)
                return False
            return True
        if self._is_left_to_rows() or not self._is_sensible():
            return False
        to_come = self.left_to_do()
        return self.is_eager or to_come < 0 or self._pays(to_come)


class Reserve(Watching):
    """The loops in it come first; it is tried where calls for their iterations would gain little."""

    __slots__ = ()

    @property
    def ready(self) -> bool:
        """Never; but a step may be tried later."""
        if not self._look():
            return False
        gain_little = self.inner and all(inner.reason in (_TOO_SHORT, TOO_SLOW) for inner in self.inner)
        if gain_little or self._is_quick():
            self.__class__ = Watching  # type: ignore[assignment]
        elif all(isinstance(inner, Off) for inner in self.inner):
            self.end("the loops in it cannot be compiled")
        else:
            self.rest()
        return False

    def _is_quick(self) -> bool:
        """Whether a call for one of its iterations gains more than calls for those of the loops in it."""
        if not self.done or self.iteration > _WHOLE or self._is_left_to_rows():
            return False
        are_untried = all(type(one) is Watching and not one.worth for one in self.inner)
        return are_untried and all(one.done and one.iteration < _QUICK for one in self.inner)

    def is_ahead(self) -> bool:
        return False


class WatchingValue(Untried):
    """An expression whose evaluations are timed."""

    __slots__ = ()

    @property
    def ready(self) -> bool:
        """Whether a step is to be tried now."""
        if is_inert():
            return False
        watched = max(_WATCHED, self.patience)
        is_known = self.done and (self.done * self.iteration > watched or self.is_eager)
        is_wanted = is_known and not self._is_behind() and not self._is_tiny()
        if self.worth or (is_wanted and (self.is_eager or self._pays(self.done))):
            self._try(max(self.done, self.expected))
            return True
        self.mark = thread_time()
        return False

    def noted(self, value: Any) -> Any:
        self.done += 1
        self.iteration += (thread_time() - self.mark - self.iteration) / self.done
        return value


def sections_of(steps: Sequence[StepSource], namespace: dict[str, Any]) -> list[Section]:
    """The sections of a module."""
    made: list[Section] = []
    for source in steps:
        kind = WatchingValue if source.is_value else Reserve if source.in_reserve else Watching
        section: Section = kind(source, namespace)
        if source.outer >= 0:
            section.outer = made[source.outer]
            section.outer.inner.append(section)
        made.append(section)
        loops.extend([] if source.is_value else [section])
    return made
