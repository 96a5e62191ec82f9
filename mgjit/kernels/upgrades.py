"""Better code for kernels that run already; it takes the place of theirs between two calls.

1. A kernel whose first code was built quickly gets an `Upgrade`, and `Upgrades` lets another process build the better
   code as soon as that pays.
2. Now and then a call looks whether it is there.
3. The kernel exchanges its code for it; where results are compared, one call is made by both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from ..base import settings
from ..compiler.build.code import Code
from ..compiler.build.families import Kin
from ..compiler.build.options import Options
from ..engine.leaks import PlainCall
from ..ir.trace import InputRegion
from ..runtime.kernel import Kernel
from ..verification.trial import trial
from .building.background import Job, seconds_taken_by, start
from .factory import Maker
from .first_calls.earnings import Earnings
from .first_calls.pending import Prepared, delivered

#: How many quick calls there are between two looks at whether better code is there.
_CALLS_BETWEEN_LOOKS = 16


class Upgrade:
    """Better code for a kernel.

    Args:
        prepared: what the kernel was made of.
        inputs, options: as for `build`.
        delay: how much later the program got on because of the code that is there.

    Attributes:
        job: builds it; None until it is started.
    """

    def __init__(self, prepared: Prepared, inputs: Sequence[InputRegion], options: Options, delay: float) -> None:
        self.prepared, self.delay = prepared, delay
        self.job: Job | None = None
        self._inputs, self._options = inputs, options
        self._left = _CALLS_BETWEEN_LOOKS
        self._started = 0.0

    def start(self, name: str, kin: Kin) -> bool:
        """Start the job, unless that has been done; returns False where there can be none."""
        if self.job is None:
            self.job = start(self.prepared.traced.trace, self._inputs, self._options, name, kin)
            self._started = perf_counter()
        return self.job is not None

    def counting(self, call: Callable[..., Any], general: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, wrapped so that now and then a call takes the general path, which looks for the code."""

        def counted(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left > 0:
                return call(*arguments, **named)
            self._left = _CALLS_BETWEEN_LOOKS
            return general(*arguments, **named)

        return counted

    def code(self, name: str) -> Code | None:
        """The code, when the job has ended; None if the kernel has to do with what it has."""
        assert self.job is not None
        try:
            return delivered(self.job, self.prepared.traced.trace, self._inputs, self._options, name)
        except PlainCall as plain:
            settings.LOGGER.info("there is no better code for %s: %s", name, plain)
            return None

    def told(self) -> str:
        """When the code has come, in words."""
        return f"optimised {perf_counter() - self._started:.1f} s later"


class Upgrades:
    """Gives the kernels of a step better code.

    Args:
        maker: of the kernels.
        earnings: of the step.
    """

    def __init__(self, maker: Maker, earnings: Earnings) -> None:
        self._maker, self._earnings = maker, earnings

    def begin(self, kernel: Kernel, kernels: int) -> None:
        """Let better code for a kernel, which has an upgrade, be built, if it pays.

        Args:
            kernels: how many the step has.
        """
        calls, seconds = self._maker.stats.calls, kernel.seconds_a_call if kernel.timed_calls > 1 else 0.0
        trace_seconds, delay = kernel.upgrade.prepared.processor, kernel.upgrade.delay
        if self._earnings.better_code_pays(calls, kernels or 1, seconds, trace_seconds, delay):
            self._begin_in_any_case(kernel)

    def _begin_in_any_case(self, kernel: Kernel) -> None:
        if not kernel.upgrade.start(self._maker.qualname, self._maker.kin):
            kernel.upgrade = None

    def take(self, kernel: Kernel, kernels: int) -> bool:
        """Give a kernel, which has an upgrade, the better code if that has been built.

        Args:
            kernels: how many the step has.

        Returns:
            Whether it has other code now.
        """
        upgrade = kernel.upgrade
        if upgrade.job is None:
            self.begin(kernel, kernels)
            return False
        if not upgrade.job.has_ended():
            return False
        kernel.upgrade = None
        maker, stats = self._maker, self._maker.stats
        code = upgrade.code(maker.qualname)
        self._earnings.note_spent(kernel.plan.key, seconds_taken_by(upgrade.job.answer))
        is_verified = trial(maker.options, upgrade.prepared.traced.trace, 0.0) is not None
        if code is None or not kernel.replace(code, is_verified, maker.options.code.grads):
            return False
        if kernel.parameters:
            maker.note_kin(upgrade.prepared, kernel.parameters[0], code)
        stats.note_code(code.facts, kernel.plan.outline())
        stats.swaps.append(f"{kernel.plan.outline()}: {upgrade.told()}")
        stats.decide(f"better code: for {stats.swaps[-1]}")
        return True

    def wait(self, kernel: Kernel, kernels: int, seconds: float | None = None) -> bool:
        """Give a kernel the better code, if there is any to come, waiting for it.

        Args:
            kernels: how many the step has.
            seconds: the longest to wait; None for as long as it takes.

        Returns:
            Whether none is to come any more.
        """
        if kernel.upgrade is not None:
            self._begin_in_any_case(kernel)
        if kernel.upgrade is not None:
            if not kernel.upgrade.job.wait(seconds):
                return False
            self.take(kernel, kernels)
        return True
