"""A part of a loop that may run as a compiled step: decides at run time whether that is tried.

1. At first the statements run as they stand, and iterations are counted and timed (`Watching`, counted.py).
2. A step is tried if what is to come is worth three times what the try is expected to cost, loading mgjit and a trace,
   and if a try that fails leaves the program hardly later than plain Python (purse.py).  What is to come is known from
   the lengths of what is iterated over; otherwise, and when its function is called again, the loop is taken to run once
   more for as long as it has done so far.
3. Of loops that run in one another, in the same function or not, the outermost one is tried first whose iterations are
   neither too long nor too few (`is_ahead`).  Those in it are plain code meanwhile, also while it is traced, and have
   their turn when it is given up.  An outer loop that does nothing but go through others waits for them (`Reserve`).
4. While a step is tried (`Trying`), iterations ask for the result of a compiled call.  There is none until the code is
   built, and where a call has to be made in Python; then the iteration is timed.  Until there is code, so many
   iterations go by without asking that this takes little.
5. Compiled calls are timed in windows (`_judge`).  After some windows that were worth it, most calls go by without a
   clock.  While quick calls by the C extension are being built, without which calls would lose, iterations are Python.
6. It is given up for good (`Off`) when three traces have come to nothing, when it is slower than Python, has to be
   undone again and again, or when the purse is empty.  Then the loop runs as it stands from its next beginning on.
7. What earlier runs have found out comes first (remembered.py): a step that paid is tried in the first iteration.
8. Of expressions that evaluate a model, evaluations are timed (`WatchingValue`).

Nothing of the rest of mgjit is imported before a step is tried.
"""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from time import thread_time

from .counted import Counted
from .purse import PURSE
from .running import around, comes_last, inert, is_inert, running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .rewrite import StepSource
    from .step import OutlinedStep

#: What a try costs, if it fails: seconds for loading mgjit, and for a trace in iterations.
LOADING, _TRACE = 0.17, 10.0
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
#: A compiled call must take no longer than this part of an iteration in Python.
_WORTH = 0.75
#: A step is given up where half of so many calls take longer; after so many that were plain Python; that were undone;
#: and after so many traces that came to nothing.
_SLOW, _PLAIN, _UNDONE, FRUITLESS = 20, 64, 4, 3
#: So many traces that wait for a call like theirs show that hardly any iteration is like another one.
_SCATTERED = 3
#: So many calls are not judged one by one; all together may lose so many seconds more than they have saved since.
_FIRST_CALLS, _LOST = 1000, 0.1
#: After so many windows in a row that were worth it, further calls are not measured: so many more each time, at most.
_SURE_WINDOWS, _UNMEASURED, _MOST_UNMEASURED = 3, 20, 2000
#: While quick calls are being built, and the others are not worth it, so many seconds of iterations run as Python.
_UNTIL_QUICK = 0.02
#: The part of the time of iterations that questions without a result may take, while there is no code.
_ASKING, _MOST_UNASKED = 0.01, 1000
#: Questions without a result, that compiled calls have not made up for, may take so many seconds, and such a part.
_IN_VAIN, _VAIN_PART = 0.05, 0.03
_TOO_SHORT = "its iterations are too short to gain anything"
_TOO_LONG = "its iterations are too long, or too few, for one step: what is inside of it is tried instead"
_COSTLY = "traces of it, and calls without code, cost more than compiled calls have saved"
#: Slices of these are taken for a step.
_LISTS = frozenset({list, tuple})
#: Lengths of these are read without running code of the program.
_SIZED = (range, list, tuple, dict, str, set, frozenset, bytes)


def _leave_out() -> None:
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
        patience: seconds of iterations that come before a try, since as many were too few in an earlier run.
    """

    __slots__ = (
        "allowed", "begun", "calls", "calls_to_come", "compiled", "each", "expected", "failures", "frame",
        "gains", "goes_on", "inner", "is_inside", "is_plain", "judged", "lacks", "lengths", "lost", "namespace",
        "outer", "patience", "reason", "rounds", "slow", "source", "start", "step", "trace_seconds", "traces",
        "tracing", "unmeasured", "vain", "within", "worth",
    )  # fmt: skip

    #: Whether a step is to be tried now.
    ready: Any = False

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
        # Calls of this window, windows in a row that were worth it, and calls that may go by without a clock.
        self.judged = self.gains = self.unmeasured = 0
        self.step: OutlinedStep | None = None
        self.reason = ""

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

    def noted(self, value: Any) -> Any:
        """Note that Python has evaluated an expression; returns its value."""
        return value

    # ---- what they have in common -----------------------------------------------------------------------

    def _release(self) -> None:
        self.is_inside = False
        if self.step is None or (self.source.is_value and any(loop.is_inside for loop in _loops)):
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
            _leave_out()
        self.__class__ = Off

    def is_ahead(self) -> bool:
        """Whether sections inside of this one have to wait."""
        return False

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
        is_tiny = self.iteration < _TINY
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
        return _GAIN * cost <= seconds and cost <= PURSE.left(seconds)

    def _try(self, to_come: float) -> None:
        """Try a step from now on."""
        PURSE.trusted += _TRUSTED * self.worth
        self.allowed, self.calls_to_come = max(0.0, PURSE.left(to_come * self.iteration)), to_come
        self.start = self.done
        self.let_go(0)
        self.__class__ = Trying

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


class Watching(Section):
    """Its iterations are timed."""

    __slots__ = ()
    #: Whether steps are tried however short the loop is.
    is_eager = False

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
            return not any(type(one) is Trying and one.calls for one in around(self))
        if not self.done or (self.done * self.iteration < max(_WATCHED, self.patience) and not self.is_eager):
            return False
        if self._is_behind() or not self._is_sensible() or self._is_tiny():
            return False
        if any(type(one) is Trying and one.calls for one in (*self.inner, *self.within)):
            return False
        return self.is_eager or self._pays(self.to_come())

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
        if not self._is_sensible():
            return False
        to_come = self.left_to_do()
        return self.is_eager or to_come < 0 or self._pays(to_come)


class Reserve(Watching):
    """The loops in it come first; it is tried where their iterations are too short to gain anything."""

    __slots__ = ()

    @property
    def ready(self) -> bool:
        """Never; but a step may be tried later."""
        if not self._look():
            return False
        if self.inner and all(inner.reason == _TOO_SHORT for inner in self.inner):
            self.__class__ = Watching  # type: ignore[assignment]
        elif all(isinstance(inner, Off) for inner in self.inner):
            self.end("the loops in it cannot be compiled")
        return False

    def is_ahead(self) -> bool:
        return False


class WatchingValue(Section):
    """An expression whose evaluations are timed."""

    __slots__ = ()

    @property
    def ready(self) -> bool:
        """Whether a step is to be tried now."""
        if is_inert():
            return False
        watched = max(_WATCHED, self.patience)
        is_known = self.done and (self.done * self.iteration > watched or Watching.is_eager)
        is_wanted = is_known and not self._is_behind() and not self._is_tiny()
        if self.worth or (is_wanted and (Watching.is_eager or self._pays(self.done))):
            self._try(max(self.done, self.expected))
            return True
        self.mark = thread_time()
        return False

    def noted(self, value: Any) -> Any:
        self.done += 1
        self.iteration += (thread_time() - self.mark - self.iteration) / self.done
        return value


class Trying(Section):
    """A step is tried in each iteration."""

    __slots__ = ()
    ready = True

    def is_ahead(self) -> bool:
        """In iterations that Python makes."""
        return self.is_plain

    def left(self) -> None:
        if not is_inert():
            self._note_plain()
        super().left()

    def leave(self) -> None:
        """Nothing is counted but plain iterations."""

    def noted(self, value: Any) -> Any:
        if not is_inert():
            self._note_plain()
        return value

    def _note_plain(self) -> None:
        """If Python has made iterations since the last call, note how long they took."""
        found = self.gone_by()
        is_plain, self.is_plain, self.asked = self.is_plain, False, False
        if is_plain and found and self.step is not None:
            seconds = (thread_time() - self.begun) / found
            self.done += found
            self.iteration += (seconds - self.iteration) * found / self.done
            self.step.note_plain(seconds, found)

    def called(self, *arguments: Any) -> Sequence[Any]:
        if self.unmeasured and not (inert or self.traces):
            self.unmeasured, self.is_inside = self.unmeasured - 1, True
            assert self.step is not None
            try:
                found = self.step.attempt_again(arguments)
            except Exception as error:
                return self._failed(error)
            if found is not self.step.nothing:
                self.calls += 1
                return (found,)
            return self._without_result(self.step, self.step.seconds)
        return self._measured(arguments)

    def _measured(self, arguments: Sequence[Any]) -> Sequence[Any]:
        lacks, self.lacks = self.lacks, False
        if is_inert():
            return ()
        if lacks:
            self.end("it takes a slice of something that is no list")
            return ()
        self._note_plain()
        comes_last(self)
        step = self.step or self._made()
        allowed, started = self._allowed(), thread_time()
        try:
            found = step.attempt(arguments, self.iteration, allowed)
        except Exception as error:
            PURSE.note(started - thread_time())
            return self._failed(error)
        seconds = thread_time() - started
        if found is step.nothing:
            return self._without_result(step, seconds)
        self.is_inside = not self.source.is_value
        self.calls += 1
        PURSE.note(self.iteration - seconds)
        if step.has_prepared:  # once for each kernel
            self.tracing += seconds
            return (found,)
        self.compiled, self.judged = self.compiled + seconds, self.judged + 1
        self.vain = max(0.0, self.vain - max(0.0, self.iteration - seconds))
        self.slow += seconds > _WORTH * self.iteration
        if self.judged == _SLOW:
            self._judge()
        return (found,)

    def _without_result(self, step: OutlinedStep, seconds: float) -> Sequence[Any]:
        """After an attempt that has taken so long: the iteration runs as Python."""
        if step.has_traced:
            if not self.trace_seconds:
                _leave_out()  # it has loaded more
            self.trace_seconds = seconds
            self.tracing += seconds
        PURSE.note(-seconds)
        self._goes_plain(True)
        self._was_plain(step, seconds)
        return ()

    def _goes_plain(self, is_asked: bool) -> None:
        """Python makes iterations from now on, the first of them after a question, or not."""
        self.is_inside, self.is_plain, self.asked, self.unmeasured = False, True, is_asked, 0
        self.begun = thread_time()

    def _allowed(self) -> float:
        """The seconds that an attempt may take, as far as that can be helped."""
        if Watching.is_eager:
            return math.inf
        return 0.0 if self.is_scattered() else PURSE.left(self._still_to_come())

    def is_scattered(self) -> bool:
        """Whether there have been some traces, each for another kind of iteration, and no call has used one."""
        return not self.calls and self.step is not None and self.step.waiting >= _SCATTERED

    def _still_to_come(self) -> float:
        """The seconds that Python would take for what is still to come, as far as it was known."""
        return max(0.0, self.calls_to_come - self.calls - (self.done - self.start)) * self.iteration

    def _made(self) -> OutlinedStep:
        """The step, which is compiled now, as Python."""
        started, is_loaded = thread_time(), "mgjit.script.step" in sys.modules
        from ..engine.progress import tracing_threads
        from .step import made

        if not is_loaded:
            _leave_out()
        self.step = made(self.source, self.namespace, self.allowed, self.calls_to_come)
        self.traces = tracing_threads
        PURSE.note(-min(thread_time() - started, LOADING))  # it may take longer where much else runs, as all does
        return self.step

    def _judge(self) -> None:
        """After a window of measured calls: give up where they are not worth it.

        The first ones take longer: until better code is there and C makes them.  Some take very long, such as those
        that are compared with plain Python, or are interrupted where other processes use the machine: so what counts is
        whether most calls are slow, or all together have lost much.  What making parameters ordinary objects again
        takes counts as well.
        """
        assert self.step is not None
        each, slow = self.compiled / _SLOW, self.slow
        self.each, self.slow, self.judged, self.compiled = each, 0, 0, 0.0
        lost = _SLOW * (each - self.iteration)
        self.gains = self.gains + 1 if each <= _WORTH * self.iteration else 0
        if self.gains >= _SURE_WINDOWS and not self.source.is_value:
            self.unmeasured = min(_MOST_UNMEASURED, _UNMEASURED * (self.gains - _SURE_WINDOWS + 1))
            PURSE.note(self.unmeasured * (self.iteration - each))
        elif lost > 0.0 and self.calls <= _FIRST_CALLS and self.step.gets_quicker():
            self._goes_plain(False)
            self._release()
            self.let_go(min(_MOST_UNASKED, int(_UNTIL_QUICK / max(self.iteration, 1e-9))))
            return
        is_first = self.calls == _SLOW  # which load code, and generate functions
        self.lost = 0.0 if is_first else max(0.0, self.lost + lost)
        is_slow = slow > _SLOW // 2 and self.calls > _FIRST_CALLS and not self.step.may_be_quicker()
        if is_slow or self.lost > _LOST:
            self.end("compiled calls took longer than Python")

    def _failed(self, error: Exception) -> Sequence[Any]:
        """After an exception, which has changed nothing."""
        from ..errors import MgjitError

        self.failures += 1
        if isinstance(error, MgjitError) or self.failures >= _UNDONE:
            self.end(f"{type(error).__name__}: {error}")
        return ()

    def _was_plain(self, step: OutlinedStep, seconds: float) -> None:
        """After an attempt that has taken so long, and has to be made in Python."""
        stats = step.stats
        undone = max(_PLAIN, stats.calls) if self.source.stops else max(_UNDONE, stats.calls // 20)
        is_refused = step.fruitless >= FRUITLESS and step.fruitless >= step.kernels
        self.vain += 0.0 if step.has_traced else seconds
        is_dear = self.vain > _IN_VAIN + _VAIN_PART * self.done * self.iteration
        if not (step.waiting or step.kernels):
            is_dear = is_dear or self._allowed() < self.trace_seconds
        if is_refused or is_dear or step.undone > undone or stats.plain_calls > max(_PLAIN, stats.calls):
            self.end(stats.plain_reasons[-1] if stats.plain_reasons else _told(stats.retraces))
        elif not (step.kernels or step.has_traced):
            self.let_go(min(_MOST_UNASKED, int(seconds / (_ASKING * max(self.iteration, 1e-9)))))


def _told(retraces: Sequence[str]) -> str:
    """Why tries have cost more than they saved."""
    return f"{_COSTLY}; the last one was made because {retraces[-1]}" if retraces else _COSTLY


class Off(Section):
    """No step is tried."""

    __slots__ = ()
    on = False

    def begins(self) -> None:
        """Nothing is to be done."""

    left = begins

    def entered(self, level: int, iterable: Any) -> Any:
        """What the loop iterates over."""
        return iterable


#: The sections that are parts of loops.
_loops: list[Section] = []


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
        _loops.extend([] if source.is_value else [section])
    return made
