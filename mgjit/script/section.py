"""A part of a loop that may run as a compiled step: decides at run time whether that is tried.

1. At first the statements run as they stand, and iterations are timed (`Watching`).
2. A step is tried if the loop is expected to run so long that a try which fails costs less than a tenth of it: loading
   mgjit and a trace take time.  How long it runs is known from the lengths of what it iterates over; otherwise, and
   when its function is called again, it is taken to run once more for as long as it has done so far.
3. While it is tried (`Trying`), each iteration asks for the result of a compiled call.  There is none until the code is
   built, and where a call has to be made in Python; then the iteration is timed, since the first ones tell little where
   lengths vary.
4. It is given up (`Off`) when the step is refused, is slower than Python, has to be undone again and again, or when
   asking without a result has taken a tenth of the time.
5. Of a loop in a loop, the outer one is tried first if its iterations are short, the inner one otherwise.  An outer
   loop that does nothing but go through others waits for them (`Reserve`).
6. Of expressions that evaluate a model, evaluations are timed (`WatchingValue`), and a try costs less than a tenth of
   what they have taken so far.

Nothing of the rest of mgjit is imported before a step is tried.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter, process_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .rewrite import StepSource
    from .step import OutlinedStep

#: What a try costs, if it fails: seconds for loading mgjit, and where it is there; and for a trace in iterations.
_LOADING, _LOADED, _TRACE = 0.25, 0.1, 5.0
#: The part of the expected time that this may be.
_SHARE = 0.1
#: An outer loop is tried if its iterations take at most so many seconds, and there are at least so many.
_SHORT, _MANY = 0.3, 20
#: So many seconds of iterations tell how long one takes: the first ones take longer.
_WATCHED = 0.05
#: Iterations that are shorter than this gain nothing; so many show it.
_TINY, _SURE = 30e-6, 1000
#: A compiled call must take no longer than this part of an iteration in Python.
_WORTH = 0.75
#: A step is given up where half of so many calls take longer; after so many that were plain Python; that were undone.
_SLOW, _PLAIN, _UNDONE = 50, 64, 4
#: An attempt without a result that takes longer than this part of an iteration has done more than look for code.
_LOOKING = 0.2
_FRUITLESS = "too many iterations differed in structure from those for which there was compiled code"
_TOO_SHORT = "its iterations are too short to gain anything"
#: Lengths of these are read without running code of the program.
_SIZED = (range, list, tuple, dict, str, set, frozenset, bytes)


def _pays(loading: float, iteration: float, expected: float, share: float = 1.0) -> bool:
    """Whether a try costs so little that it is worth it.

    Args:
        loading: the processor seconds that loading mgjit takes.
        iteration, expected: the seconds of an iteration, and of all. share: how much of them this process has run.
    """
    return loading + _TRACE * iteration * share <= _SHARE * expected * share


class Section:
    """A part of a loop.

    Args:
        source: of the step. namespace: the variables of its module.
    """

    __slots__ = (
        "allowed", "begun", "calls", "calls_to_come", "compiled", "costly", "failures", "first", "goes_on", "has_inner",
        "inner", "is_inside", "is_plain", "iteration", "lengths", "namespace", "outer", "reason", "rounds", "share",
        "slow", "source", "spent", "start", "step", "ticks",
    )  # fmt: skip

    #: Whether a step is to be tried now.
    ready: Any = False

    def __init__(self, source: StepSource, namespace: dict[str, Any]) -> None:
        self.source, self.namespace = source, namespace
        self.outer: Section | None = None
        self.inner: list[Section] = []
        self.has_inner = self.is_inside = self.is_plain = self.goes_on = False
        self.lengths: dict[int, int] = {}
        self.first = self.iteration = self.allowed = self.spent = self.compiled = 0.0
        self.share, self.begun = 1.0, (perf_counter(), process_time())
        self.calls_to_come = 0.0
        self.rounds = self.start = 0  # how often its function has gone through it, and the iterations before this time
        self.ticks = self.costly = self.calls = self.slow = self.failures = 0
        self.step: OutlinedStep | None = None
        self.reason = ""

    def entered(self, level: int, iterable: Any) -> Any:
        """Note what the loop, or one around it, iterates over; returns it."""
        if level == self.source.levels:
            self.rounds, self.start = self.rounds + 1, self.ticks
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
        self.is_inside = False
        if self.step is None or (self.source.is_value and any(loop.is_inside for loop in _loops)):
            return
        started = perf_counter()
        self.step.release()
        self.compiled += perf_counter() - started

    def called(self, *arguments: Any) -> Sequence[Any]:
        """Try to make a call of the step; returns its results in a tuple, or an empty tuple."""
        return ()

    def noted(self, value: Any) -> Any:
        """Note that Python has evaluated an expression; returns its value."""
        return value

    def end(self, reason: str) -> None:
        """Never try a step again."""
        self.reason = self.reason or reason
        self.left()
        self.__class__ = Off

    def is_ahead(self) -> bool:
        """Whether sections inside of this one have to wait."""
        return False

    def _is_sure(self, loading: float, expected: float) -> bool:
        """Whether a try is worth it also by the time in which this process has run; notes that part of it.

        On a busy machine, that may be only a few iterations at first, which tell little.
        """
        begun, processor = self.begun
        ran = process_time() - processor
        if ran < _WATCHED:
            return False
        self.share = min(1.0, ran / (perf_counter() - begun))
        is_tiny = self.iteration * self.share < _TINY
        if is_tiny and self.ticks > _SURE:
            self.end(_TOO_SHORT)
        return not is_tiny and _pays(loading, self.iteration, expected, self.share)

    def left_to_do(self, levels: int) -> float:
        """How many iterations there are still to come, of a loop with so many loops around it; -1 if nobody knows."""
        total = 1
        for level in range(levels + 1):
            length = self.lengths.get(level, -1)
            if length < 0:
                return -1.0
            total *= length
        to_come = max(0, total - (self.ticks - self.start) + 1)
        return to_come if self.rounds <= 1 else max(to_come, self.ticks)


class Watching(Section):
    """Its iterations are timed."""

    __slots__ = ()
    #: Whether steps are tried however short the loop is.
    is_eager = False

    @property
    def ready(self) -> bool:
        """Whether a step is to be tried now."""
        now = perf_counter()
        self.ticks += 1
        if self.ticks == 1:
            self.first, self.begun = now, (now, process_time())
            return False
        elapsed = now - self.first
        self.iteration = elapsed / (self.ticks - 1)
        if elapsed < _WATCHED and not self.is_eager:
            return False
        if self.outer is not None and self.outer.is_ahead():
            return False
        to_come = self.left_to_do(self.source.levels)
        expected = elapsed + (elapsed if to_come < 0 else to_come * self.iteration)
        if self.has_inner and (self.iteration > _SHORT or 0 <= to_come < _MANY):
            self.end("its iterations are too long, or too few, for one step: what is inside of it is tried instead")
            return False
        if self.iteration < _TINY:
            if self.ticks > _SURE:
                self.end(_TOO_SHORT)
            return False
        if not (self.is_eager or (_pays(_LOADING, self.iteration, expected) and self._is_sure(_LOADING, expected))):
            return False
        self.allowed, self.calls_to_come = max(_LOADING, _SHARE * expected), to_come if to_come >= 0 else self.ticks
        self.__class__ = Trying  # type: ignore[assignment]
        return True

    def is_ahead(self) -> bool:
        if self.ticks and self.has_inner and perf_counter() - self.first > _SHORT * (self.ticks + 1):
            self.end("its iterations are too long for one step: what is inside of it is tried instead")
            return False
        return True


class Reserve(Watching):
    """The loops in it come first; it is tried where their iterations are too short to gain anything."""

    __slots__ = ()

    @property
    def ready(self) -> bool:
        """Never; but a step may be tried later."""
        self.ticks += 1
        if self.ticks == 1:
            self.first, self.begun = perf_counter(), (perf_counter(), process_time())
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
        expected = self.spent
        loading = _LOADED if "mgjit.step" in sys.modules else _LOADING
        is_worth_it = self.ticks and self.spent > _WATCHED and _pays(loading, self.iteration, expected)
        is_worth_it = is_worth_it and self._is_sure(loading, expected)
        if (is_worth_it or (self.ticks and Watching.is_eager)) and self.iteration >= _TINY:
            self.allowed, self.spent = max(_LOADING, _SHARE * expected), 0.0
            self.calls_to_come = self.ticks
            self.__class__ = Trying  # type: ignore[assignment]
            return True
        self.first = perf_counter()
        return False

    def noted(self, value: Any) -> Any:
        self.spent += perf_counter() - self.first
        self.ticks += 1
        self.iteration = self.spent / self.ticks
        if self.ticks > _SURE and self.iteration < _TINY:
            self.end("it takes too little time to gain anything")
        return value


class Trying(Section):
    """A step is tried in each iteration."""

    __slots__ = ()
    ready = True

    def is_ahead(self) -> bool:
        return True

    def left(self) -> None:
        self._note_plain()
        super().left()

    def noted(self, value: Any) -> Any:
        self._note_plain()
        return value

    def _note_plain(self) -> None:
        """If Python has made the last call, note how long it took."""
        if self.is_plain and self.step is not None:
            self.is_plain = False
            seconds = process_time() - self.begun[1]
            self.ticks += 1
            self.iteration += (seconds / self.share - self.iteration) / self.ticks
            self.step.note_plain(seconds)

    def called(self, *arguments: Any) -> Sequence[Any]:
        self._note_plain()
        is_loaded = "mgjit.script.step" in sys.modules
        from .step import NOTHING, made

        if not is_loaded and hasattr(gc, "freeze"):
            gc.freeze()  # what was loaded would make each collection of cycles a quarter slower
        step = self.step
        if step is None:
            step = self.step = made(self.source, self.namespace, self.allowed * self.share, self.calls_to_come)
        started = perf_counter()
        try:
            found = step.attempt(arguments, self.iteration * self.share)
        except Exception as error:
            return self._failed(error)
        if found is NOTHING:
            self._was_plain(step, perf_counter() - started)
            self.is_inside, self.is_plain, self.begun = False, True, (started, process_time())
            return ()
        self.is_inside = not self.source.is_value
        self.calls += 1
        seconds = perf_counter() - started
        self.compiled += seconds
        self.spent = max(0.0, self.spent - max(0.0, self.iteration - seconds))
        self.slow += seconds > _WORTH * self.iteration * self.share
        if self.calls % _SLOW == 0:
            self._judge()
        return (found,)

    def _judge(self) -> None:
        """Give up where compiled calls are not worth it; the first ones take longer.

        Of an expression, making parameters ordinary objects again counts as well, which happens more often.
        """
        is_slow = self.slow > _SLOW // 2
        plain = _SLOW * self.iteration * self.share
        self.costly = self.costly + 1 if self.compiled > _WORTH * plain else 0
        if self.calls > _SLOW and (is_slow or (self.source.is_value and self.costly > 1)):
            self.end("compiled calls took longer than Python")
        self.slow, self.compiled = 0, 0.0

    def _failed(self, error: Exception) -> Sequence[Any]:
        """After an exception, which has changed nothing."""
        from ..errors import MgjitError

        self.failures += 1
        if isinstance(error, MgjitError) or self.failures >= _UNDONE:
            self.end(f"{type(error).__name__}: {error}")
        return ()

    def _was_plain(self, step: OutlinedStep, seconds: float) -> None:
        """After an attempt that has taken so long, and has to be made in Python.

        Of attempts with a trace or a comparison, which Earnings limits, only a small part counts.
        """
        stats = step.stats
        self.spent += min(seconds, _LOOKING * self.iteration)
        undone = max(_PLAIN, stats.calls) if self.source.stops else max(_UNDONE, stats.calls // 20)
        if self.spent > self.allowed or step.undone > undone or stats.plain_calls > max(_PLAIN, stats.calls):
            self.end(stats.plain_reasons[-1] if stats.plain_reasons else _FRUITLESS)


class Off(Section):
    """No step is tried."""

    __slots__ = ()

    def entered(self, level: int, iterable: Any) -> Any:
        """What the loop iterates over."""
        return iterable

    def left(self) -> None:
        """Nothing is to be done."""


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
            section.outer.has_inner = True
            section.outer.inner.append(section)
        made.append(section)
        _loops.extend([] if source.is_value else [section])
    return made
