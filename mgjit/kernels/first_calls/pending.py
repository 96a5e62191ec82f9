"""Kernels whose code another process is building.

Until a kernel is there, calls are plain Python, which has the same numbers.  So a step is never much slower than the
Python that it replaces:

1. A structure of arguments is traced when it has earned that (`earnings.py`).
2. Code that exists already, in this process or in the disk cache, is used at once.  Otherwise it is built in the
   background (`background.py`), and the trace waits for it (`Pending`).  There are two tiers, where there is a compiler
   that does not optimise: code without a schedule, which takes a tenth of the time, and when that runs, better code,
   which takes its place between two calls (`Upgrade`).  Where it is known how many calls are to come, or there is a
   single processor, better code is built when it is expected to save what it costs.  Steps with much work, such as
   those over large tensors, begin with scheduled code as well, of small loops and with less optimisation.
3. A kernel keeps the numbers of parameters in its own memory, which makes plain calls slower.  From the first one on,
   plain calls that take long enough detach the parameters (`Kernels.detached`), until a kernel is called.  Other traces
   that waited for their code then know the parameters by their place in that memory, and wait for other code
   (`is_outdated`).
4. A trace that holds for one call only is not built.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from operator import is_not
from time import perf_counter
from typing import Any

from ...base import settings
from ...compiler.build.build import build, find, keep, take_entries
from ...compiler.build.code import Code
from ...compiler.build.options import Options
from ...engine.leaks import PlainCall
from ...errors import user_stacklevel
from ...ir.opcodes import PARAMETER, leaf
from ...ir.trace import BOUND_BASE, InputRegion, Trace
from ...memory.buffers import ParameterStorage, home_of
from ...tracing.call.plan import ArgumentPlan
from ...tracing.surroundings.guard import Guard
from ...tracing.tracer.tracer import TracedCall
from ...verification.trial import plain_seconds
from ..building.background import Answer, Job

#: Calls wait for a kernel where a plain call takes longer than so many seconds, all of them together for as long as
#: one plain call has been measured to take, or takes at least: no longer than what there is to gain.
_LONG = 1.0
#: What plain Python takes at least for a record of a block, which is an operation on Values: seconds.
_LEAST_OF_RECORD = 0.02e-6 if sys.implementation.name == "pypy" else 0.2e-6
#: Operations on tensors that a plain call would have to compile first: it waits for so many seconds at most, about what
#: their first code takes, and only where to compile them is expected to take longer than the second number.
_WAIT_OF_TENSORS, _LONG_OF_TENSORS = 1.0, 0.3


class Found:
    """Stands for a job where the code existed already."""

    structure = ""

    def __init__(self, code: Code) -> None:
        self.answer = Answer(code.facts)

    def has_ended(self) -> bool:
        """It has."""
        return True

    def wait(self, seconds: float | None = None) -> bool:
        """As of a job."""
        return True

    def cancel(self) -> None:
        """There is nothing to give up."""


@dataclass(frozen=True)
class Prepared:
    """What a kernel is made of, besides code.

    Attributes:
        plan, traced, guard, slots: of the call that was traced.
        seconds: how long the trace took. processor: the part in which this thread ran.
        reason: why it was made.
    """

    plan: ArgumentPlan
    traced: TracedCall
    guard: Guard
    slots: ParameterStorage | None
    seconds: float
    processor: float
    reason: str

    def plain_seconds(self) -> float:
        """An estimate of how long a plain call takes."""
        trace = self.traced.trace
        return plain_seconds(self.seconds, len(trace), trace.in_blocks(), trace.work_in_nests())

    def least_seconds(self) -> float:
        """What a plain call takes at least, on any machine; 0.0 where the trace does not tell.

        A trace of blocks takes next to no time, and the call that it stands for may take a minute.
        """
        return _LEAST_OF_RECORD * self.traced.trace.in_blocks()

    def seconds_to_compile(self) -> float:
        """An estimate of how long a plain call now would take to compile what operations on tensors need."""
        nests = self.traced.trace.nests
        if not nests:
            return 0.0
        from ...tensor.eager import seconds_to_compile

        return seconds_to_compile(nests)


@dataclass
class Pending:
    """A trace that waits for its code.

    Attributes:
        prepared: what the kernel will be made of.
        inputs: the regions of its inputs.
        options: of the code that it waits for.
        job: builds the code.
        started: when it was started, by `perf_counter`.
        key: under which it waits.
        calls: plain calls since then.
        waited: seconds that calls have waited for it.
        buffers: the memory of its states when it was made.
    """

    prepared: Prepared
    inputs: Sequence[InputRegion]
    options: Options
    job: Job | Found
    started: float
    key: Hashable
    calls: int = 0
    waited: float = 0.0
    buffers: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.buffers = self._buffers()

    def _buffers(self) -> list[Any]:
        return [state._buffer for _, state in self.prepared.traced.trace.states]

    def is_outdated(self) -> bool:
        """Whether another kernel has moved its parameters or states since: code for it would move them once more."""
        new = self.prepared.traced.trace.new_parameters
        return (bool(new) and home_of(new[0][1])[0] is not None) or any(map(is_not, self._buffers(), self.buffers))

    def as_of_now(self) -> Trace | None:
        """The trace as it would be made now; None if that takes another one."""
        trace = self.prepared.traced.trace
        return _in_storage(trace) if trace.new_parameters else trace

    def comes_first(self, measured: float) -> bool:
        """Whether the job ends before a plain call would that takes long; waits for that.

        Args:
            measured: seconds that a plain call has been measured to take; 0.0 if none has been.
        """
        known = measured or self.prepared.least_seconds()
        allowed = known if known > _LONG else 0.0
        if not measured and self.prepared.seconds_to_compile() > _LONG_OF_TENSORS:
            allowed = _WAIT_OF_TENSORS
        if self.waited >= allowed:
            return False
        started = perf_counter()
        has_ended = self.job.wait(allowed - self.waited)
        self.waited += perf_counter() - started
        return has_ended

    def code(self, name: str) -> Code:
        """The code, when the job has ended.

        Raises:
            PlainCall: there is none, and the step is plain Python for good.
        """
        return delivered(self.job, self.prepared.traced.trace, self.inputs, self.options, name)

    def describe(self) -> str:
        """What is waited for, in words; as of the last look at the job, since a look may start it."""
        if self.job.answer is not None:
            return "its kernel is there, and other structures of arguments, which come more often, have none yet"
        return "its kernel is being built"

    def told(self) -> str:
        """When the kernel has come, in words."""
        return f"compiled after {self.calls} plain calls, {perf_counter() - self.started:.1f} s after its trace"


def _in_storage(trace: Trace) -> Trace | None:
    """A trace whose new parameters have been moved into one storage; None if they do not follow one another there."""
    (first, _), homes = trace.new_parameters[0], [home_of(thing) for _, thing in trace.new_parameters]
    storage, number = homes[0]
    wanted = [(storage, number + index - first) for index, _ in trace.new_parameters]
    if storage is None or homes != wanted or trace.bound_storages or trace.nests:
        return None
    moved = trace.shifted(leaf(PARAMETER, BOUND_BASE + number) - leaf(PARAMETER, first))
    return replace(moved, new_parameters=[], bound_storages=[(BOUND_BASE, storage)])


def delivered(job: Job | Found, trace: Trace, inputs: Sequence[InputRegion], options: Options, name: str) -> Code:
    """The code of a job that has ended.

    Raises:
        PlainCall: there is none, and the step is plain Python for good.
    """
    answer = job.answer
    assert answer is not None
    for category, text in answer.warnings:
        warnings.warn(text, category, stacklevel=user_stacklevel())
    if answer.plain:
        raise PlainCall(answer.plain)
    if answer.failure:
        settings.LOGGER.info("%s is built here, because %s", name, answer.failure)
    if answer.python is not None:
        keep(job.structure, options, Code.of_metadata(answer.python[0], None, answer.python[1]))
    take_entries(options, answer.entries)
    # The first kernel has moved parameters and states since its better code was asked for, which makes no difference.
    code = None if answer.failure else find(trace, inputs, options, job.structure)
    code = code or build(trace, inputs, options, name)
    for fact in ("lower_seconds", "compile_seconds", "cache"):
        code.facts[fact] = answer.facts.get(fact, code.facts[fact])
    return code
