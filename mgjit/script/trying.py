"""A loop that tries a step: iterations ask for the result of a compiled call.

1. There is none until the code is built, and where a call has to be made in Python; then the iteration is timed.  Until
   there is code, so many iterations go by without asking that this takes little.
2. Compiled calls are timed in windows (`_judge`).  After some windows that were worth it, most calls go by without a
   clock.  While quick calls by the C extension are being built, without which calls would lose, iterations are Python.
3. The step is given up for good when three traces have come to nothing, when it is slower than Python, has to be undone
   again and again, or when the purse is empty (purse.py).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from time import thread_time

from .purse import LOADING, PURSE
from .running import comes_last, inert, is_inert
from .section import Section, leave_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .rewrite import StepSource
    from .step import OutlinedStep

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
TOO_SLOW = "compiled calls took longer than Python"
_COSTLY = "traces of it, and calls without code, cost more than compiled calls have saved"


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
            self.end("it takes a slice of something that is no list, or bits of what is no int")
            return ()
        self._note_plain()
        comes_last(self)
        step = self.step or self._made()
        allowed, started = self._allowed(), thread_time()
        try:
            found = self._attempt(step, arguments, allowed)
        except Exception as error:
            PURSE.note(started - thread_time())
            return self._failed(error)
        seconds = thread_time() - started
        if found is step.nothing:
            return self._without_result(step, seconds)
        self.is_inside = not self.source.is_value
        self.calls += self.made
        PURSE.note(self.made * self.iteration - seconds)
        if step.has_prepared:  # once for each kernel
            self.tracing += seconds
            return (found,)
        self.vain = max(0.0, self.vain - max(0.0, self.made * self.iteration - seconds))
        self.compiled, self.judged, self.window = self.compiled + seconds, self.judged + 1, self.window + self.made
        self.slow += seconds > _WORTH * self.made * self.iteration
        if self.judged == _SLOW:
            self._judge()
        return (found,)

    def _attempt(self, step: OutlinedStep, arguments: Sequence[Any], allowed: float) -> Any:
        """The results of a call, or what stands for them; `made` is how many iterations that are."""
        return step.attempt(arguments, self.iteration, allowed)

    def _without_result(self, step: OutlinedStep, seconds: float) -> Sequence[Any]:
        """After an attempt that has taken so long: the iteration runs as Python."""
        if step.has_traced:
            if not self.trace_seconds:
                leave_out()  # it has loaded more
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
        if self.is_eager:
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
            leave_out()
        self.step = made(self._function(), self.namespace, self.allowed, self.calls_to_come)
        self.traces = tracing_threads
        PURSE.note(-min(thread_time() - started, LOADING))  # it may take longer where much else runs, as all does
        return self.step

    def _function(self) -> StepSource:
        """The source of the function that is the step."""
        return self.source

    def _judge(self) -> None:
        """After a window of measured calls: give up where they are not worth it.

        The first ones take longer: until better code is there and C makes them.  Some take very long, such as those
        that are compared with plain Python, or are interrupted where other processes use the machine: so what counts is
        whether most calls are slow, or all together have lost much.  What making parameters ordinary objects again
        takes counts as well.
        """
        assert self.step is not None
        each, slow = self.compiled / self.window, self.slow
        lost = self.window * (each - self.iteration)
        self.each, self.slow, self.judged, self.window, self.compiled = each, 0, 0, 0, 0.0
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
            self.end(TOO_SLOW)

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
