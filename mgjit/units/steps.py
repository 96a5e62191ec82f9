"""The two steps of a function that is compiled by itself: its number, and the flow of a gradient through its graph.

1. They read numbers of parameters and arguments, and the second one adds to gradients of parameters.  A trace that does
   anything else, or writes text, makes no kernel: plain Python would do it once, and the steps both do it.
2. A call without a kernel returns NOTHING; whoever calls then runs the function itself, and notes how long that took.
3. The lengths of samples come again, in other combinations, so lengths are traced sooner than those of other steps.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..background import go_on
from ..kernels import Kernels
from ..making import Maker
from ..options import StepOptions
from ..pending import Prepared, TooMany, Waiting
from ..record import opcodes as ops
from ..record.leaks import PlainCall
from ..runtime.detached import attach_all
from ..script.step import NOTHING, silently
from ..stats import Stats
from ..step import CompiledStep
from ..trace.tracer import TracedCall
from .graph import Memory

__all__ = ["NOTHING", "UnitStep"]

#: Traces may take as long as plain calls, and a length is traced when its plain calls have taken so much of the time of
#: a trace.
_SHARE, _PATIENCE = 1.0, 0.1


class UnitMaker(Maker):
    """Makes the kernels of one of the two steps.

    Attributes:
        assigns_gradients: whether it is the second one.
    """

    assigns_gradients = False

    def prepared(self, *arguments: Any) -> Prepared:
        made: Prepared = silently(lambda: super(UnitMaker, self).prepared(*arguments))
        reason = _impurity(made.traced, self.assigns_gradients)
        if reason:
            raise PlainCall(f"{self.qualname} {reason}")
        return made


def _impurity(traced: TracedCall, assigns_gradients: bool) -> str:
    """What a trace does that a function compiled by itself must not do; empty if that is nothing."""
    trace = traced.trace
    if traced.draws.size:
        return "draws random numbers"
    if trace.states or traced.heap.copied or trace.nests or traced.writes:
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


class UnitStep(CompiledStep[Any, Any]):
    """One of the two steps: a call that has no kernel returns NOTHING."""

    __slots__ = ()

    def __init__(self, function: Any, options: StepOptions, assigns_gradients: bool) -> None:
        self._assigns_gradients = assigns_gradients
        super().__init__(function, options)

    def _new_kernels(self) -> Kernels:
        maker = UnitMaker(self._function, self._signature, self._options, self.__qualname__, Stats())
        maker.assigns_gradients = self._assigns_gradients
        kernels = Kernels(maker, self.__name__)
        kernels.earnings.share, kernels.earnings.patience = _SHARE, _PATIENCE
        return kernels

    def _call(self, *arguments: Any, **named: Any) -> Any:
        attach_all()
        member = self._kernels.member(arguments)
        if member is not None and member is not self._chosen and member.fast_calls:
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

    def note_plain(self, key: Hashable, seconds: float) -> None:
        """Note that a call without a kernel has taken so long in plain Python."""
        self.stats.waiting_calls += 1
        self._kernels.earnings.note_plain(key, seconds)
        go_on()

    def holds(self, arguments: Sequence[Any]) -> bool:
        """Whether there is a kernel for these arguments, and all is as it was when it was traced (world/guard.py)."""
        member = self._kernels.member(arguments)
        return member is not None and not member.guard.difference()

    def memory(self) -> Memory:
        """The parameters that kernels read, as they are now."""
        storages = {id(storage): storage for kernel in self._kernels.all() for storage in kernel.parameters}
        return Memory(list(storages.values()))

    def look_at_everything(self) -> None:
        """Let each kernel compare all that it has captured with what is there now, before its next call."""
        self._kernels.look_at_everything()
