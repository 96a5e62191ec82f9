"""Compiled calls that take longer than plain ones: the step is plain Python for good.

1. Quick calls of one kernel are weighed against plain ones, and so are calls that change the kernel, where the quick
   path of the last one does not take them (first_calls/weighing.py).
2. To look for the kernel of another path takes time in each call that leaves one.  What that has cost, beside what
   compiled calls have saved, is kept account of (base/account.py).  Where there has been no plain call, a few are made
   before that is judged, and the quickest counts.
3. Where compiled calls lose, kernels and their memory are given up.  A clock has decided that, so there is no warning;
   `stats.last` and `explain()` say it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from time import thread_time
from typing import TYPE_CHECKING, Any

from ..base.account import Account
from ..base.tracebacks import unseen
from ..engine.progress import tracing_threads
from ..kernels.first_calls.plain import as_part
from ..kernels.first_calls.weighing import FIRST_OF_PATHS, Weighing
from ..kernels.paths import FIRST_HELPS
from ..runtime.detached import Detached, are_detached, may_detach, release
from ..runtime.vectorcall import MANY_CALLS, extension
from .looking import P, R
from .looping import Looping

if TYPE_CHECKING:
    from ..runtime.kernel import Kernel
    from ..runtime.turn import Turn
    from .between import Between

#: Calls that no path was for may cost so many seconds, and such a part of plain calls, beside what others save; and one
#: of them counts as so much at most: the rest is a trace.
_FLAT, _SHARE, _MOST_OF_CALL = 0.02, 0.1, 0.002
#: What passes is worth waiting for unless plain calls take less than so much of the rest: code without a schedule, and
#: what the first calls look at.  Calls of fewer than so many seconds may be made by C, after so many calls.
_PART, _MADE_BY_C, _CALLS_FOR_C = 0.5, 100e-6, 512
#: Calls that change the kernel are weighed after so many calls: the quick call in C may do without the change.
_CALLS_TO_CHANGE = 2 * MANY_CALLS
#: So many plain calls tell what one takes, where there was none.
_CALLS_TO_KNOW = 8
#: What is said of a step.
_LOSES = "its compiled calls, with all that they check and copy, take longer than plain Python"
_PATHS_LOSE = "its calls take one path of several, and to find it takes longer than plain Python"


class GivingUp(Looping[P, R]):
    """A step, as far as it finds out whether its kernels make it slower."""

    if TYPE_CHECKING:
        _turn: Turn
        _outer: Callable[..., Any]
        _chosen: Kernel | None
        _between: Between
        _plain_seconds: float

        _bare: Callable[[], Callable[..., Any]]
        _choose_call: Callable[..., Callable[..., Any]]
        _perform_or_call: Callable[..., Any]
    else:
        __slots__ = ()

    #: Whether calls are weighed: not where others decide which are compiled, or all have to be.
    _is_weighed = True

    def _begin_to_weigh(self) -> None:
        self._weighing = Weighing()
        self._weighing_of_changes, self._changes = Weighing(), 0
        self._account, self._counted = Account(_FLAT, _SHARE, _FLAT), (0, 0)
        self._to_know = 0  # so many plain calls are to come that tell what they take
        self._performed = 0  # calls by the general path
        self._is_leaving = False  # whether a call is under way that a kernel has left to another path
        self._calls_missed = -1  # how many there had been when a kernel last left a call to another path

    def _take_other_path(self, missed: Kernel, *args: Any) -> Any:
        """A call that the quick path of a kernel has undone."""
        if self._is_leaving:  # and that of another one before
            return self._other_path(missed, args)
        if self._account.left < 0.0 and self._is_weighed and self._to_know:
            missed.missed = 0
            return self._plain_to_know(args)
        started, calls, traces = thread_time(), self.stats.calls, self.stats.traces
        self._is_leaving = True
        try:
            result = self._other_path(missed, args)
        finally:
            self._is_leaving = False
        kernel, is_compiled = self._kernels.last, self.stats.calls > calls and self.stats.traces == traces
        is_usual = self._is_weighed and is_compiled and kernel is not None and kernel.helped > FIRST_HELPS
        if is_usual and self._has_missed_too_much(started, 0.0):
            if self._plain_seconds:
                self._give_up_losing(_PATHS_LOSE)
            else:
                self._to_know = _CALLS_TO_KNOW
        return result

    def _plain_to_know(self, args: Any) -> Any:
        """A plain call of a step that was traced at once: only the quickest tells what its kernels have saved."""
        weighing = Weighing()
        result = self._plain_to_compare(weighing, args, {})
        self._to_know -= 1
        seconds = max(weighing.last, 1e-9)  # a clock may show none
        self._plain_seconds = min(self._plain_seconds or seconds, seconds)
        self._counted = 0, 0
        return result

    def _other_path(self, missed: Kernel, args: Any) -> Any:
        kernel, calls = self._kernels.beside(missed), self.stats.calls
        try:
            if kernel is None or kernel.trial is not None or kernel.upgrade is not None or are_detached():
                return self._turn.take(self._perform_or_call, args, {}, missed)
            if calls == self._calls_missed + 1:  # twice in a row
                return self._change_kernel(kernel, args)
            self._calls_missed = calls
            call = kernel.fast_calls.get(False) or self._outer
            return call(*args)
        finally:
            missed.missed = 0

    def _has_missed_too_much(self, started: float, made: float) -> bool:
        """Whether calls for which paths had to be looked up have cost more than compiled ones can have saved.

        Args:
            started: when the last of them began, by `thread_time`. made: the part in which plain Python made it.
        """
        stats, account, (calls, others) = self.stats, self._account, self._counted
        self._counted = compiled, plain = stats.calls, stats.plain_calls + stats.waiting_calls
        looked = max(0.0, thread_time() - started - made)
        account.note_plain(self._plain_seconds * (plain - others))
        account.note(self._plain_seconds * (compiled - calls) - min(looked, _MOST_OF_CALL))
        return account.left < 0.0

    def _change_kernel(self, kernel: Kernel, args: Any) -> Any:
        """A call with another kernel than that of the last one; where most calls are, some are timed, or plain."""
        weighing = self._weighing_of_changes
        self._kernels.catch_up()
        self._changes += 1
        calls = self.stats.calls
        are_most = calls >= _CALLS_TO_CHANGE and 2 * self._changes > calls
        if not (are_most and self._may_be_weighed(weighing) and weighing.is_due()):
            return self._choose_call(kernel)(*args)
        if weighing.wants_plain_call:
            result = self._plain_to_compare(weighing, args, {})
        else:
            result = weighing.timed(self._changed, kernel, args)
        self._judge(weighing, self._kernels.all())
        if weighing.is_slower:
            told = f"its calls change between {len(self._kernels)} kernels, which takes longer than such short calls"
            self._turn.run(self._give_up_kernels, told, is_told=False)
        return result

    def _may_be_weighed(self, weighing: Weighing) -> bool:
        return self._is_weighed and not weighing.is_over and self._kernels.goes_on

    def _judge(self, weighing: Weighing, kernels: Collection[Kernel]) -> None:
        """After a call that was timed, see whether that is enough.

        Args:
            kernels: which make the calls that are weighed.
        """

        def may_be_quicker(seconds: float, plain: float) -> bool:
            some = [self._may_be_quicker(kernel, seconds, plain) for kernel in kernels]  # C may make the calls of each
            return self._chosen is None or any(some)

        earnings = self._kernels.earnings
        before = max(earnings.least, min(self._plain_seconds, earnings.plain_seconds()))
        weighing.judge(before, len(self._kernels), may_be_quicker)

    def _plain_to_compare(self, weighing: Weighing, args: Any, kwargs: Any) -> Any:
        """A plain call, with parameters as they would be for good unless other threads run, to see what it takes."""
        kernels = self._kernels
        self.stats.waiting_calls += 1
        self.stats.note_plain("it is measured how long plain Python takes", is_waiting=True)
        plain = functools.partial(weighing.timed, self._bare(), *args, **kwargs)
        work = functools.partial(as_part, self._options.precision, plain)
        is_exact = may_detach()
        weighing.is_exact &= is_exact
        things = kernels.attached() if is_exact else ()
        try:
            return self._turn.take(functools.partial(Detached(things).during, work) if things else work)
        finally:
            kernels.look_at_everything()

    def _weighed(self, kernel: Kernel, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`; while it is weighed, wrapped so that some calls are timed, and some made by plain Python."""
        weighing, counter = self._weighing, self.stats.counter
        if not self._may_be_weighed(weighing):
            return call
        if kernel.told:
            weighing.postpone(FIRST_OF_PATHS - self.stats.calls)

        def weighed(*args: Any, **kwargs: Any) -> Any:
            if tracing_threads or self._is_leaving or not weighing.is_due():
                return call(*args, **kwargs)
            if weighing.wants_plain_call:
                result = self._plain_to_compare(weighing, args, kwargs)
            else:
                chosen, performed, calls, started = self._chosen, self._performed, counter[0], thread_time()
                result = call(*args, **kwargs)
                seconds = thread_time() - started
                is_others = self._chosen is not chosen or self._performed != performed
                is_others = is_others and self._kernels.last is not chosen and not (chosen is not None and chosen.told)
                if is_others or counter[0] == calls:  # compared, or plain
                    weighing.begin_block()
                    return result
                weighing.note(seconds)
            self._judge(weighing, [self._chosen] if self._chosen else [])
            if weighing.is_over:
                self._end_weighing(call)
            return result

        return unseen(weighed)

    def _may_be_quicker(self, kernel: Kernel, seconds: float, plain: float) -> bool:
        """Whether compiled calls that take so long now may take less than plain ones later; lets C make short ones."""
        if extension.is_being_made():  # by a thread, which makes all calls slower meanwhile
            return True
        passes = kernel.guard.seconds_at_first() + (0.0 if kernel.upgrade is None else kernel.seconds_a_call)
        if passes and plain > _PART * (seconds - passes):
            return True
        if seconds > _MADE_BY_C or not (kernel.awaits_c and extension.is_possible):
            return False
        if self.stats.calls > _CALLS_FOR_C and extension.is_ready():
            kernel.fast_calls.clear()
            self._forget_call()
        return True

    def _end_weighing(self, call: Callable[..., Any]) -> None:
        """Make all calls by `call` from now on, or give the kernels up, where they make the step slower."""
        if self._weighing.is_slower:
            self._give_up_losing(_LOSES)
        else:
            self._kernels.note_weighed("")
            self.stats.decide("weighed: compiled calls take less than plain ones")
            setattr(self, "__call__", call)  # noqa: B010 - a method, as far as type checkers know

    def _changed(self, kernel: Kernel, args: Any) -> Any:
        """A call with another kernel, and what comes before: so much is timed."""
        self._kernels.member(args)
        return self._choose_call(kernel)(*args)

    def _give_up_losing(self, reason: str) -> None:
        """Run the step, and later ones of the same code, as plain Python: a clock has found that it is quicker."""
        self._kernels.note_weighed(reason)
        self._turn.run(self._give_up_kernels, reason, is_told=False)

    def _give_up_kernels(self, reason: str, is_told: bool = True) -> None:
        """Run the step as plain Python, though it has kernels.

        Args:
            is_told: whether there is a warning; none where a clock has decided.
        """
        kernels = self._kernels
        self.stats.decide(f"kernels given up: {reason}")
        release(kernels.attached(), kernels.maker.token)
        for kernel in kernels.all():
            kernels.forget(kernel)
        kernels.give_up()
        kernels.plain.give_up(reason, is_told)
        self._between.forget()
        self._forget_call()
