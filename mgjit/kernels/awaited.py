"""The kernels of a step whose code another process is building.

1. `begin` asks for the code of a trace.  What exists already is there at once; all else is built in the background,
   and calls are plain Python meanwhile.
2. `collect`, at each later call of that structure, looks whether the code is there, and whether the trace still holds.
3. Once it is time to begin with compiled calls, the kernel is bound and put among the others.  Where its code was
   built quickly, better code is begun.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from time import perf_counter, thread_time

from ..engine.leaks import PlainCall
from ..ir.trace import InputRegion
from ..runtime.detached import attach_numbers
from ..runtime.kernel import Kernel
from .building.background import Job, seconds_taken_by
from .factory import Maker
from .first_calls.earnings import Earnings, Waiting
from .first_calls.pending import Found, Pending, Prepared
from .first_calls.plain import PlainCalls
from .upgrades import Upgrade, Upgrades


class Awaited:
    """The traces of a step that wait for their code, by the keys that their kernels will have.

    Args:
        maker: of the kernels.
        earnings, plain, upgrades: of the step.
        kernels: says how many kernels the step has by now.
        put: puts a kernel among the others, under its key.
    """

    def __init__(
        self,
        maker: Maker,
        earnings: Earnings,
        plain: PlainCalls,
        upgrades: Upgrades,
        kernels: Callable[[], int],
        put: Callable[[Hashable, Kernel], None],
    ) -> None:
        self._maker, self._earnings, self._plain, self._upgrades = maker, earnings, plain, upgrades
        self._kernels, self._put = kernels, put
        self._pending: dict[Hashable, Pending] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._pending)

    def pending(self) -> list[Pending]:
        """The traces."""
        return list(self._pending.values())

    def are_building(self) -> bool:
        """Whether the code of one of them is not there yet."""
        return any(not pending.job.has_ended() for pending in self._pending.values())

    def begin(self, key: Hashable, prepared: Prepared, inputs: Sequence[InputRegion]) -> Kernel | None:
        """The kernel of a trace, if its code exists already; None if the code is to be built by this process.

        Raises:
            Waiting: its code is being built.
        """
        traced = prepared.traced
        if traced.heap.valid_once:
            raise Waiting(key)
        self._earnings.note_least(prepared.least_seconds())
        started = thread_time()
        found = self._maker.found_or_started(traced.trace, inputs, may_share=not traced.told)
        self._earnings.note_spent(key, thread_time() - started)
        if found is None:
            return None
        pending = Pending(prepared, inputs, *found, perf_counter(), key)
        self._pending[key] = pending
        is_there = isinstance(pending.job, Found) or pending.comes_first(self._earnings.measured(key))
        if not (is_there and self._is_time()):
            traced.effects.forget()  # the plain call has its own
            raise Waiting(key)
        return self._bound(pending)

    def collect(self, key: Hashable, patient: bool, require: Callable[[Pending], None]) -> tuple[str, bool] | None:
        """If a kernel with this key is awaited, put it among the others once its code is there.

        Args:
            patient: whether to wait for the code.
            require: raises what keeps the kernel from being used for this call.

        Returns:
            What has changed meanwhile, so that its trace has been in vain, and whether the next one knows more.

        Raises:
            Waiting: it is not there yet.
        """
        pending = self._pending.get(key)
        if pending is None:
            return None
        attach_numbers()
        if pending.is_outdated():
            pending = self._begun_anew(pending)
            if pending is None:
                return None
        if patient:
            pending.job.wait()
        pending.calls += 1
        has_ended = pending.comes_first(self._earnings.measured(key)) or pending.job.has_ended()
        require(pending)
        guard = pending.prepared.guard
        if has_ended:
            guard.look_at_everything()
        difference = guard.difference()
        if difference:
            changed, variable = guard.changed_numbers(), self._maker.knowledge.variable
            is_new = not variable.issuperset(changed)
            variable.update(changed)
            del self._pending[key]
            pending.job.cancel()
            return difference, is_new
        if has_ended and (patient or self._is_time()):
            self._take(pending)
            return None
        raise Waiting(key)

    def _begun_anew(self, pending: Pending) -> Pending | None:
        """A trace whose memory has moved, waiting for the code that it needs now; None if it has to be made again."""
        prepared = pending.prepared
        pending.job.cancel()
        del self._pending[pending.key]
        trace = pending.as_of_now()
        may_share = not prepared.traced.told
        found = None if trace is None else self._maker.found_or_started(trace, pending.inputs, may_share)
        if trace is None or found is None:
            return None
        prepared.traced.trace = trace
        anew = Pending(prepared, pending.inputs, *found, pending.started, pending.key, pending.calls)
        self._pending[pending.key] = anew
        return anew

    def _is_time(self) -> bool:
        """Whether to begin with the kernels whose code is there."""
        ready = {key: pending for key, pending in self._pending.items() if pending.job.has_ended()}
        parameters = max((len(pending.prepared.traced.trace.new_parameters) for pending in ready.values()), default=0)
        return self._kernels() > 0 or self._earnings.are_worth_it(ready, parameters)

    def _take(self, pending: Pending) -> None:
        """Put the kernel of a trace whose code is there among the others."""
        try:
            kernel = self._bound(pending)
        except PlainCall as plain:
            self._plain.note_trace(pending.key, plain)
            raise
        self._put(pending.key, kernel)

    def _bound(self, pending: Pending) -> Kernel:
        """The kernel of a trace whose code is there; better code is begun, if there is any."""
        prepared = pending.prepared
        del self._pending[pending.key]
        kernel = self._maker.bound(pending.code(self._maker.qualname), prepared)
        delay = seconds_taken_by(pending.job.answer)
        self._earnings.note_spent(pending.key, delay)
        if isinstance(pending.job, Job):
            self._maker.stats.swaps.append(f"{prepared.plan.outline()}: {pending.told()}")
            self._maker.stats.decide(f"code: for {self._maker.stats.swaps[-1]}")
        if pending.options.quick:
            kernel.upgrade = Upgrade(prepared, pending.inputs, self._maker.options.code, delay)
            self._upgrades.begin(kernel, self._kernels())
        return kernel

    def note_calls(self, calls: int) -> None:
        """Note plain calls that were made without a look at the code."""
        for pending in self._pending.values():
            pending.calls += calls

    def describe(self, waiting: Waiting) -> str:
        """Why a call waits for its kernel."""
        pending = self._pending.get(waiting.key)
        return waiting.why if pending is None else pending.describe()

    def wait(self, end: float | None) -> bool:
        """Wait until all of them are kernels, or until `end` of `perf_counter`; returns whether they are."""
        for pending in self.pending():
            if not pending.job.wait(None if end is None else max(0.0, end - perf_counter())):
                return False
            with contextlib.suppress(PlainCall):
                self._take(pending)
        return True

    def give_up(self) -> None:
        """Give up all that is being built."""
        for pending in self._pending.values():
            pending.job.cancel()
        self._pending = {}
