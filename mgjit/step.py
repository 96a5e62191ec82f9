"""The compiled step: from the arguments of a call to the kernel that runs it.

1. Once a kernel has been used a few times in a row, calls begin with a function that was generated for it
   (runtime/fastcall.py), and which hands what it does not take to `_call`.
2. Pack the arguments into the kernel of the last call; when their structure fits and no captured name has
   changed, one foreign call does the rest.
3. Otherwise plan the arguments afresh and look for a kernel of that structure.
4. Otherwise trace the call, build code for it, bind the parameters and state, and remember the kernel.

5. Run the kernel in a transaction (runtime/kernel.py).  The foreign call itself cannot fail; a call that is ended
   before it, by whatever is raised wherever, has changed no parameter, no gradient and no state, and one that is
   ended after it has changed all that it changes: `stats.calls` says which.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import sys
import warnings
from array import array
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Callable, Generic, TypeVar

from . import settings
from .build import Options, build
from .engine.precision import FLOAT64, Precision
from .engine.value import Value
from .errors import (
    ArgumentError,
    PhaseError,
    RetraceLimitError,
    RetraceWarning,
    user_location,
    user_stacklevel,
)
from .lowering import Lowering
from .passes.cost import Processor
from .passes.memory import InputRegion
from .passes.pipeline import lower
from .runtime.buffers import Move, Moved, ParameterStorage, storage_of
from .runtime.copies import Copies
from .runtime.fastcall import fast_call, is_short, is_worth_it
from .runtime.kernel import Kernel
from .runtime.loop import reporting, run_rows
from .runtime.turn import Turn
from .stats import Stats
from .trace.columns import bound_arguments, pack_rows, read_columns
from .trace.draws import DrawPlan
from .trace.functions import reachable_functions
from .trace.guards import Guard
from .trace.heap import Again, Heap, Knowledge
from .trace.hints import power_hints
from .trace.results import collect_results
from .trace.signature import ArgumentPlan, bind, plan_arguments
from .trace.tracer import TracedCall, is_tracing, require_traced_precision, trace_call, tracing_threads

try:
    from typing import ParamSpec
except ImportError:  # before Python 3.10: as typing_extensions would, without needing it at run time
    from ._typing import ParamSpec  # type: ignore[assignment]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class StepOptions:
    """The arguments of `mgjit.compile`."""

    code: Options = field(default_factory=Options)
    precision: Precision = FLOAT64
    static: frozenset[str] = frozenset()
    limit: int = 64
    warn_after: int = 10
    lock: bool = True


class CompiledStep(Generic[P, R]):
    """A step that runs as a kernel; call it like the function it was made from."""

    __name__: str
    __qualname__: str

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    else:
        # Python looks `__call__` up in the class. A slot lets each step have its own, which changes with its kernels.
        __slots__ = ("__call__", "__dict__", "__weakref__")

    def __init__(self, function: Callable[P, R], options: StepOptions) -> None:
        functools.update_wrapper(self, function)
        named = _named(function)
        self.__module__, self.__name__, self.__qualname__ = named.__module__, named.__name__, named.__qualname__
        self._attribute = self.__name__
        self._function = function
        self._options = options
        self._signature = inspect.signature(function)
        parameters = list(self._signature.parameters.values())
        unknown = options.static - {p.name for p in parameters}
        if unknown:
            raise ArgumentError(
                f"{user_location()}: static={sorted(unknown)} names no parameter of {self.__name__}{self._signature}."
            )
        plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self._arity = len(parameters) if all(p.kind in plain for p in parameters) else -1
        self._turn = Turn()
        self.clear()

    def clear(self) -> None:
        """Forget all kernels and counts; parameters keep their values."""
        self._turn.run(self._clear)

    def _clear(self) -> None:
        # In an order in which every beginning makes sense.
        setattr(self, "__call__", self._call)  # noqa: B010 - a method, as far as type checkers know
        self._phase = ""
        self._pending: Kernel | None = None
        self._calls_before = 0
        self._chosen: Kernel | None = None
        self._last: Kernel | None = None
        self._family: dict[Hashable, Kernel] = {}
        self._kernels: dict[Hashable, Kernel] = {}
        self._slot_structures: set[Hashable] = set()
        self._knowledge = Knowledge()
        self.stats = Stats()

    # ---- calling --------------------------------------------------------------------------------

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """The general path of a call."""
        # The environment is asked until there is a kernel, not at every call: that alone would double its time.
        if is_tracing():
            require_traced_precision(self.__name__, self._options.precision)
            return self._function(*args, **kwargs)
        if self._last is None and settings.disabled():
            return self._function(*args, **kwargs)
        member = self._family.get(_lengths(args)) if self._family and not kwargs else None
        if member is not None and member is not self._chosen and member.fast_calls:
            # It comes back here when the arguments are not quite what it was made for.
            return self._choose_call(member)(*args)
        return self._turn.run(self._perform, "step", args, kwargs)

    def _perform(self, phase: str, args: Any, kwargs: Any) -> Any:
        """Run a phase of the kernel for these arguments, in a turn."""
        self._phase = ""
        is_step = phase == "step"
        while True:
            kernel = self._fitting(args if not kwargs and len(args) == self._arity else self._bound(args, kwargs))
            if is_step and is_worth_it(kernel):
                self._choose_call(kernel)  # before the call has any effect, because it may fail
            try:
                if kernel.needs_accepting:
                    kernel.accept()
                kernel.perform(phase, self.stats.counter if is_step else None)
                break
            except Moved:
                self._forget(kernel)
        if not is_step:
            self._pending, self._calls_before, self._phase = kernel, self.stats.calls, phase
        return kernel.result(kernel.outputs)

    def _choose_call(self, kernel: Kernel) -> Callable[..., Any]:
        """Let calls begin with the path for a kernel that is likely to be the next one; returns the path."""
        short = is_short(kernel, self._turn)
        if short not in kernel.fast_calls:
            kernel.fast_calls[short] = fast_call(
                self._function, kernel, kernel.guard, self._signature, self._call, self._turn, self.stats.counter,
                tracing_threads,
            )  # fmt: skip
        call = kernel.fast_calls[short] or self._call
        self._chosen = kernel
        setattr(self, "__call__", call)  # noqa: B010 - a method, as far as type checkers know
        return call

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Only the forward phase: returns the result, changes no parameter and no gradient.

        What only a later phase computes is nan in the result.
        """
        self._refuse_in_trace("forward")
        return self._turn.run(self._perform, "forward", args, kwargs)  # type: ignore[no-any-return]

    def backward(self) -> None:
        """Only the backward phase, with the arguments of the last `.forward(...)`: sets the gradients."""
        self._continue("backward", "forward")

    def update(self) -> None:
        """Only the update phase, after `.backward()`."""
        self._continue("update", "backward")

    def loop(self, *columns: Any, progress: bool = False, **named: Any) -> Any:
        """Many steps in one C call: `losses = step.loop(images, labels, 0.01)`.

        A list, tuple, range, bytes, array, memoryview, numpy array or other sequence is a column: item k is what
        call k would get.  Everything else (a number, a Value, a string, a dict) is the same for every step, and so
        are defaults and the arguments that `static=` names.  All columns have one length.  All rows are checked
        before the first step runs.  Rows of a buffer of two or more dimensions are used where they lie.

        Other threads of Python run meanwhile.  Ctrl-C ends the loop within 0.2 s (or one step); with compiled code
        the parameters then hold the state after a whole number of steps, which `.stats.calls` counts.

        Args:
            columns, named: what the step takes, by position or name.
            progress: whether to show a progress bar.

        Returns:
            The result of a step, with an `array('d')`, one element a step, in place of every number.  Parts that
            are no numbers are those of one step.  Without rows: of the last call, or empty.

        Raises:
            ColumnError: the columns differ in length, or a row in structure from row 0.
            IndexRangeError: a run-time index of some row is out of range.
        """
        self._refuse_in_trace("loop")
        return self._turn.run(self._loop, columns, named, progress)

    def _loop(self, columns: Sequence[Any], named: dict[str, Any], progress: bool) -> Any:
        self._phase = ""
        table = read_columns(self._signature, columns, named, self._options.static)
        if self._last is None and settings.disabled():
            return collect_results([self._call_with(row) for row in table.rows()])
        if not table.length:
            return array("d") if self._last is None else self._last.result.columns(array("d"), 1, 0)
        while True:
            kernel = self._fitting(table.row(0))
            rows = pack_rows(kernel.plan, kernel.frame, table)
            kernel.check_rows(rows)
            with reporting(table.length, self.__name__, progress) as report:
                if rows.separate:
                    return collect_results([self._run(row, report) for row in table.rows()])
                try:
                    return run_rows(kernel, rows, report, self.stats.counter)
                except Moved:
                    self._forget(kernel)

    def _run(self, arguments: Sequence[Any], report: Callable[[int], Any]) -> Any:
        """One row as a call of its own."""
        result = self._perform("step", arguments, {})
        report(1)
        return result

    def _continue(self, phase: str, after: str) -> None:
        self._refuse_in_trace(phase)
        self._turn.run(self._perform_next, phase, after)

    def _perform_next(self, phase: str, after: str) -> None:
        if self._pending is None or self._phase != after or self._calls_before != self.stats.calls:
            raise PhaseError(
                f"{user_location()}: .{phase}() continues .{after}(), which has not just been called. "
                "Call step.forward(*args), then step.backward(), then step.update()."
            )
        self._phase = ""
        self._pending.perform(phase)
        self._phase = phase

    def _refuse_in_trace(self, phase: str) -> None:
        if is_tracing():
            raise PhaseError(
                f"{user_location()}: .{phase}() runs a kernel and cannot be part of the step that is being traced. "
                f"Call {self.__name__}(...) itself there: it becomes part of the trace."
            )

    def _fitting(self, arguments: Sequence[Any]) -> Kernel:
        """The kernel for these arguments, with them in its frame."""
        kernel = self._last
        reason = ""
        if kernel is not None and self._packs(kernel, arguments):
            reason = kernel.guard.difference()
            if not reason:
                return kernel
        member = self._family.get(_lengths(arguments))
        if member is not None and member is not kernel and self._fits(member, arguments):
            self._last = member
            return member
        kernel = self._look_up(arguments, reason)
        if not kernel.plan.pack(arguments, kernel.frame):
            raise ArgumentError(f"{user_location()}: the arguments changed while the step was traced.")
        self._last = self._family[_lengths(arguments)] = kernel
        return kernel

    def _fits(self, kernel: Kernel, arguments: Sequence[Any]) -> bool:
        """Whether a kernel is for these arguments; they are in its frame then."""
        return self._packs(kernel, arguments) and not kernel.guard.difference()

    def _packs(self, kernel: Kernel, arguments: Any) -> bool:
        packed = kernel.plan.pack(arguments, kernel.frame)
        return packed and not (kernel.values is not None and self._is_captured(kernel.frame.values))

    def _bound(self, args: Any, kwargs: Any) -> tuple[Any, ...]:
        bound = bind(self._signature, args, kwargs, self.__name__)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    # ---- finding and making kernels -----------------------------------------------------------------

    def _look_up(self, arguments: Sequence[Any], reason: str) -> Kernel:
        while True:
            with contextlib.suppress(Again):
                return self._look_up_planned(arguments, reason)

    def _look_up_planned(self, arguments: Sequence[Any], reason: str) -> Kernel:
        plan = self._plan(arguments)
        anonymous = plan.structure
        if self._is_captured(plan.argument_values()):
            pass  # known by identity: the step may reach the same Value by another way
        elif anonymous in self._slot_structures:
            plan = self._plan(arguments, value_slots=True)
        elif any(k.plan.structure == anonymous and key != plan.key for key, k in self._kernels.items()):
            # Other Values in the same structure: from now on they are copied in and out.
            self._slot_structures.add(anonymous)
            plan = self._plan(arguments, value_slots=True)
        known = self._kernels.get(plan.key)
        if known is not None:
            reason = known.guard.difference()
            if not reason:
                return known
            if known.guard.changed is not None:  # a list that changes is memory from now on, and no constant
                self._knowledge.variable.add(("list", id(known.guard.changed)))
        elif self._last is not None:
            reason = self._last.plan.first_difference(plan)
        self._refuse_too_many(len(self._kernels) - (known is not None), reason)
        kernel = self._make(plan, reason)
        if known is not None:
            self._forget(known)
        self._kernels[plan.key] = kernel
        return kernel

    def _forget(self, kernel: Kernel) -> None:
        """Do not use a kernel any more."""
        self._family = {lengths: member for lengths, member in self._family.items() if member is not kernel}
        self._kernels = {key: member for key, member in self._kernels.items() if member is not kernel}
        if self._last is kernel:
            self._last = None

    def _plan(self, arguments: Sequence[Any], value_slots: bool = False) -> ArgumentPlan:
        names = list(self._signature.parameters)
        static = self._options.static | self._knowledge.fixed_arguments
        return plan_arguments(names, arguments, static, value_slots, self._options.precision)

    def _is_captured(self, values: Sequence[Value]) -> bool:
        """Whether one of the argument Values is a parameter of a kernel of this step."""
        storages = list(map(storage_of, values))
        return any(
            storage is not None and storage in k.parameters for storage in storages for k in self._kernels.values()
        )

    def _refuse_too_many(self, known: int, reason: str) -> None:
        if known >= self._options.limit:
            raise RetraceLimitError(
                f"{user_location()}: {self.__name__} has been traced for {known} argument structures, the "
                f"limit. The first difference from the last call: {reason}. Make the arguments alike (pad them, "
                "pass numbers instead of strings or bools), or raise limit=."
            )
        if self.stats.traces == self._options.warn_after:
            warnings.warn(
                f"{self.__name__} is being traced for the {self.stats.traces + 1}th time; the first difference from "
                f"the last call: {reason}",
                RetraceWarning,
                stacklevel=user_stacklevel(),
            )

    def _make(self, plan: ArgumentPlan, reason: str) -> Kernel:
        guard = Guard(self._function, plan.static_objects())
        slots = ParameterStorage(len(plan.values), plan.precision) if plan.values else None
        started = perf_counter()
        code_object = getattr(self._function, "__code__", None)
        location = f"{code_object.co_filename}:{code_object.co_firstlineno}" if code_object else repr(self._function)
        traced = self._trace(plan, slots, location, guard)
        seconds = perf_counter() - started
        trace = traced.trace
        code = build(trace, _regions(plan, traced.draws), self._options.code, self.__qualname__)
        guard.forget(traced.heap.looked_after)
        guard.watch(traced.heap.fixed)
        guard.expired = traced.heap.valid_once
        move = Move.of_trace(trace, code.parameter_layout)
        new = [move.storage] if trace.new_parameters else []
        parameters = new + [storage for _, storage in trace.bound_storages]
        copies = Copies(traced.heap.state, traced.heap.copied, self.stats.counter) if traced.heap.copied else None
        if copies is not None:
            guard.ask(copies.difference)
        kernel = Kernel(
            code, plan, guard, parameters, move, trace.outputs, trace.checks, traced.result, slots, copies, traced.draws
        )
        self._note(code.facts, seconds, plan, reason)
        return kernel

    def _trace(self, plan: ArgumentPlan, slots: Any, location: str = "", guard: Guard | None = None) -> TracedCall:
        """Trace the step, again when that has shown which lists of numbers it changes.

        Raises:
            Again: it has shown which arguments shape the trace.
        """
        given = [("an argument", thing) for thing in plan.static_objects()]
        functions = reachable_functions(self._function, [thing for _, thing in given])
        captured = guard.objects() if guard is not None else []
        while True:
            heap = Heap(functions, [("self", self._function), *given], self._knowledge, location)
            try:
                return trace_call(self._call_with, plan, slots, heap, functions, location, captured)
            except Again:
                if not self._knowledge.fixed_arguments <= plan.fixed:
                    raise

    def _call_with(self, arguments: Sequence[Any]) -> Any:
        bound = bound_arguments(self._signature, arguments)
        return self._function(*bound.args, **bound.kwargs)

    def _note(self, facts: dict[str, Any], trace_seconds: float, plan: ArgumentPlan, reason: str) -> None:
        stats = self.stats
        if stats.traces:
            stats.retraces.append(reason)
        stats.traces += 1
        stats.trace_seconds = trace_seconds
        stats.roll_seconds = facts["lower_seconds"]
        stats.compile_seconds = facts["compile_seconds"]
        for name in ("records", "loops", "statements", "lines", "cache", "backend", "compiler"):
            setattr(stats, name, facts[name])
        description = ", ".join(f"{name}: {node.describe()}" for name, node in zip(plan.names, plan.nodes))
        stats.kernels.append(f"({description}) {facts['structure'][:12]}")

    # ---- looking inside -------------------------------------------------------------------------------

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowering:
        """Trace and lower the step for these arguments without building or running it."""
        self._refuse_in_trace("lower")
        while True:
            with contextlib.suppress(Again):
                return self._turn.run(self._lower, args, kwargs)

    def _lower(self, args: Any, kwargs: Any) -> Lowering:
        plan = self._plan(self._bound(args, kwargs))
        slots = ParameterStorage(len(plan.values), plan.precision) if plan.values else None
        started = perf_counter()
        traced = self._trace(plan, slots)
        seconds = perf_counter() - started
        processor = Processor(64 // plan.precision.size)
        lowered = lower(traced.trace, _regions(plan, traced.draws), processor, self._options.code.grads)
        return Lowering(lowered, seconds, self.stats, power_hints(traced.trace), traced.draws.describe())

    # ---- as a method, a copy, a pickle ------------------------------------------------------------------

    def __set_name__(self, owner: Any, name: str) -> None:
        self._attribute = name

    @property
    def _entry(self) -> str:
        """The name under which an instance keeps its own step; no attribute has a blank."""
        return f"{self._attribute} compiled"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        # Every instance has kernels of its own, the same for all threads.  A copy of it has this entry, too.
        own = getattr(instance, "__dict__", _NOTHING)
        method: Any = own.get(self._entry)
        if method is not None and method._function.__self__ is instance:
            return method
        method = type(self)(self._function.__get__(instance, owner), self._options)
        method._attribute = self._attribute
        if own is _NOTHING:
            warnings.warn(
                f"{user_location()}: {self.__name__} is a method of a {type(instance).__name__}, which has no __dict__ "
                "to keep kernels in: every call traces it again. Add '__dict__' to its __slots__.",
                RetraceWarning,
                stacklevel=user_stacklevel(),
            )
            return method
        if self._entry in own:  # of the instance that this one is a copy of
            own[self._entry] = method
        return own.setdefault(self._entry, method)

    def __copy__(self) -> CompiledStep[P, R]:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if inspect.isfunction(self._function):
            return self  # as functions themselves
        make, parts = self._parts()
        return make(*copy.deepcopy(parts, memo))

    def __reduce__(self) -> Any:
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        return self.__qualname__ if found is self or found is None else self._parts()

    def _parts(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """What makes a step like this one of what."""
        instance = getattr(self._function, "__self__", None)
        if isinstance(getattr(type(instance), self._attribute, None), CompiledStep):
            return getattr, (instance, self._attribute)
        return type(self), (self._function, self._options)

    def __repr__(self) -> str:
        return f"<compiled step {self.__qualname__}, {len(self._kernels)} kernels>"


#: What an instance without attributes has.
_NOTHING: dict[str, Any] = {}


def _named(function: Any) -> Any:
    """What gives a step its name: the function itself, or what a partial or an object calls."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if hasattr(function, "__qualname__") else type(function)


def _lengths(arguments: Sequence[Any]) -> Hashable:
    """What tells the members of a family of structures apart most often, and is quick to find."""
    return tuple([len(a) if type(a) in _WITH_LENGTH else type(a) for a in arguments])


#: Arguments of these types, in different lengths, make a family of kernels.
_WITH_LENGTH = frozenset({list, tuple, bytes, bytearray, array})


def _regions(plan: ArgumentPlan, draws: DrawPlan) -> list[InputRegion]:
    form = plan.precision.format
    arguments = [InputRegion(node.place, node.size, node.format) for node in plan.buffers]
    drawn = [InputRegion(plan.input_size, draws.size, form)] if draws.size else []
    return [InputRegion(0, plan.packed_size, form), *arguments, *drawn]
