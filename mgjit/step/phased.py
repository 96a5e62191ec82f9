"""The phases of a compiled step, run one after the other: `.forward`, `.backward`, `.update`.

1. `.forward` finds or makes a kernel whose code consists of the phases (kernels.py).
2. Before the second call of such a kernel, and before a later one, its phases are compared with plain Python
   (verification/phases.py).
3. `.backward` and `.update` run the phase that follows the one before, with the same arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..base.garbage import with_few_collections
from ..base.tracebacks import with_short_tracebacks
from ..errors import PhaseError, UnsupportedError, user_location
from ..runtime.kernel import Kernel
from ..verification.phases import PhasesComparison
from ..verification.trial import compare, warn_of_mismatch
from .looking import Looking, P, R

if TYPE_CHECKING:
    from ..kernels.kernels import Kernels
    from ..runtime.stats import Stats


class Phased(Looking[P, R]):
    """The methods of a compiled step that run its phases."""

    if TYPE_CHECKING:
        _function: Callable[P, R]
        _phase: str
        _pending: Kernel | None
        _calls_before: int

        @property
        def stats(self) -> Stats: ...

        _perform: Callable[[str, Any, Any], Any]
    else:
        __slots__ = ()

    @with_short_tracebacks
    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run only the forward phase: returns the result, and changes no parameter and no gradient.

        A number of the result that only a later phase computes is nan.
        """
        self._refuse_in_trace("forward")
        return self._turn.run(self._with_kernel, "forward", lambda: self._perform("forward", args, kwargs))  # type: ignore[no-any-return]

    @with_short_tracebacks
    def backward(self) -> None:
        """Run only the backward phase, with the arguments of the last `.forward(...)`: sets the gradients."""
        self._continue("backward", "forward")

    @with_short_tracebacks
    def update(self) -> None:
        """Run only the update phase, after `.backward()`."""
        self._continue("update", "backward")

    def _require_forward(self, kernel: Kernel) -> None:
        """Refuse to run a phase of a step whose forward phase would assign numbers."""
        if kernel.forward_assigns:
            raise UnsupportedError(
                f"{user_location()}: {self.__name__} cannot run its forward part alone: it assigns numbers that "
                "are not in mgjit.state, without a backward() by which mgjit could tell the parts apart (see "
                "step.lower(...).explain()). Compile a function that only computes the result."
            )

    def _compare_phases(self, kernels: Kernels, kernel: Kernel, bound: tuple[Any, ...]) -> bool:
        """Compare the phases of a kernel with plain Python, which leaves nothing; returns whether it may be used.

        Args:
            bound: the arguments, one for each parameter of the step.

        Raises:
            Moved: the kernel cannot be used any more; nothing was done.
        """
        verdict = with_few_collections(
            lambda: compare(self._function, kernels.maker.undecorated, kernel, bound, self.stats, PhasesComparison)
        )
        kernel.plan.pack(bound, kernel.frame)
        if verdict.mismatch:
            kernels.distrust(kernel, verdict.mismatch, verdict.parameters)
            warn_of_mismatch(
                f"the kernel for the phases of {self.__name__}", verdict.mismatch, "has no phases any more"
            )
        elif verdict.was_compared:
            kernels.maker.proofs.note(kernel.code)
        return not verdict.mismatch

    def _note_forward(self, kernel: Kernel) -> None:
        """Note that a forward phase has been run, which `.backward` may continue."""
        self._pending, self._calls_before, self._phase = kernel, self.stats.calls, "forward"

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
        self._pending.perform(phase, self.stats.counter if phase == "update" else None)
        self._phase = phase
