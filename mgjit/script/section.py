"""A part of a loop that may run as a compiled step: what all of them have in common, tried or not.

1. At first the statements run as they stand, and iterations are counted and timed (watching.py).  What is to come is
   known from the lengths of what is iterated over (`entered`, `to_come`); otherwise, and when its function is called
   again, the loop is taken to run once more for as long as it has done so far, or for as long as in an earlier run.
2. While a step is tried, iterations ask for the result of a compiled call (trying.py).
3. It is given up for good (`Off`) when that is of no use.  Then the loop runs as it stands from its next beginning on.
4. What earlier runs have found out comes first (remembered.py).

Nothing of the rest of mgjit is imported before a step is tried.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from time import thread_time

from .counted import Counted
from .rows import is_finished, iterator_over
from .running import around, comes_last, is_inert, running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .rewrite import StepSource
    from .step import OutlinedStep

#: Slices of these are taken for a step.
_LISTS = frozenset({list, tuple})
#: Lengths of these are read without running code of the program.
_SIZED = (range, list, tuple, dict, str, set, frozenset, bytes)


def leave_out() -> None:
    """Let collections of garbage leave out what there is: mgjit's own would make them a third slower."""
    if hasattr(gc, "freeze"):
        gc.freeze()


class Section(Counted):
    """A part of a loop.

    Args:
        source: of the step. namespace: the variables of its module.

    Attributes:
        outer, inner: those around it and in it, in the same function. within: those in it, of other functions.
        frame: the identities of the frame of its function, and of the code.
        each: processor seconds of the last compiled calls, on average; 0.0 before there are some.
        tracing: processor seconds of attempts that have made traces.
        expected, worth: iterations, and seconds that are saved, as an earlier run has found; 0.0 if nothing is known.
        rows: what the loop goes through, if many iterations can be one call (rows.py). made: how many the last one was.
        most_rows: how many the next one may be. rows_in_vain: calls for so many in a row that were not made.
        kept: what one such iteration takes over from another. kinds: the types of that in the last one but the first of
            a round. is_entered: whether none has been tried in this round.
        patience: seconds of iterations that come before a try, since as many were too few in an earlier run.
    """

    __slots__ = (
        "allowed", "begun", "calls", "calls_to_come", "compiled", "each", "expected", "failures", "frame",
        "gains", "goes_on", "inner", "is_entered", "is_inside", "is_plain", "judged", "kept", "kinds",
        "lacks", "lengths", "lost", "made", "may_have_rows", "most_rows", "namespace", "outer", "patience", "reason",
        "rounds", "rows", "rows_in_vain", "slow", "source", "start", "step", "trace_seconds", "traces",
        "tracing", "unmeasured", "vain", "window", "within", "worth",
    )  # fmt: skip

    #: Whether a step is to be tried now; and whether that is however short the loop is.
    ready: Any = False
    is_eager = False

    def __init__(self, source: StepSource, namespace: dict[str, Any]) -> None:
        super().__init__()
        self.source, self.namespace = source, namespace
        self.outer: Section | None = None
        self.inner: list[Section] = []
        self.within: list[Section] = []
        self.is_inside = self.is_plain = self.goes_on = self.lacks = False
        self.lengths: dict[int, int] = {}
        self.frame = (0, 0)
        self.compiled = self.allowed = self.begun = self.vain = self.trace_seconds = self.lost = self.each = 0.0
        self.calls_to_come = self.start = 0.0  # `start`: the iterations before this round
        self.expected = self.worth = self.patience = self.tracing = 0.0
        self.rounds = 0  # how often its function has gone through it
        self.calls = self.slow = self.failures = 0
        self.traces: Collection[int] = ()  # the threads in which something is traced
        # Calls and iterations of this window, windows in a row that were worth it, and calls that may go by without a
        # clock.
        self.judged = self.window = self.gains = self.unmeasured = 0
        self.step: OutlinedStep | None = None
        self.reason = ""
        self.rows: Iterator[Any] | None = None
        self.may_have_rows, self.made, self.is_entered = source.rows is not None, 1, False
        self.most_rows, self.rows_in_vain = 256, 0
        self.kept: list[Any] = []
        self.kinds: list[type] = []

    # ---- what the rewritten loop calls ------------------------------------------------------------------

    def begins(self) -> None:
        """The loop begins."""
        if is_inert():
            return
        frame = sys._getframe(1)
        self.frame = id(frame), id(frame.f_code)
        if self in running:
            comes_last(self)
        else:
            for one in around(self):
                if self not in one.within and self not in one.inner:
                    one.within.append(self)
            running.append(self)
        self.begin()

    def entered(self, level: int, iterable: Any) -> Any:
        """Note what the loop, or one around it, iterates over; returns it."""
        if is_inert():
            return iterable
        if level == self.source.levels:
            self.rounds, self.start = self.rounds + 1, self.total()
        kind = type(iterable)
        is_sized = kind in _SIZED or kind.__module__.startswith("tqdm")
        try:
            self.lengths[level] = len(iterable) if is_sized else -1
        except TypeError:
            self.lengths[level] = -1
        return iterable

    def over(self, iterable: Any) -> Any:
        """What the loop goes through, which is remembered if it tells what comes next; it may go through one only."""
        if self.may_have_rows and not is_inert():
            if self.rows is not None and not is_finished(self.rows):  # it was left, or runs within itself
                self.rows, self.may_have_rows = None, False
                return iterable
            self.rows, self.is_entered = iterator_over(iterable), True
            return iterable if self.rows is None else self.rows
        return iterable

    def lasting(self, iterable: Any) -> Iterable[Any]:
        """The elements of what the loop iterates over; during the last one, it does not go on."""
        if type(iterable) not in (range, list, tuple):
            self.end(f"what comes after the loop uses a node with its graph, and a {type(iterable).__name__} may end")
            return iterable  # type: ignore[no-any-return]
        return self._lasting(iterable)

    def _lasting(self, iterable: Sequence[Any]) -> Iterator[Any]:
        import threading  # most scripts do without

        before = self.goes_on
        try:
            for number, item in enumerate(iterable, 1):
                self.goes_on = number < len(iterable) and threading.active_count() == 1
                yield item
        finally:
            self.goes_on = before

    def left(self) -> None:
        """The loop has ended: until it is entered again, parameters are ordinary objects.

        After an expression, they stay as they are while a loop around it makes compiled calls.
        """
        if is_inert():
            return
        if self in running:
            comes_last(self)
            running.pop()
        if not self.source.is_value:
            self.leave()
        self._release()

    def called(self, *arguments: Any) -> Sequence[Any]:
        """Try to make a call of the step; returns its results in a tuple, or an empty tuple."""
        return ()

    def cut(self, things: Any, *ends: Any) -> Any:
        """`things[start:end:by]`, which the step gets; where taking it could be noticed, or fails, there is no step."""
        if type(things) in _LISTS and all(end is None or type(end) is int for end in ends) and ends[-1] != 0:
            return things[slice(*ends)]
        self.lacks, self.unmeasured = True, 0
        return None

    def are_ints(self, *numbers: Any) -> bool:
        """Whether the step may get bits of these; where looking at them could be noticed, there is no step."""
        if all(type(number) in (int, bool) for number in numbers):
            return True
        self.lacks, self.unmeasured = True, 0
        return False

    def noted(self, value: Any) -> Any:
        """Note that Python has evaluated an expression; returns its value."""
        return value

    # ---- what they have in common -----------------------------------------------------------------------

    def _release(self) -> None:
        self.is_inside = False
        if self.step is None or (self.source.is_value and any(loop.is_inside for loop in loops)):
            return
        started = thread_time()
        self.step.release()
        self.compiled += thread_time() - started

    def end(self, reason: str) -> None:
        """Never try a step again."""
        self.reason = self.reason or reason
        if self in running:
            running.remove(self)
        if self.step is not None:
            self.step.give_up()  # which needs the parameters
        self._release()
        if self.step is not None:
            leave_out()
        self.__class__ = Off

    def is_ahead(self) -> bool:
        """Whether sections inside of this one have to wait."""
        return False

    def left_to_do(self) -> float:
        """How many iterations there are still to come; -1 if nobody knows."""
        total = 1
        for level in range(self.source.levels + 1):
            length = self.lengths.get(level, -1)
            if length < 0:
                return -1.0
            total *= length
        done = self.total()
        to_come = max(0.0, total - (done - self.start))
        return to_come if self.rounds <= 1 else max(to_come, done)

    def to_come(self) -> float:
        """How many iterations are expected: those that are known, as many as there have been, or as others tell."""
        found, done = self.left_to_do(), self.total()
        expected = self.expected - done - self.calls
        for one in around(self):
            left = one.left_to_do() if one.done and one.source.function != self.source.function else -1.0
            if left >= 0.0:
                return max(found, done * left / one.total(), expected)
        return max(found if found >= 0.0 else done, expected)


class Off(Section):
    """No step is tried."""

    __slots__ = ()
    on = False

    def begins(self) -> None:
        """Nothing is to be done."""

    left = begins

    def over(self, iterable: Any) -> Any:
        """What the loop goes through."""
        return iterable

    def entered(self, level: int, iterable: Any) -> Any:
        """What the loop iterates over."""
        return iterable


#: The sections that are parts of loops.
loops: list[Section] = []
