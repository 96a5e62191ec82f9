"""The compiled step of a loop: a call is made exactly as Python would make it, or not at all.

1. `attempt` makes the call if there is a kernel for it.  Otherwise it returns nothing, and has changed nothing: the
   loop then runs its statements as they stand.
2. A trace must not be noticed: what is printed or written while it is made ends it.
3. What the step returns has one number more, which says whether Python may have raised an error (record/hazards.py).
   A call for which it does is undone (runtime/undo.py).
4. Each kernel keeps objects that would make plain calls up to twice as long, since these make garbage collections
   necessary: the collector does not look at them (`leave_out`), whenever there are twice as many kernels.
5. A result that the program uses as an object, with the graph that it was computed in, cannot come from a kernel.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any
from weakref import WeakSet

from ..call.results import CompositeResult, OutputResult
from ..earnings import TooMany, Waiting
from ..engine.functions import where
from ..errors import BackendWarning, DefectWarning, MismatchWarning, RetraceWarning, SideEffectWarning
from ..garbage import leave_out
from ..kernels import Kernels
from ..making import Maker
from ..options import StepOptions
from ..pending import Prepared
from ..record.hazards import as_number
from ..record.leaks import PlainCall, holds_traced, is_traced
from ..record.progress import current_recorder, is_tracing
from ..runtime.code import Code
from ..runtime.detached import Detached, attach_all
from ..runtime.kernel import Kernel
from ..runtime.undo import UNDONE, Undone
from ..source.impure import without_effects
from ..stats import Stats
from ..step import CompiledStep
from .rewrite import StepSource, own_steps

#: Stands for the results of a call that has to be made in Python.
NOTHING = object()
#: Where iterations take so many seconds, a full garbage collection takes little beside the trace of one.
_LONG = 0.05
#: A program has done at least 0.8 times as much as plain Python by then, at any moment from ten seconds on: what
#: compiled calls have not saved yet is at most such a part of what plain Python had taken; or so many seconds, besides
#: those for loading mgjit, in the first ten.
_DEBT, _FIRST_DEBT = 0.2, 1.7
_STOPPED = "an `if` or `assert` in the step, or what may raise an error, is for Python: that call was undone"


class OutlinedMaker(Maker):
    """Makes the kernels of a step that was part of a loop.

    Attributes:
        numbers_only: for each result, whether the program looks only at the numbers of an object.
        leaving: as of `Outline`. leaves: whether a trace had such an object.
    """

    numbers_only: Sequence[bool] = ()
    leaving = -1
    leaves = False

    def undecorated(self, arguments: Sequence[Any]) -> Any:
        """Make a call in plain Python; returns the results, and 0.0 where Python has raised nothing."""
        returned = self.function(*arguments)
        results, stops = returned[: len(self.numbers_only)], returned[len(self.numbers_only) :]
        recorder = current_recorder()
        if recorder is None:
            if any(self._counting(stops)):
                raise Undone
            return results, 0.0
        for result, only_numbers in zip(results, self.numbers_only):
            if not only_numbers and _is_object_with_graph(result):
                if self.leaving < 0:
                    raise PlainCall(f"the program uses a {type(result).__name__} of the step together with its graph")
                self.leaves = True
        return results, sum(map(_as_reason, self._counting(stops)), as_number(recorder))

    def _counting(self, stops: Sequence[Any]) -> Sequence[Any]:
        """The reasons to stop, without those for which nothing has to be left to Python."""
        return stops if self.leaves else stops[: len(stops) - max(0, self.leaving)]

    def _trace(self, *arguments: Any) -> Any:
        trace: Callable[..., Any] = super()._trace
        return without_effects(lambda: trace(*arguments))

    def bound(self, code: Code, prepared: Prepared) -> Kernel:
        """A kernel that undoes calls."""
        kernel = super().bound(code, prepared)
        result = kernel.result
        last = result.parts[-1] if isinstance(result, CompositeResult) else None
        kernel.verdict = last.index if isinstance(last, OutputResult) else -1
        return kernel


def _as_reason(stop: Any) -> Any:
    """What is not 0.0 where an iteration is for plain Python."""
    if is_traced(stop):
        return where(stop, 1.0, 0.0)
    if stop:
        raise PlainCall("it leaves the statements that are compiled")
    return 0.0


def _is_object_with_graph(thing: Any) -> bool:
    if isinstance(thing, (list, tuple, set, frozenset)):
        return any(map(_is_object_with_graph, thing))
    if isinstance(thing, dict):
        return any(map(_is_object_with_graph, thing.values()))
    if isinstance(thing, (int, float, str, bytes, type(None))) or is_traced(thing):
        return False
    return holds_traced(thing, lambda one: False)


class OutlinedStep(CompiledStep[Any, Any]):
    """A step that was part of a loop.

    Args:
        numbers_only, leaving: as of `OutlinedMaker`.
    """

    __slots__ = ()

    def __init__(
        self, function: Callable[..., Any], options: StepOptions, numbers_only: Sequence[bool], leaving: int
    ) -> None:
        self._numbers_only, self._leaving = numbers_only, leaving
        self.undone = 0
        self._left_out = 0
        self._waiting: Hashable = None  # the structure of the call that Python is making, which waits for its kernel
        self._has_stops = False
        self._detached: tuple[list[Kernel], Detached] | None = None
        super().__init__(function, options)
        _steps.add(self)

    def _new_kernels(self) -> Kernels:
        maker = OutlinedMaker(self._function, self._signature, self._options, self.__qualname__, Stats())
        maker.numbers_only, maker.leaving = self._numbers_only, self._leaving
        return Kernels(maker, self.__name__)

    def attempt(self, arguments: Sequence[Any], iteration: float) -> Any:
        """Make a call; returns its results, or NOTHING if it has to be made in Python.

        Args:
            iteration: the processor seconds of an iteration in Python.

        Raises:
            Exception: it cannot be made; nothing has changed.
        """
        found = self(*arguments)
        if iteration > _LONG and len(self._kernels) >= max(1, 2 * self._left_out):
            self._left_out = len(self._kernels)
            leave_out()
        if found is NOTHING:
            return NOTHING
        if found is UNDONE:
            return self._was_plain(Undone())
        return found[0]

    def _call(self, *arguments: Any, **named: Any) -> Any:
        """The general path of a call; returns the results and the number that says whether Python may have raised."""
        if is_tracing():
            return NOTHING
        attach_all()
        member = self._kernels.member(arguments)
        if member is not None and member is not self._chosen and member.fast_calls:
            return self._choose_call(member)(*arguments)
        try:
            return self._turn.run(self._perform, "step", arguments, {})
        except PlainCall as plain:
            return self._was_plain(plain)

    def _was_plain(self, reason: PlainCall) -> Any:
        """Note a call that has to be made in Python."""
        kernels = self._kernels
        if isinstance(reason, (Waiting, TooMany)):
            if isinstance(reason, Waiting):
                self.stats.waiting_calls += 1
            else:
                kernels.plain.note_call(str(reason))
            self._waiting = reason.key
            if kernels.detached(False) is not None:
                self.release()
            return NOTHING
        is_undone = isinstance(reason, Undone)
        kernels.plain.note_call(_STOPPED if is_undone and self._has_stops else str(reason))
        self.undone += is_undone
        if reason.parameters:
            _detach(Detached(reason.parameters))
        return NOTHING

    def note_plain(self, seconds: float) -> None:
        """Note how long Python has taken for the last call, in processor seconds."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._kernels.earnings.note_plain(waiting, seconds)

    def release(self) -> None:
        """Make parameters ordinary objects until the next call."""
        kernels = self._kernels.all()
        if kernels and (self._detached is None or self._detached[0] != kernels):
            self._detached = kernels, Detached(self._kernels.attached())
        if kernels and self._detached is not None:
            _detach(self._detached[1])


#: All of them: while parameters are detached, none may take its quick path.
_steps: WeakSet[OutlinedStep] = WeakSet()


def _detach(things: Detached) -> None:
    """Make parameters ordinary objects until the next call of a step.

    Not where the program has compiled steps of its own, whose quick paths would not notice.
    """
    if len(things) and not own_steps:
        for step in list(_steps):
            step._forget_call()
        things.until_attached()


def made(source: StepSource, namespace: dict[str, Any], allowed: float, calls: float) -> OutlinedStep:
    """The step of a section.

    Args:
        namespace: the variables of its module. allowed: processor seconds that traces may take in any case.
        calls: how many there are probably going to be.
    """
    hide_warnings()
    step = OutlinedStep(source.compiled(namespace), StepOptions(background=True), source.numbers_only, source.leaving)
    earnings = step._kernels.earnings
    earnings.budget, earnings.all_calls, earnings.begins_at_once = min(allowed, _FIRST_DEBT), calls, True
    earnings.share, earnings.part = _DEBT, 1.0
    step._has_stops = source.stops > 0
    return step


def hide_warnings() -> None:
    """Let mgjit warn of nothing: the program runs as if it were not there."""
    for kind in (BackendWarning, SideEffectWarning, RetraceWarning, MismatchWarning, DefectWarning):
        warnings.filterwarnings("ignore", category=kind)
