"""From the arguments of a call to a kernel: plans them, traces the call, and binds code to the memory of the step.

1. Plan the arguments: what is an input, and what is known or compared.
2. Trace the call, again where that has shown which numbers change or what shapes the trace.
3. Find the best code for the trace, or let it be built (background.py).
4. Bind it: a kernel is code, and the memory that it works on.

Which kernel fits a call, and when one is worth it, is decided in kernels.py.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.announced import Announced
from ..base.garbage import without_garbage_collection
from ..compiler.build.build import build, find
from ..compiler.build.code import Code
from ..compiler.build.families import Kin
from ..compiler.build.options import Options, StepOptions
from ..engine.leaks import PlainCall
from ..ir.trace import InputRegion, Trace
from ..memory.buffers import Move, ParameterStorage, SharedScratch
from ..memory.parameter import Parameter
from ..runtime.kernel import Kernel
from ..runtime.stats import Stats
from ..tensor.memory import Memory
from ..tensor.modes import computing_with
from ..tracing.call.columns import bound_arguments
from ..tracing.call.node import Frame
from ..tracing.call.plan import ArgumentPlan, plan_arguments
from ..tracing.call.results import ResultTree
from ..tracing.copies.copies import Copies
from ..tracing.record.separation import forward_assigns, separation_of, with_early_outputs
from ..tracing.surroundings.guard import Guard, Pace
from ..tracing.surroundings.survey import Survey
from ..tracing.tracer.knowledge import Again, Knowledge
from ..tracing.tracer.memory import Heap
from ..tracing.tracer.sites import Sites
from ..tracing.tracer.tracer import TracedCall, between_traces, trace_call
from ..verification.loops import loop_trial
from ..verification.proofs import Proofs
from ..verification.trial import trial, warn_of_mismatch
from .building.background import Job, start
from .first_calls.pending import Found, Prepared
from .first_calls.repaid import Repaid

if TYPE_CHECKING:
    from ..ir.parameters import Layouts

T = TypeVar("T")

#: So many traces that end because another one is needed may follow each other.
_MOST_TRIES = 1000
#: A plain call of arguments with so many numbers takes long.
_MANY_NUMBERS = 10_000


@dataclass(frozen=True)
class Noted:
    """A trace for people.

    Attributes:
        plan: of the arguments.
        traced: the trace, in which the sites of the records are noted.
        slots: storage for Values among the arguments, or None.
        sites: the lines that records come from.
        inputs: the memory of the arguments.
        seconds: how long the trace took, with noting the lines.
    """

    plan: ArgumentPlan
    traced: TracedCall
    slots: Any
    sites: Sites
    inputs: list[InputRegion]
    seconds: float


class Maker:
    """Makes the kernels of a step.

    Args:
        function: the step, undecorated.
        signature: of the step.
        options: of the step.
        qualname: of the step.
        stats: gets what is made.

    Attributes:
        function, options, qualname, stats: as given.
        knowledge: what traces have found out.
        proofs, repaid: what earlier processes have found out.
        kin: what kernels leave for those of other lengths.
        token: stands for this step in memory that it may share with others.
    """

    #: Whether calls may be plain Python.
    may_be_plain = True
    #: Whether traces may follow one path of several (tracing/record/answers.py).
    has_paths = True

    def __init__(
        self,
        function: Callable[..., Any],
        signature: inspect.Signature,
        options: StepOptions,
        qualname: str,
        stats: Stats,
    ) -> None:
        self.function, self._signature, self.options = function, signature, options
        self.qualname, self.stats = qualname, stats
        self.proofs = Proofs(function, qualname, options)
        self.repaid = Repaid(function, qualname, options)
        self.knowledge = Knowledge()
        self.kin = Kin()
        self._scratch, self._pace = SharedScratch(), Pace()
        self._frame: Frame | None = None  # with the arguments of a call whose numbers answer what the step asks
        self._is_settled = False  # whether traces are made as after the first compiled call (tracer/knowledge.py)
        self.token = object()

    def separate(self) -> Maker:
        """One for the kernels that run the phases of the step separately."""
        options = replace(self.options, code=replace(self.options.code, separate=True))
        made = Maker(self.function, self._signature, options, self.qualname, self.stats)
        made.knowledge, made._pace = self.knowledge, self._pace
        return made

    @property
    def location(self) -> str:
        """`file:line` of the step, for messages."""
        code = getattr(self.function, "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(self.function)

    @property
    def names(self) -> list[str]:
        """Those of the parameters of the step."""
        return list(self._signature.parameters)

    # ---- 1: arguments -------------------------------------------------------------------------------

    def plan(
        self,
        arguments: Sequence[Any],
        shared: frozenset[str] = frozenset(),
        is_slot: Callable[[Any], bool] | None = None,
    ) -> ArgumentPlan:
        """The plan for the arguments of a call.

        Args:
            shared: names of those that are known by identity, because the step changes them by another way.
            is_slot: whether a Value is copied in and out.
        """
        names = self.names
        told = self.options.static | shared
        learned = self.knowledge.fixed_arguments - told
        questions = tuple(self.knowledge.questions.values())
        return plan_arguments(
            names, arguments, told | learned, is_slot, self.options.precision, shared, questions, learned
        )

    def expects_much_of(self, plan: ArgumentPlan) -> bool:
        """Whether a trace of arguments of this structure pays, as far as that can be known before any call."""
        return plan.input_size >= _MANY_NUMBERS or Memory.exists or self.repaid.has(plan)

    # ---- 2: traces ----------------------------------------------------------------------------------

    def answering(self, frame: Frame | None, work: Callable[[], T]) -> T:
        """`work()`, which traces a call with the arguments in a frame, whose numbers may answer what the step asks."""
        if self.has_paths and self.options.lock and not self.options.code.separate:
            self._frame = frame
        try:
            return work()
        finally:
            self._frame = None

    def prepared(self, plan: ArgumentPlan, reason: str, patient: bool) -> Prepared:
        """Trace the call.

        Args:
            reason: why, for reports.
            patient: whether the call waits for its kernel; otherwise it runs as plain Python.

        Raises:
            Again: it has shown which arguments shape the trace.
            PlainCall: the call is to run as plain Python.
        """
        slots = ParameterStorage(len(plan.values), plan.precision) if plan.values else None
        started, processor = perf_counter(), thread_time()
        self.knowledge.is_for_later = not patient
        self.knowledge.is_settled = self._is_settled and not patient
        traced, guard = self._trace(plan, slots)
        if traced.heap.valid_once and not (patient or self._is_settled):
            # Plain calls leave such numbers again and again, so that no trace would ever hold for another call.
            self._is_settled = self.knowledge.is_settled = True
            traced, guard = self._trace(plan, slots)
        seconds, processor = perf_counter() - started, thread_time() - processor
        traced.effects.warn()
        guard.watch(traced.heap.fixed)
        if self.options.code.separate:
            traced.trace = with_early_outputs(traced.trace)
        return Prepared(plan, traced, guard, slots, seconds, processor, reason)

    def look(self, plan: ArgumentPlan) -> None:
        """Trace the call to see whether that is possible.

        Raises:
            Again: it has shown which arguments shape the trace.
            PlainCall: the call is to run as plain Python.
        """
        self.knowledge.is_for_later, self.knowledge.is_settled = True, self._is_settled
        self._trace(plan, ParameterStorage(len(plan.values), plan.precision) if plan.values else None)

    def _trace(self, plan: ArgumentPlan, slots: Any, sites: Sites | None = None) -> tuple[TracedCall, Guard]:
        """Trace the step, again when that has shown which numbers it changes; returns what has to stay as it is, too.

        Args:
            sites: gets the lines that records come from.

        Raises:
            Again: it has shown which arguments shape the trace.
            PlainCall: the call is to run as plain Python.
        """
        location = self.location
        given = [("an argument", thing) for thing in plan.static_objects()]
        run = self.undecorated if sites is None else sites.noting(self.undecorated)
        keeps = False  # whether the survey keeps what would be gone without it

        def traced() -> tuple[TracedCall, Guard]:
            nonlocal keeps
            survey = Survey(self.function, given, self.knowledge.built)
            keeps = survey.met.keeps
            heap = self.heap(survey, location)
            call = trace_call(run, plan, slots, heap, survey, location, self._frame)
            guard = Guard(survey, call.heap.looked_after, self._pace, call.heap.replaced)
            guard.watch_forms(call.heap.unread)
            guard.watch_numbers(call.kept)
            guard.watch_leaves([memory for _, memory in call.trace.bound_storages if isinstance(memory, Memory)])
            return call, guard

        def between() -> tuple[TracedCall, Guard]:
            return between_traces(lambda: without_garbage_collection(traced))

        plain: PlainCall | None = None
        tries = 0
        while plain is None:
            tries += 1
            try:
                with Announced(f"{self.qualname} ({location})", "recording what it does"):
                    return copy_context().run(between)  # what it sets of context variables is forgotten
            except Again:
                knowledge = self.knowledge
                if not knowledge.fixed_arguments <= plan.fixed or len(knowledge.questions) > len(plan.questions):
                    raise
                if tries >= _MOST_TRIES:
                    plain = PlainCall(f"{tries} traces of it have each shown that another one is needed")
            except PlainCall as found:
                plain = found.with_traceback(None)  # whose frames keep everything
        if keeps:
            gc.collect()
        raise plain

    def heap(self, survey: Survey, location: str) -> Heap:
        """The numbers around a trace."""
        return Heap(survey, self.knowledge, location)

    def undecorated(self, arguments: Sequence[Any]) -> Any:
        """Make a call in plain Python."""
        bound = bound_arguments(self._signature, arguments)
        return computing_with(self.options.precision, lambda: self.function(*bound.args, **bound.kwargs))

    def noted(self, plan: ArgumentPlan, frame: Frame | None = None) -> Noted:
        """Trace the call once more, for people: with the lines that its records come from.

        Args:
            frame: with the arguments of the call.

        Raises:
            Again: it has shown which arguments shape the trace.
            PlainCall: the step runs as plain Python.
        """
        slots = ParameterStorage(len(plan.values), plan.precision) if plan.values else None
        sites = Sites()
        started = perf_counter()
        traced, _ = self.answering(frame, lambda: self._trace(plan, slots, sites))
        return Noted(plan, traced, slots, sites, plan.regions(traced.draws.size), perf_counter() - started)

    def traced(self, plan: ArgumentPlan) -> TracedCall:
        """The trace of a call that is not made into a kernel.

        Raises:
            Again: it has shown which arguments shape the trace.
            PlainCall: the call cannot be traced.
        """
        slots = ParameterStorage(len(plan.values), plan.precision) if plan.values else None
        return self._trace(plan, slots)[0]

    # ---- 3, 4: code ---------------------------------------------------------------------------------

    def found_or_started(
        self, trace: Trace, inputs: Sequence[InputRegion], may_share: bool = True
    ) -> tuple[Options, Job | Found] | None:
        """The best code that is there, or the job that builds what is there first, while the call is plain Python.

        None if there can be no job.

        Args:
            may_share: whether it may be the code for other lengths as well.
        """
        best = self.options.code
        tiers = [tier for tier in (best, best.quickly(trace.work_in_nests())) if tier is not None]
        for options in tiers:
            code = find(trace, inputs, options)
            if code is not None:
                return options, Found(code)
        # A member of a family gets the best code at once, which is quicker than any other.
        first = best if may_share and self.kin.keys(best) else tiers[-1]
        kin = self.kin if may_share and not first.quick else None
        job = start(trace, inputs, first, self.qualname, kin, is_call_next=True)
        return None if job is None else (first, job)

    def built(self, prepared: Prepared, inputs: Sequence[InputRegion]) -> Kernel:
        """The kernel of a trace, whose code is built here and now where it does not exist."""
        kin = None if prepared.traced.told else self.kin
        return self.bound(self.code(prepared.traced.trace, inputs, kin), prepared)

    def code(self, trace: Trace, inputs: Sequence[InputRegion], kin: Kin | None = None) -> Code:
        """The code for a trace, which is built here and now where it does not exist; with kin, perhaps a family's."""
        with Announced(f"{self.qualname} ({self.location})", "building its code"):
            return build(trace, inputs, self.options.code, self.qualname, kin)

    def filled(self, traced: TracedCall, layouts: Layouts) -> tuple[list[ParameterStorage], list[Any]]:
        """The storages and states of a trace with the numbers that are there now; only those of kernels are in use."""
        move = traced.move(layouts)
        move.fill()
        return _storages(traced.trace, move), move.state_numbers

    def bound(self, code: Code, prepared: Prepared) -> Kernel:
        """A kernel: code, and the memory of this step that it works on."""
        traced, trace = prepared.traced, prepared.traced.trace
        move = without_garbage_collection(lambda: traced.move(code.layouts))
        scratch = None if self.options.code.separate else self._scratch
        kernel = self._kernel(Kernel, code, prepared, move, traced.result, scratch)
        for storage in kernel.parameters:
            storage.note_user(self.token)
        new = [p.owner if isinstance(p, Parameter) else p for _, p in trace.new_parameters]
        kernel.moved = [*new, *prepared.traced.heap.bound]
        kernel.trial = trial(self.options, trace, prepared.plain_seconds())
        if traced.has_numpys:
            self.proofs.leave_out(code)
        if kernel.trial is not None and self.proofs.has(code):
            kernel.trial.passed()
        kernel.loop_trial = loop_trial(self.options, self._note_rows)
        self.note_kin(prepared, move.storage, code)
        if self.options.code.separate:
            kernel.separation = separation_of(trace, code.facts.get("structure", ""))
            copied = (range(start, start + len(state)) for start, state in trace.states if state is traced.heap.state)
            kernel.forward_assigns = forward_assigns(trace, next(copied, range(0)))
        self.stats.note_kernel(code.facts, prepared.seconds, prepared.plan.outline(), prepared.reason)
        return kernel

    def _kernel(
        self,
        kind: type[Kernel],
        code: Code,
        prepared: Prepared,
        move: Move,
        result: ResultTree,
        scratch: SharedScratch | None = None,
    ) -> Kernel:
        """The object itself, with what it copies."""
        plan, traced, guard, trace = prepared.plan, prepared.traced, prepared.guard, prepared.traced.trace
        heap, copies = traced.heap, None
        guard.expired = heap.valid_once
        if heap.copies:
            copies = Copies(heap.state, heap.copied, self.stats.counter, heap.tables, plan.has_containers, heap.built)
            guard.ask(copies.difference)
        made = kind(
            code, plan, guard, _storages(trace, move), move, trace.outputs, trace.checks, result, prepared.slots,
            copies, traced.draws, traced.writes, changed_by(plan, traced, False), traced.integers, traced.objects,
            scratch,
        )  # fmt: skip
        made.verdict, made.told = traced.verdict, traced.told
        return made

    def _note_rows(self, count: int, mismatch: str) -> None:
        """Note that rows of a loop have been compared, and warn if they differ."""
        self.stats.compared_rows += count
        if mismatch:
            self.stats.mismatches.append(mismatch)
            then = "makes a call for each row from now on, where it runs many"
            warn_of_mismatch(f"the code for loops of {self.qualname}", mismatch, then)

    def note_kin(self, prepared: Prepared, storage: ParameterStorage, code: Code) -> None:
        """Note the code of a kernel, whose new parameters are in a storage, for those of other lengths."""
        traced = prepared.traced
        if traced.told:
            return
        self.kin.note(traced.trace, prepared.plan.regions(traced.draws.size), storage, code.facts)


def _storages(trace: Trace, move: Move) -> list[ParameterStorage]:
    """Where the parameters of a trace lie: new ones, and those that lay somewhere before."""
    return [*([move.storage] if trace.new_parameters else []), *(storage for _, storage in trace.bound_storages)]


def changed_by(plan: ArgumentPlan, traced: TracedCall, also_movable: bool = True) -> frozenset[int]:
    """The identities of lists, dicts, objects, and memories of tensors, in which the step assigns numbers.

    Args:
        also_movable: whether those of lists are among them in whose place the program may put others.
    """
    tensors = traced.assigned if plan.buffers else frozenset()
    return traced.heap.changed(also_movable) | tensors | (traced.known if plan.objects else frozenset())
