"""Makes the kernels of a frozen step: of the forward part of each trace, over memory that nobody else has.

1. At the first trace, copy all numbers that the step can reach (weights.py), and note everything else that it depends
   on in a guard.  Before a later trace, of arguments of another structure, that guard must still hold.
2. Trace the step as always, except that floats which are only read are memory, too.  So no weight is a constant of the
   code, which other processes share.  Where this is impossible, the code with its constants is kept in no cache.
3. Take the forward part of the trace (forward.py).  Parameters, and what the forward part does not assign, become one
   block, filled once (block.py).  What it does assign, such as keys and values in `mgjit.state`, is shared with the
   program as in any step.
4. Bind the code to that memory.  No call looks at the model again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import Signature
from types import CodeType, FunctionType
from typing import Any

from ..compiler.build.build import build
from ..compiler.build.code import Code
from ..compiler.build.families import Kin
from ..compiler.build.options import StepOptions
from ..errors import FreezeError, TraceError, user_location
from ..ir import opcodes as ops
from ..ir.parameters import Layouts, ParameterLayout
from ..ir.trace import InputRegion, Trace
from ..kernels.factory import Maker
from ..kernels.first_calls.pending import Prepared
from ..memory.buffers import Move, ParameterStorage
from ..runtime.kernel import Kernel
from ..runtime.stats import Stats
from ..tensor.memory import Memory
from ..tracing.call.appended import AppendingResult
from ..tracing.call.columns import Columns
from ..tracing.call.plan import ArgumentPlan
from ..tracing.call.tensors import as_numbers
from ..tracing.draws.plan import DrawPlan
from ..tracing.surroundings.guard import Guard, Pace
from ..tracing.surroundings.places import Place
from ..tracing.surroundings.survey import Survey
from ..tracing.tracer.knowledge import HeapPlan, Knowledge
from ..tracing.tracer.memory import Heap
from ..tracing.tracer.sites import Sites
from ..tracing.tracer.tracer import TracedCall
from ..verification.loops import loop_trial
from .block import Part, with_block
from .forward import Forward, forward_of
from .weights import Weights

#: Constants that do not stand in the code: with more of them, they may be weights.
_FEW_CONSTANTS = 16


class FrozenGuard:
    """Of a frozen step: it holds, except where the memory that the step assigns has another structure.

    Args:
        structure: guards what further traces depend on.
        stale: not empty when earlier kernels read memory that a later one assigns.
    """

    def __init__(self, structure: Guard, stale: list[str]) -> None:
        self._structure, self._stale = structure, stale
        self._others: list[Callable[[], str]] = []
        self.expired = False
        #: As of any guard; not used, because all that there is to look at is looked at in each call.
        self.times, self.pace = array("d", [0.0, 0.0]), Pace()

    def watch(self, places: Iterable[tuple[Place, Any]]) -> None:
        """Let further traces depend on these as well, given with what lies there."""
        self._structure.watch(places)

    def ask(self, difference: Callable[[], str]) -> None:
        """As of any guard."""
        self._others.append(difference)

    def difference(self) -> str:
        """As of any guard."""
        return next(filter(None, [*self._stale, *(difference() for difference in self._others)]), "")

    def look_at_everything(self) -> None:
        """As of any guard."""

    def changed_numbers(self) -> list[Any]:
        """As of any guard."""
        return []

    def conditions(
        self,
        name_of: Callable[[Any], str],
        variable_of: Callable[[Any], str],
        namespace: dict[str, Any],
        hidden: Collection[str],
    ) -> list[str]:
        """As of any guard."""
        return [f"not {name_of(self._stale)}", *(f"not {name_of(other)}()" for other in self._others)]


class FrozenKernel(Kernel):
    """A kernel that changes nothing of the arguments, except that it appends to lists."""

    def is_changed_by_rows(self, columns: Columns) -> bool:
        return isinstance(self.result, AppendingResult) or super().is_changed_by_rows(columns)

    def copy_out(self) -> None:
        if self.copies is not None:
            self.copies.show()


@dataclass
class FrozenCall(TracedCall):
    """The forward part of a trace, with the block of numbers that it only reads, in its natural order."""

    block: ParameterStorage

    def move(self, layouts: Layouts) -> Move:
        """Nothing is moved: the numbers have been copied."""
        states = [state for _, state in self.trace.states]
        move = Move([], [], 0, states, self.trace.precision, Layouts(None, layouts.states))
        move.storage = laid_out(self.block, layouts.parameters)
        return move


@dataclass(frozen=True)
class About:
    """What a kernel works on, for people.

    Attributes:
        weights: how many numbers are as they were.
        assigned: what it assigns, in words.
        constants: why weights are constants of the code; empty if they are not.
        dropped: how many records of the trace were not part of the forward pass.
        draws: what random numbers each call draws, in words.
    """

    weights: int
    assigned: tuple[str, ...]
    constants: str
    dropped: int
    draws: str

    def __str__(self) -> str:
        lines = [
            f"frozen: {self.weights} numbers of the model; later changes of it do not reach this step",
            f"frozen: {self.dropped} records belong to training, and are left out",
            f"frozen: shares with the program what it assigns: {', '.join(self.assigned) or 'nothing'}",
        ]
        if self.draws:
            lines.append(f"frozen: {self.draws} (a model with dropout draws unless model.eval() was called before)")
        if self.constants:
            lines.append(f"frozen: weights are constants of the code, which is not kept in the cache: {self.constants}")
        return "\n".join(lines)


class FrozenMaker(Maker):
    """Makes the kernels of a frozen step.

    Attributes:
        about: the last trace.
        is_private: whether its code is kept in no cache.
        verify: whether the code of loops is compared with that of calls.  Calls are not compared with plain Python,
            which sees the numbers as they are now.
    """

    about: About
    may_be_plain = False
    has_paths = False
    verify = "auto"

    def __init__(
        self, function: Callable[..., Any], signature: Signature, options: StepOptions, qualname: str, stats: Stats
    ) -> None:
        super().__init__(function, signature, options, qualname, stats)
        self.knowledge = Knowledge(may_append=True, every_float=True)
        self.is_private = False
        self._constants = ""
        self._weights: Weights | None = None
        self._structure: Guard | None = None
        self._stale: list[str] = []
        self._live: set[Any] = set()  # what some kernel assigns: keys of places, and identities of states
        self._read: set[Any] = set()  # what kernels only read
        self._survey: Survey | None = None

    # ---- 1: the step is as it was ---------------------------------------------------------------------------------

    def close(self) -> None:
        """The step has been frozen."""
        if self._weights is not None:
            self._weights.is_open = False

    def plan(
        self,
        arguments: Sequence[Any],
        shared: frozenset[str] = frozenset(),
        is_slot: Callable[[Any], bool] | None = None,
    ) -> ArgumentPlan:
        return super().plan(arguments, shared, lambda value: True)  # arguments are inputs, whatever they are

    def heap(self, survey: Survey, location: str) -> Heap:
        heap = super().heap(survey, location)
        self._survey = survey
        if self._weights is None or self._structure is None:
            self._weights = Weights(survey, heap.roles, self.qualname)
        return heap

    def _require_same(self, structure: Guard) -> None:
        structure.look_at_everything()
        found = structure.difference()
        if found:
            raise FreezeError(
                f"{user_location()}: {self.qualname}: arguments of another structure, .lower, .report and .export need "
                f"another trace of the step, which has changed since it was frozen: {found}. Freeze it again."
            )

    # ---- 2, 3: traces ---------------------------------------------------------------------------------------------

    def _trace(self, plan: ArgumentPlan, slots: Any, sites: Sites | None = None) -> tuple[TracedCall, Any]:
        if self._structure is not None:
            self._require_same(self._structure)
        traced, guard = self._traced(plan, slots, sites)
        if traced.heap.valid_once and not self.knowledge.is_settled:
            self.knowledge.is_settled = True
            traced, guard = self._traced(plan, slots, sites)
        assert self._weights is not None
        changed = "" if self._weights.is_open else self._weights.changed(traced.heap.fixed)
        if changed:
            raise FreezeError(f"{self.qualname}: {changed} has changed since it was frozen. Freeze it again.")
        assert self._survey is not None
        is_recorded = bool(self.knowledge.no_flow) or _calls_backward(self._survey, traced.trace)
        forward = forward_of(traced.trace, self._location(), is_recorded)
        given = [] if traced.objects is None else [traced.objects.storage]
        trace, heap, block = self._with_own_memory(forward, traced.heap, [slots, *given])
        if self._structure is None:
            self._structure = guard
        self._note(trace, heap, forward, block, traced.draws)
        call = FrozenCall(**{**vars(traced), "trace": trace, "heap": heap}, block=block)
        return call, FrozenGuard(self._structure, self._stale)

    def _location(self) -> str:
        code = getattr(self.function, "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else self.qualname

    def _traced(self, plan: ArgumentPlan, slots: Any, sites: Sites | None) -> tuple[TracedCall, Guard]:
        """The trace with weights as memory, or else as any step is traced, with some of them as constants."""
        if self.knowledge.every_float:
            try:
                traced, guard = super()._trace(plan, slots, sites)
                if plan.precision.size == 8 or not _computes_with_weights(traced.trace):
                    return traced, guard
                self._constants = "numbers are computed from them in double precision, as in the step"
            except TraceError as error:
                if self._structure is not None:
                    raise
                self._constants = str(error)
            self.knowledge = Knowledge(may_append=True)
        return super()._trace(plan, slots, sites)

    def _with_own_memory(
        self, forward: Forward, heap: HeapPlan, given: Sequence[Any]
    ) -> tuple[Trace, HeapPlan, ParameterStorage]:
        """The trace over one block of what it only reads, what is left to be copied at each call, and the block.

        Tensors that it only reads are copies of their own, whose elements lie as nests address them.

        Args:
            given: storages of what comes with the arguments.
        """
        weights, trace, assigned = self._weights, forward.trace, forward.assigned
        assert weights is not None
        parts: list[Part] = []
        live: set[Any] = set()
        read: set[Any] = set()
        if trace.new_parameters:
            data, grad = weights.of_parameters(trace.new_parameters)
            parts.append(Part(ops.PARAMETER, trace.new_parameters[0][0], len(data), data, grad))

        def is_live(key: Any, start: int, size: int, assigned: frozenset[int] = assigned) -> bool:
            found = key in self._live or not assigned.isdisjoint(range(start, start + size))
            (live if found else read).add(key)
            return found

        storages: list[tuple[int, Any]] = []
        for base, storage in trace.bound_storages:
            if any(storage is one for one in given):
                storages.append((base, storage))
            elif isinstance(storage, Memory):
                is_shared = is_live(id(storage), base, 1, forward.tensors)
                storages.append((base, storage if is_shared else weights.of_tensor(storage)))
            else:
                parts.append(Part(ops.PARAMETER, base, len(storage), *weights.of_storage(storage)))

        states, copied, first = [], [], 0
        for start, state in trace.states:
            first = start if state is heap.state else first
            if state is heap.state or is_live(id(state), start, len(state)):
                states.append((start, state))
            else:
                parts.append(Part(ops.STATE, start, len(state), weights.of_state(state)))
        for part in heap.copied:
            if is_live(part.place.key, first + part.offset, part.count):
                copied.append(part)
            else:
                numbers = weights.of_place(part)
                parts.append(Part(ops.STATE, first + part.offset, len(numbers), numbers))
        if not copied:
            states = [(start, state) for start, state in states if state is not heap.state]
        self._note_use(live, read)
        kept = {id(part) for part in copied}
        tables = [table for table in heap.tables if all(id(row) in kept for row in table.rows)]
        trace, block = with_block(replace(trace, states=states, bound_storages=storages), parts)
        return (
            trace,
            replace(heap, copied=copied, tables=tables, valid_once=heap.valid_once and bool(copied)),
            block,
        )

    def _note_use(self, live: set[Any], read: set[Any]) -> None:
        """Note which memory a kernel assigns, and which it only reads; other kernels that read it may be stale."""
        self._live |= live
        if live & self._read:
            self._stale.append("the step assigns numbers now that it has only read before")
            self._stale = []
        self._read = (self._read | read) - live

    def _note(self, trace: Trace, heap: HeapPlan, forward: Forward, block: ParameterStorage, draws: DrawPlan) -> None:
        """Note what is told about the trace, and whether its code may be kept."""
        survey = self._survey
        self._survey = None
        assert survey is not None
        many = _constants_from_outside(trace, survey.functions)
        if not self._constants and len(many) > (0 if survey.buffers else _FEW_CONSTANTS):
            self._constants = f"{len(many)} numbers are read from tuples, arrays or the like, such as {many[0]!r}"
        self.is_private = bool(self._constants)
        parts = [part.place.describe() for part in heap.copied if part.assigned]
        states = [
            f"an mgjit.state of {len(state)} numbers"
            for start, state in trace.states
            if state is not heap.state and not forward.assigned.isdisjoint(range(start, start + len(state)))
        ]
        memories = {base: storage for base, storage in trace.bound_storages if isinstance(storage, Memory)}
        shared = [memory for base, memory in memories.items() if base in forward.tensors]
        tensors = [f"a tensor of {len(memory)} numbers" for memory in shared]
        weights = len(block) + sum(map(len, memories.values())) - sum(map(len, shared))
        self.about = About(
            weights,
            (*parts, *states, *tensors),
            self._constants,
            forward.dropped,
            draws.describe() if draws.size else "",
        )

    # ---- 4: code --------------------------------------------------------------------------------------------------

    def code(self, trace: Trace, inputs: Sequence[InputRegion], kin: Kin | None = None) -> Code:
        options = replace(self.options.code, cache=self.options.code.cache and not self.is_private)
        return build(trace, inputs, options, self.qualname, None if self.is_private else kin)

    def bound(self, code: Code, prepared: Prepared) -> Kernel:
        traced = prepared.traced
        kernel = self._kernel(FrozenKernel, code, prepared, traced.move(code.layouts), as_numbers(traced.result))
        kernel.loop_trial = loop_trial(replace(self.options, verify=self.verify), self._note_rows)
        self.stats.note_kernel(code.facts, prepared.seconds, prepared.plan.outline(), prepared.reason)
        return kernel


def _calls_backward(survey: Survey, trace: Trace) -> bool:
    """Whether a step computes gradients by code of its own: code is met by a survey if something names it."""
    if "backward" not in survey.names:
        return False
    if any(hasattr(kind, "backward") and hasattr(kind, "__mul__") for kind in survey.groups):  # nodes of a graph
        return True
    kinds = {ops.leaf_kind(a) for code, a in zip(trace.op, trace.a) if code == ops.STORE}
    return ops.GRADIENT in kinds and any(function.__name__ == "backward" for function in survey.functions)


def laid_out(block: ParameterStorage, layout: ParameterLayout | None) -> ParameterStorage:
    """The same numbers in another layout."""
    if layout is None:
        return block
    made = ParameterStorage(len(block), block.precision, layout)
    for number, place in enumerate(layout.positions(range(len(block)))):
        made.data[place], made.grad[place] = block.data[number], block.grad[number]
    return made


def _computes_with_weights(trace: Trace) -> bool:
    """Whether something is computed from numbers alone that would be constants in any other step."""
    plain = {ops.CONSTANT, ops.STATE, ops.PARAMETER, ops.GRADIENT}
    kinds = [{ops.leaf_kind(x) for x in (a, b) if x != ops.NO_OPERAND} for a, b in zip(trace.a, trace.b)]
    number = (code >= ops.NUMBER and code & (ops.NUMBER - 1) < ops.TAKE for code in trace.op)
    return any(is_number and found <= plain and found != {ops.CONSTANT} for is_number, found in zip(number, kinds))


def _constants_from_outside(trace: Trace, functions: Iterable[FunctionType]) -> list[float]:
    """The constants of a trace that do not stand in the code."""
    written = {number for function in functions for number in _numbers_in(function.__code__)}
    return [x for x in dict.fromkeys(trace.constants) if x not in written and not (x.is_integer() and abs(x) < 256)]


def _numbers_in(code: CodeType) -> Iterator[float]:
    pending: list[Any] = [*code.co_consts]
    while pending:
        thing = pending.pop()
        if isinstance(thing, (int, float)):
            yield thing
        elif isinstance(thing, (tuple, frozenset)):
            pending += thing
        elif isinstance(thing, CodeType):
            pending += thing.co_consts
