"""Compare the phases of a step, which are run separately, with plain Python, which has none.

Before a call of `.forward` that is due to be compared, plain Python makes the whole step, and the kernel makes its
phases, one right after the other, on the same numbers.  Then everything is put back, and `.forward` runs as usual: the
program may do whatever it likes between the phases.
"""

from __future__ import annotations

from typing import Any

from .trial import Comparison


class PhasesComparison(Comparison):
    """A rehearsal of a step, by phases, that is compared and leaves nothing."""

    def _ends_with(self, contents: list[Any]) -> None:
        """Leave what was there before."""

    def _compiled(self) -> Any:
        kernel = self._kernel
        if kernel.needs_accepting:
            kernel.accept(self._arguments)
        for phase in ("forward", "backward", "update"):
            kernel.perform(phase)
        return kernel.result(kernel.outputs, self._arguments)
