"""The two steps of a function that is compiled by itself: its number, and the flow of a gradient through its graph.

1. They read numbers of parameters and arguments, and the second one adds to gradients of parameters.  A trace that does
   anything else, or writes text, makes no kernel: plain Python would do it once, and the steps both do it.
2. A call without a kernel returns NOTHING; whoever calls then runs the function itself, and notes how long that took.
   The first kernel moves the parameters as soon as it is there.  Until then there is one trace: what others had waited
   for would be of no use.
3. The lengths of samples come again, in other combinations, so lengths are traced sooner than those of other steps.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from ..compiler.build.code import Code
from ..compiler.build.families import Alone, kept
from ..compiler.build.options import StepOptions
from ..engine.leaks import PlainCall
from ..ir import opcodes as ops
from ..ir.trace import Trace
from ..kernels.building.background import go_on
from ..kernels.factory import Maker
from ..kernels.first_calls.earnings import SECONDS_TO_DETACH, TooMany, Waiting
from ..kernels.first_calls.pending import Prepared
from ..kernels.kernels import Kernels
from ..memory.buffers import Moved
from ..runtime.detached import Detached, are_detached, attach_all, may_detach
from ..runtime.kernel import Kernel
from ..runtime.stats import Stats
from ..tracing.call.plan import ArgumentPlan
from ..tracing.source.effects import without_effects
from ..tracing.tracer.knowledge import Again
from ..tracing.tracer.tracer import TracedCall
from .step import CompiledStep
from .unit_graph import Memory

#: Stands for the result of a call without a kernel.
NOTHING = object()

#: Traces may take as long as plain calls, and a length is traced when its plain calls have taken so much of the time of
#: a trace; more, if that takes more than a part of so many calls, because then it is rare.
_SHARE, _PATIENCE, _HORIZON = 1.0, 0.1, 400


class UnitMaker(Maker):
    """Makes the kernels of one of the two steps.

    Attributes:
        assigns_gradients: whether it is the second one.
        traces: from which kernels were made, by structure.
    """

    assigns_gradients = has_paths = False

    def __init__(self, *of_the_step: Any) -> None:
        super().__init__(*of_the_step)
        self.traces: dict[Hashable, Alone] = {}

    def bound(self, code: Code, prepared: Prepared) -> Kernel:
        kernel = super().bound(code, prepared)
        if kernel.parameters:
            self.traces[prepared.plan.key] = kept(prepared.traced.trace, (), kernel.parameters[0])
        return kernel

    def prepared(self, *arguments: Any) -> Prepared:
        made: Prepared = without_effects(lambda: super(UnitMaker, self).prepared(*arguments))
        reason = _impurity(made.traced, self.assigns_gradients)
        if reason:
            raise PlainCall(f"{self.qualname} {reason}")
        return made


def _impurity(traced: TracedCall, assigns_gradients: bool) -> str:
    """What a trace does that a function compiled by itself must not do; empty if that is nothing."""
    trace = traced.trace
    if traced.draws.size:
        return "draws random numbers"
    if trace.states or traced.heap.copies or trace.nests or traced.writes:
        return "reads or changes numbers that are no parameters"
    targets = {ops.leaf_kind(a) for code, a in zip(trace.op, trace.a) if code == ops.STORE}
    allowed = {ops.OUTPUT, ops.LOCAL, ops.LOCAL_GRADIENT} | ({ops.GRADIENT} if assigns_gradients else set())
    if not targets <= allowed or any(code >= ops.PUT for code in trace.op):
        return "assigns numbers"
    read = {
        ops.leaf_kind(operand)
        for column in (trace.a, trace.b, trace.c or ())
        for operand in set(column)
        if operand < -1
    }
    if not assigns_gradients and (ops.GRADIENT in read or ops.BACKWARD in trace.op):
        return "uses gradients"
    return ""


def _are_the_same(one: Trace, other: Trace) -> bool:
    """Whether two traces, of parameters in the memory of kernels, are the same to the bits of their constants."""
    bits = [array("d", trace.constants).tobytes() for trace in (one, other)]
    return bits[0] == bits[1] and replace(one, constants=[]) == replace(other, constants=[])


class UnitKernels(Kernels):
    """The kernels of one of the two steps."""

    def _make(self, plan: ArgumentPlan, arguments: Sequence[Any], reason: str, patient: bool, *path: Any) -> Kernel:
        if self._awaited and not (self._kernels or patient):
            raise Waiting(plan.key)
        return super()._make(plan, arguments, reason, patient, *path)


class UnitStep(CompiledStep[Any, Any]):
    """One of the two steps: a call that has no kernel returns NOTHING."""

    __slots__ = ()
    _is_weighed = False

    def __init__(self, function: Any, options: StepOptions, assigns_gradients: bool, token: object) -> None:
        self._assigns_gradients, self._token = assigns_gradients, token
        self._moved = Detached([])
        super().__init__(function, options)

    def _new_kernels(self) -> UnitKernels:
        maker = UnitMaker(self._function, self._signature, self._options, self.__qualname__, Stats())
        maker.assigns_gradients, maker.token = self._assigns_gradients, self._token
        kernels = UnitKernels(maker, self.__name__)
        earnings = kernels.earnings
        earnings.share, earnings.part, earnings.patience, earnings.horizon = _SHARE, 1.0, _PATIENCE, _HORIZON
        earnings.begins_at_once = True
        return kernels

    def _call(self, *arguments: Any, **named: Any) -> Any:
        attach_all()
        member = self._kernels.member(arguments)
        if member is not None and member is not self._chosen and member.fast_calls and not are_detached():
            return self._choose_call(member)(*arguments)
        try:
            return self._turn.run(self._perform, "step", arguments, {})
        except PlainCall:
            return NOTHING

    def missing(self, arguments: Sequence[Any]) -> Hashable:
        """None if there is a kernel for these arguments; otherwise the key of their structure."""
        attach_all()
        if self.holds(arguments):
            return None
        try:
            self._turn.run(self._kernels.fitting, arguments)
        except (Waiting, TooMany) as waiting:
            return waiting.key
        return None

    def is_settled(self) -> bool:
        """Whether there are kernels; the parameters lie in their memory then."""
        for kernel in self._kernels.all():
            if kernel.move is not None:
                try:
                    kernel.transaction(lambda: None, lambda: 1, lambda: None)  # moves the parameters, and no more
                    self._moved = Detached([*self._moved, *kernel.moved])
                except Moved:
                    self._kernels.forget(kernel)
        return bool(self._kernels)

    def note_plain(self, key: Hashable, seconds: float) -> None:
        """Note that a call without a kernel has taken so long in plain Python."""
        self.stats.waiting_calls += 1
        self._kernels.earnings.note_plain(key, seconds)
        go_on()

    def holds(self, arguments: Sequence[Any]) -> bool:
        """Whether there is a kernel for these arguments, and all is as when it was traced (surroundings/guard.py)."""
        member = self._kernels.member(arguments)
        return member is not None and not member.guard.difference()

    def release(self) -> Detached | None:
        """Make the parameters ordinary objects until a step is called, if that makes plain Python quicker."""
        moved, storages = self._moved, (storage for kernel in self._kernels.all() for storage in kernel.parameters)
        is_quicker = self._kernels.earnings.plain_seconds() > SECONDS_TO_DETACH * len(moved)
        if not is_quicker or not may_detach() or any(storage.is_shared for storage in storages):
            return None
        moved.until_attached()
        return moved

    def traces_the_same(self, arguments: Sequence[Any]) -> bool:
        """Whether a trace is what it was when the kernel for these arguments was made, whatever has changed since."""
        maker, member = self._kernels.maker, self._kernels.member(arguments)
        assert isinstance(maker, UnitMaker)
        if member is None or member.plan.key not in maker.traces:
            return False
        try:
            now = self._turn.run(maker.prepared, member.plan, "", False)
        except (Again, PlainCall):
            return False
        return _are_the_same(now.traced.trace, maker.traces[member.plan.key].bound())

    def memory(self) -> Memory:
        """The parameters that kernels read, as they are now."""
        storages = {id(storage): storage for kernel in self._kernels.all() for storage in kernel.parameters}
        return Memory(list(storages.values()))

    def look_at_everything(self) -> None:
        """Let each kernel compare all that it has captured with what is there now, before its next call."""
        self._kernels.look_at_everything()
