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

import math
import warnings
from _thread import get_ident
from collections.abc import Callable, Hashable, Sequence
from time import thread_time
from typing import Any
from weakref import WeakSet

from ..base.garbage import leave_out
from ..compiler.build.code import Code
from ..compiler.build.options import StepOptions
from ..engine.functions import where
from ..engine.leaks import PlainCall, holds_traced, is_traced
from ..engine.progress import is_tracing
from ..errors import BackendWarning, DefectWarning, MgjitError, MismatchWarning, RetraceWarning, SideEffectWarning
from ..kernels.factory import Maker
from ..kernels.first_calls.earnings import TooMany, Waiting
from ..kernels.first_calls.pending import Prepared
from ..kernels.kernels import Kernels
from ..runtime import vectorcall
from ..runtime.detached import Detached, attach_all
from ..runtime.kernel import Kernel
from ..runtime.loop import run_rows
from ..runtime.stats import Stats
from ..runtime.undo import UNDONE, Undone
from ..step.step import CompiledStep
from ..tracing.call.columns import Column, Columns, ItemsColumn, SameColumn
from ..tracing.call.plan import ArgumentPlan
from ..tracing.call.results import CompositeResult, OutputResult
from ..tracing.call.rows import pack_rows
from ..tracing.record.current import current_recorder
from ..tracing.record.hazards import as_number
from ..tracing.source import text
from ..tracing.source.effects import without_effects
from ..tracing.surroundings.shapes import attributes
from ..tracing.surroundings.survey import Survey
from ..tracing.tracer.memory import Heap
from .rewrite import StepSource, own_steps, plain_codes, texts
from .running import inert

text.written_as, text.without_file = plain_codes, texts
#: Stands for the results of a call that has to be made in Python.
NOTHING = object()
#: So many nodes with operands are no constants of the program, but what an iteration has left.
_MANY_NODES = 200
#: Where iterations take so many seconds, a full garbage collection takes little beside the trace of one.
_LONG = 0.05
#: What compiled calls have not saved yet of the cost of traces is at most such a part of what plain Python would have
#: taken, or so many seconds; and such a part of what they have saved may be spent on further ones.
_DEBT, _FIRST_DEBT, _PART = 0.03, 0.25, 1.0
#: Where many calls are to come, quick ones are asked for after so many.
_ASKED_AFTER = 100
#: So many traces of one call, each of which had to be made again, show that there is no end to it.
_AGAIN = 3
_STOPPED = "an `if` or `assert` in the step, or what may raise an error, is for Python: that call was undone"


class OutlinedMaker(Maker):
    """Makes the kernels of a step that was part of a loop.

    Attributes:
        numbers_only: for each result, whether the program looks only at the numbers of an object.
        leaving: as of `Outline`. leaves: whether a trace had such an object.
        runs: how many traces have been made, those that had to be made again as well.
        deadline: when a call has to stop making its trace again.
    """

    has_paths = False
    numbers_only: Sequence[bool] = ()
    leaving = -1
    leaves = False
    runs = _first = 0
    deadline = math.inf
    _seconds = 0.0
    _key: Hashable = None

    def prepared(self, plan: ArgumentPlan, reason: str, patient: bool) -> Prepared:
        """Trace the call, as often as there is time for it.

        Raises:
            Waiting: there has been a trace, and another one would take longer than there is.
        """
        started = thread_time()
        if started + self._seconds > self.deadline and self.runs:
            raise Waiting(plan.key)
        self._first, self._key = self.runs, plan.key
        try:
            return super().prepared(plan, reason, patient)
        finally:
            self._seconds = thread_time() - started

    def undecorated(self, arguments: Sequence[Any]) -> Any:
        """Make a call in plain Python; returns the results, and 0.0 where Python has raised nothing.

        No section of the function, or of what it calls, is a step meanwhile.
        """
        if current_recorder() is not None:
            self._note_run()
        me = get_ident()
        is_outermost = me not in inert
        inert.add(me)
        try:
            returned = self.function(*arguments)
        finally:
            if is_outermost:
                inert.discard(me)
        results, stops = returned[: len(self.numbers_only)], returned[len(self.numbers_only) :]
        recorder = current_recorder()
        if recorder is None:
            if any(self._counting(stops)):
                raise Undone
            return *results, 0.0
        for result, only_numbers in zip(results, self.numbers_only):
            if not only_numbers and _is_object_with_graph(result):
                if self.leaving < 0:
                    raise PlainCall(f"the program uses a {type(result).__name__} of the step together with its graph")
                self.leaves = True
        return *results, sum(map(_as_reason, self._counting(stops)), as_number(recorder))

    def _note_run(self) -> None:
        """Note that the step is going to be traced.

        Raises:
            Waiting: it has been traced in this call, in vain, and there is no time to do that again.
            PlainCall: it has been traced again and again.
        """
        again = self.runs - self._first
        if again and thread_time() > self.deadline:
            if again < _AGAIN:
                raise Waiting(self._key)
            names = ", ".join(sorted(self.knowledge.fixed_arguments)) or "such as lengths, indices and counters"
            raise PlainCall(
                f"each of {again} traces found one more number that is used as a constant ({names}), so that a trace "
                "would hold for few other iterations"
            )
        self.runs += 1

    def _counting(self, stops: Sequence[Any]) -> Sequence[Any]:
        """The reasons to stop, without those for which nothing has to be left to Python."""
        return stops if self.leaves else stops[: len(stops) - max(0, self.leaving)]

    def heap(self, survey: Survey, location: str) -> Heap:
        """The numbers around a trace, if there may be one.

        Raises:
            PlainCall: the step leaves nodes with their graph, which is found here before all of the graph is traced.
        """
        for group in survey.groups.values():
            if len(group.things) > _MANY_NODES and callable(getattr(group.kind, "backward", None)):
                place = next((p for p, node in zip(group.places, group.things) if _has_operands(node)), None)
                if place is not None and sum(map(_has_operands, group.things)) > _MANY_NODES:
                    raise PlainCall(
                        f"an earlier iteration has left nodes with their graph, which compiled calls do not: "
                        f"{place.describe()}"
                    )
        return super().heap(survey, location)

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


def _has_operands(node: Any) -> bool:
    """Whether an object holds others of its class in a tuple, or the like, as a node of a graph does its operands."""
    kind, held = type(node), attributes(node).values()
    return any(type(part) is kind for found in held if type(found) in (tuple, set, list) for part in found)


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
    _is_weighed = False
    #: Stands for the results of a call that has to be made in Python.
    nothing = NOTHING

    def __init__(
        self, function: Callable[..., Any], options: StepOptions, numbers_only: Sequence[bool], leaving: int
    ) -> None:
        self._numbers_only, self._leaving = numbers_only, leaving
        self.undone = self.fruitless = 0  # calls, and traces that have led to no kernel
        self.has_traced = False  # whether the last attempt has made a trace, and nothing else
        self.has_prepared = False  # whether the last call has made or loaded a kernel as well, or was compared
        self.seconds = 0.0  # of the last one on the general path that Python has to make
        self._left_out, self._allowed = 0, 0.0
        self._waiting: Hashable = None  # the structure of the call that Python is making, which waits for its kernel
        self._has_stops = False
        self._detached: tuple[list[Kernel], Detached] | None = None
        super().__init__(function, options)
        _steps.add(self)

    def _new_kernels(self) -> Kernels:
        maker = OutlinedMaker(self._function, self._signature, self._options, self.__qualname__, Stats())
        maker.numbers_only, maker.leaving = self._numbers_only, self._leaving
        return Kernels(maker, self.__name__)

    @property
    def kernels(self) -> int:
        """How many kernels there are."""
        return len(self._kernels)

    @property
    def waiting(self) -> int:
        """How many traces wait for their code."""
        return self._kernels.waiting

    def attempt(self, arguments: Sequence[Any], iteration: float, allowed: float) -> Any:
        """Make a call; returns its results, or NOTHING if it has to be made in Python.

        Args:
            iteration: the processor seconds of an iteration in Python.
            allowed: how many seconds this may take, as far as that can be helped.

        Raises:
            Exception: it cannot be made; nothing has changed.
        """
        self._allowed = allowed
        found = self.attempt_again(arguments)
        if found is not NOTHING and iteration > _LONG and len(self._kernels) >= max(1, 2 * self._left_out):
            self._left_out = len(self._kernels)
            leave_out()
        return found

    def attempt_again(self, arguments: Sequence[Any]) -> Any:
        """As `attempt`, where nobody measures it; if Python has to make the call, `seconds` is what that has taken."""
        self.has_traced = self.has_prepared = False
        found = self(*arguments)
        if found is NOTHING:
            return NOTHING
        if found is UNDONE:
            self.seconds = 0.0
            return self._was_plain(Undone())
        return found[:-1]

    def attempt_rows(self, first: Sequence[Any], columns: dict[int, list[Any]], count: int, lists: set[int]) -> int:
        """Make calls, if the kernel of the last one is for all of them; returns how many, from the first one on.

        Args:
            first: the arguments of the first call. columns: those that differ, by their places. count: of calls.
            lists: the identities of lists that may hold what later calls get.
        """
        if is_tracing():
            return 0
        self.has_traced = self.has_prepared = False
        attach_all()
        given: list[Column] = [SameColumn(one) for one in first]
        for place, items in columns.items():
            given[place] = ItemsColumn(items)
        table = Columns(list(self._signature.parameters), given, count, frozenset())
        made: int = self._turn.run(self._rows_made, first, table, lists)
        return made

    def _rows_made(self, first: Sequence[Any], table: Columns, lists: set[int]) -> int:
        """Make the calls of a table; returns how many, which is none where they are for other kernels, or Python."""
        kernel = self._kernels.going_on(first)
        if kernel is None or kernel.move is not None:
            return 0
        if kernel.predecessor is not None:
            self._forget_call()  # the next one is made by its code as well, and by the general path
            return 0
        if kernel.trial is not None and kernel.trial.rows_ahead(True, table.length):
            kernel.trial.left = 0  # the next call is compared, by whichever path it comes
            return 0
        try:
            rows = pack_rows(kernel.plan, kernel.frame, table)
            kernel.check_rows(rows)
        except (MgjitError, PlainCall):  # one of them is for Python
            return 0
        is_apart = rows.separate or kernel.guard.expired or kernel.changes(lists)
        if is_apart or kernel.is_changed_by_rows(table) or not kernel.stays_exact(rows):
            return 0
        counter = self.stats.counter
        before = counter[0]
        run_rows(kernel, rows, lambda count: None, counter, row=table.row)
        return counter[0] - before

    def gets_quicker(self) -> bool:
        """Whether calls are going to be quicker than they are, by an extension, which this asks for."""
        kernel, extension = self._kernels.last, vectorcall.extension
        if kernel is None or not (kernel.awaits_c and extension.is_possible):
            return False
        if extension.is_ready():
            kernel.fast_calls.clear()  # the next call makes another one
            kernel.awaits_c = False
            self._forget_call()
        return True

    def _call(self, *arguments: Any, **named: Any) -> Any:
        """The general path of a call; returns the results and the number that says whether Python may have raised."""
        if is_tracing():
            return NOTHING
        attach_all()
        member = self._kernels.member(arguments)
        if member is not None and member is not self._chosen and member.fast_calls:
            return self._choose_call(member)(*arguments)
        kernels, maker = self._kernels, self._kernels.maker
        assert isinstance(maker, OutlinedMaker)
        runs, known = maker.runs, len(kernels) + kernels.waiting
        before, started = (maker.runs, len(kernels), self.stats.compared_calls), thread_time()
        maker.deadline = started + self._allowed
        try:
            found = self._turn.run(self._perform, "step", arguments, {})
            self.has_prepared = before != (maker.runs, len(kernels), self.stats.compared_calls)
            return found
        except PlainCall as plain:
            self.has_traced, more = maker.runs > runs, len(kernels) + kernels.waiting - known
            self.fruitless += more < 0 or (self.has_traced and not more)
            self.seconds = thread_time() - started
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

    def note_plain(self, seconds: float, calls: int) -> None:
        """Note how long Python has taken for the last call, in processor seconds, and for others that did not ask."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._kernels.earnings.note_plain(waiting, seconds, calls)

    def give_up(self) -> None:
        """Make no kernels any more."""
        self._turn.run(self._kernels.give_up)

    def may_be_quicker(self) -> bool:
        """Whether calls may take less later: better code is being built, or what lets C make them."""
        return vectorcall.extension.is_being_made() or any(k.upgrade is not None for k in self._kernels.all())

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
    if calls > vectorcall.MANY_CALLS and allowed > 0.0:
        vectorcall.extension.asked_after = _ASKED_AFTER
    step = OutlinedStep(source.compiled(namespace), StepOptions(background=True), source.numbers_only, source.leaving)
    earnings = step._kernels.earnings
    earnings.budget, earnings.all_calls, earnings.begins_at_once = min(allowed, _FIRST_DEBT), calls, True
    earnings.share, earnings.part = _DEBT, _PART
    step._has_stops = source.stops > 0
    return step


def hide_warnings() -> None:
    """Let mgjit warn of nothing: the program runs as if it were not there."""
    for kind in (BackendWarning, SideEffectWarning, RetraceWarning, MismatchWarning, DefectWarning):
        warnings.filterwarnings("ignore", category=kind)
