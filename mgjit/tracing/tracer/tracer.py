"""Trace one call of a step.

1. Switch the garbage collector off (a trace only allocates) and take the trace lock.
2. Replace the arguments by traced ones and let `Value` and `State` record.
3. Run the user's function once; an exception of its own passes through, after everything is restored.
4. Find what the step has assigned in the user's objects (tracer/settling.py), which are put back as they were.
5. Turn the result into a tree of output indices.
"""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass
from typing import Any, Callable, TypeVar

from ...base.garbage import without_garbage_collection
from ...base.interruption import new_lock, with_cleanup
from ...engine import hook
from ...engine.leaks import PlainCall, holds_traced
from ...engine.precision import Precision
from ...engine.progress import tracing_threads
from ...engine.value import Value
from ...errors import MgjitError, PrecisionError, user_location
from ...ir import opcodes as ops
from ...ir.parameters import Layouts
from ...ir.trace import Trace
from ...memory.buffers import Move
from ..autograd.chosen import Gatherer
from ..autograd.flow import NoFlow
from ..call.appended import AppendingResult, LoggingResult, Tail, take_tails
from ..call.contents import changes, contents, has_grown
from ..call.given import GivenContainers
from ..call.node import Frame
from ..call.objects import ObjectSlots
from ..call.plan import ArgumentPlan
from ..call.results import ResultTree, describe_result
from ..call.sameness import Sameness
from ..call.tensors import assigned_memories
from ..call.written import Writes, record_writes
from ..draws.interception import followed, places_in_module, with_draws
from ..draws.plan import DrawPlan
from ..draws.recorded import Drawing
from ..record.answers import Answer, Answers
from ..record.current import recorders
from ..record.instrument import recorded
from ..record.integers import IntegerLimit, integer_limit
from ..record.recorder import Recorder
from ..record.values import TracedTypes, traced_types
from ..source.debugging import refusing_debuggers
from ..source.effects import Effects
from ..source.implicit import Implicit
from ..source.installed import with_captured_functions
from ..source.selected import Selections
from ..source.untaken import Surroundings
from ..surroundings.allowed import NOTHING
from ..surroundings.survey import Survey
from .contents import Contents
from .knowledge import Again, HeapPlan
from .memory import Heap
from .remains import family, references, refuse_remains
from .texts import refusing_texts

T = TypeVar("T")

#: One trace at a time in a process: the engine's classes are instrumented while it runs.
_trace_lock = new_lock()
_NUMPY_RANDOM = "numpy.random"


@dataclass
class TracedCall:
    """The trace of a call and how its outputs make up the result."""

    trace: Trace
    result: ResultTree
    heap: HeapPlan
    draws: DrawPlan
    writes: Writes
    integers: IntegerLimit
    objects: ObjectSlots | None
    known: frozenset[int]  # the identities of the objects with numbers that the step reaches
    effects: Effects  # what it prints, writes and logs
    assigned: frozenset[int]  # the identities of the memories of tensors that it assigns
    has_numpys: bool  # whether a number of the step is of numpy's type float64 in plain Python
    kept: list[Any]  # the memories of tensors from outside that are constants: of whole numbers and bools
    both_ways: str  # the lines of `if` statements of which both sides are computed, for people
    told: tuple[Answer, ...]  # what the step was told about numbers: the trace holds where that is so
    verdict: int  # the first of the outputs that say whether it is; -1 if there are none

    def move(self, layouts: Layouts) -> Move:
        """What the first run of a kernel moves into its memory, with new parameters and state in these layouts."""
        return Move.of_trace(self.trace, layouts)


def require_traced_precision(name: str, precision: Precision) -> None:
    """Raise a PrecisionError when a step of one precision is called in the trace of a step of another."""
    outer = tracing_threads[threading.get_ident()]
    if outer is not precision:
        raise PrecisionError(
            f"{user_location()}: {name}, a {precision.name} step, is called in a {outer.name} step and would become "
            "part of it, with its numbers. Give both the same dtype, or call the undecorated function."
        )


def between_traces(work: Callable[[], T]) -> T:
    """`work()`, while nothing is changed for the time of a trace."""
    with _trace_lock:
        return work()


def trace_call(
    call: Callable[[Any], Any],
    plan: ArgumentPlan,
    slots: Any,
    heap: Heap | None = None,
    survey: Survey | None = None,
    location: str = "",
    frame: Frame | None = None,
) -> TracedCall:
    """Run `call(traced arguments)` once and return its trace.

    Args:
        call: takes the tuple of arguments.
        plan: the structure of the arguments.
        slots: storage for argument Values that are copied in and out, or None.
        heap: the numbers in the user's objects around the step.
        survey: what surrounds the step: the functions that it can call, the generators that it can draw from.
        location: `file:line` of the step, for messages.
        frame: with the arguments of the call, whose numbers answer what the step asks; None if it is to ask nothing.
    """
    me = threading.get_ident()
    limits: list[IntegerLimit] = []
    path: list[tuple[tuple[Answer, ...], int]] = []
    effects = Effects()
    recorder = Recorder(plan.precision)
    objects = ObjectSlots(plan.objects, plan.precision) if plan.objects and heap is not None else None
    if heap is not None:
        heap.expect(plan.objects)
    recorder.keeps_neutral = heap is not None and heap.is_symbolic

    # Before the code of functions is another one.
    implicit = Implicit({}, ()) if survey is None else Implicit(survey.classes, survey.functions, survey.has_defaults)

    def written() -> Writes:
        elements = [node.elements for node in plan.buffers]
        return record_writes(
            elements, lambda number: recorder.output(types.number_operand(number)), recorder.outputs, plan.buffers,
            () if survey is None else survey.known, [] if survey is None else [thing for thing, _ in survey.buffers],
        )  # fmt: skip

    def counted() -> int:
        return effects.count() + (0 if heap is None else heap.count_appended())

    def refuse_changes(before: list[Any], given: list[Any]) -> None:
        """Containers that the step changes in place are no inputs."""
        for name, old, new in zip(plan.names, before, given):
            if has_grown(old, contents(new)):
                raise PlainCall(f"{location}: the step adds elements to argument {name}, or removes some")
        changed = [path for given_one in zip(plan.nodes, plan.names, before, given) for path in changes(*given_one)]
        if heap is not None:
            heap.refuse_copies(set(changed), plan)

    def ran(arguments: Any) -> Any:
        try:
            returned = call(arguments)
            recorder.selections.check(lambda: recorder.surroundings.kept(returned))
            return returned
        except Exception as error:
            if heap is not None:
                heap.raises()
            # Whoever handles it is going to look at what it says.
            if isinstance(error, MgjitError) or heap is None or not holds_traced((error.args, vars(error)), heap.knows):
                raise
            raise PlainCall(f"the step raises {type(error).__name__} with numbers that it has computed") from None
        finally:
            recorder.same = recorder.surroundings = recorder.selections = None
            taken, recorder.interrupted = recorder.interrupted, None
            if taken is not None:
                raise taken.with_traceback(None) from None

    def followed_through(arguments: Any) -> Any:
        try:
            return ran(arguments)
        except (MgjitError, PlainCall):
            if heap is not None:
                heap.decide(recorder)
            raise

    def run() -> tuple[ResultTree, HeapPlan, Writes]:
        recorder.selections = Selections()
        recorder.surroundings = Surroundings(survey, implicit, lambda: (drawing.plan.size, counted()))
        if heap is None:
            result = describe_result(ran(plan.traced(types.input_number)), recorder, types)
            return result, HeapPlan(), written()
        types.gatherer.is_known = heap.knows
        recorder.asked_for = lambda operand, also_arguments=True: heap.asked_for(operand, plan, also_arguments)
        heap.enter(recorder, types, plan)
        if frame is not None:
            if objects is not None:
                objects.copy_in(frame)
            contents_of = Contents(recorder, plan, frame, slots, drawing.plan, heap.contents())
            recorder.answers, recorder.decided = Answers(recorder, contents_of), heap.decided
        types.gatherer.put = heap.indexed.put
        given = list(map(followed, plan.traced(types.input_number)))
        before = list(map(contents, given))
        answers = {question.key: answer for question, answer in zip(plan.questions, plan.answers)}
        asked = heap.existed, heap.compare, heap.refuse_identity
        recorder.same = Sameness(GivenContainers(plan.nodes, given), answers, *asked)
        try:
            returned = followed_through(given)
            tails = take_tails(before, given) if heap.may_append else []
            refuse_changes(before, given)
            containers = GivenContainers(plan.nodes, given)

            def described(thing: Any) -> ResultTree:
                return describe_result(
                    thing, recorder, types, heap.knows, heap.number_of, containers.path, heap.kept_at
                )

            heap.look_at_built(containers.path)
            logs, appended = heap.appended()
            result = LoggingResult(described((returned, *appended)), logs) if logs else described(returned)
            if tails:
                plain = [(path, as_numbers(elements, types)) for path, elements in tails]
                result = AppendingResult(result, [Tail(path, described(elements)) for path, elements in plain])
        except NoFlow as reason:  # what a backward pass has left behind was used
            heap.give_up(str(reason))
        except TypeError as error:
            if type(error) is TypeError and heap.is_symbolic:  # perhaps a function has met what is no number
                heap.give_up(str(error))
            raise
        writes = written()
        conclude()
        memory = heap.settle(containers.path)
        if objects is not None:
            assigned = recorder.last_store.keys() | heap.reached
            objects.note_assigned(assigned, recorder.bound_base(objects.storage))
        return result, memory, writes

    def conclude() -> None:
        """Let two more outputs say whether what the step was told is so."""
        operands = None if recorder.answers is None else recorder.answers.verdict()
        if operands is not None:
            first, _ = map(recorder.output, operands)
            recorder.is_path = True
            path.append((tuple(recorder.answers.told), first))

    def captured() -> tuple[ResultTree, HeapPlan, Writes]:
        def restore() -> None:
            types.gatherer.close()
            if heap is not None:
                heap.restore()

        classes = family(types.number, types.value, hook.recording.tensors.kind)
        before = references(classes)
        functions, names = ((), ()) if survey is None else (survey.functions, survey.names)
        outside = NOTHING if survey is None else survey.outside()

        def watched_run() -> tuple[ResultTree, HeapPlan, Writes]:
            return effects.during(lambda: refusing_debuggers(names, lambda: refusing_texts(run)))

        found = with_cleanup(lambda: with_captured_functions(functions, watched_run, outside), restore)
        limits.append(_limit(recorder, plan, heap))
        for node in plan.buffers:
            node.elements = None
        if heap is not None:
            refuse_remains(classes, before, heap.forget(), location)
        return found

    def announced() -> tuple[ResultTree, HeapPlan, Writes]:
        tracing_threads[me], recorders[me] = plan.precision, recorder
        return recorded(recorder, types, captured)

    def watched() -> tuple[ResultTree, HeapPlan, Writes]:
        generators, functions = ([], []) if survey is None else (survey.generators, survey.functions)
        before = _NUMPY_RANDOM in sys.modules
        result = with_draws(drawing, location, generators, functions, traced)
        if (_NUMPY_RANDOM in sys.modules) != before:
            raise Again  # its generator may have drawn, which is seen from now on
        return result

    def traced() -> tuple[ResultTree, HeapPlan, Writes]:
        def leave() -> None:
            tracing_threads.pop(me, None)
            recorders.pop(me, None)
            recorder.let_go()

        return with_cleanup(announced, leave)

    with _trace_lock:
        if slots is not None:
            recorder.value_slots(plan.values, slots)
        types = traced_types(recorder, Gatherer())
        drawing = Drawing(recorder, types, plan.input_size)
        result, memory, writes = without_garbage_collection(watched)
    memory.fixed += [(place, place.read()) for place in places_in_module(drawing.called)]
    if heap is not None and drawing.plan.draws:
        memory.fixed += [(place, place.read()) for place in heap.draws]
    known = frozenset() if heap is None else heap.objects
    trace = recorder.finish()
    assigned = assigned_memories(trace)
    memory.built.written.update(assigned)
    return TracedCall(
        trace, result, memory, drawing.plan, writes, limits[-1], objects, known, effects, assigned,
        recorder.has_numpys, recorder.kept_tensors, _both_ways(recorder), *(path[-1] if path else ((), -1)),
    )  # fmt: skip


def as_numbers(thing: Any, types: TracedTypes) -> Any:
    """The same with numbers in place of Values."""
    if isinstance(thing, Value):
        return types.number_at(types.lift(thing), False)
    return type(thing)(as_numbers(part, types) for part in thing) if type(thing) in (list, tuple) else thing


def _both_ways(recorder: Recorder) -> str:
    """The lines of `if` statements of which both sides are computed; empty where there are none."""
    lines: dict[str, list[int]] = {}
    for filename, line in recorder.both_ways:
        lines.setdefault(os.path.basename(filename), []).append(line)
    places = [f"{name}:{', '.join(map(str, sorted(found)))}" for name, found in lines.items()]
    return f"both sides are computed, and numbers selected: {'; '.join(places)}" if places else ""


def _limit(recorder: Recorder, plan: ArgumentPlan, heap: Heap | None) -> IntegerLimit:
    """How large ints from outside may be, noted where they come from.

    Raises:
        PlainCall: the step computes ints above 2**53 from any.
    """

    def bound_of_leaf(leaf: int) -> int | None:
        if ops.leaf_kind(leaf) == ops.INPUT:
            return plan.bound_of_input(ops.leaf_index(leaf))
        return 0 if heap is None else heap.bound_of(leaf)

    integers = integer_limit(recorder, bound_of_leaf)
    if integers.limit < 0:
        raise PlainCall(integers.reason or "it computes ints above 2**53, which float64 does not hold")
    plan.limit_integers((ops.leaf_index(x) for x in integers.leaves if ops.leaf_kind(x) == ops.INPUT), integers.limit)
    if heap is not None:
        heap.limit_integers(integers)
    return integers
