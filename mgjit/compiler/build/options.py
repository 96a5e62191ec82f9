"""The options of `mgjit.compile`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ...base import settings
from ...engine.precision import FLOAT64, Precision
from ..toolchain import compilers

#: Scalar operations of a call, for which code that is not optimised takes a tenth of a second.
_MUCH_WORK = 60_000_000


@dataclass(frozen=True)
class Options:
    """Those that change the code.

    Attributes:
        threads: how many of them share the loops of a call.
        separate: whether the code consists of the three phases of the step, which are run separately, or of all of it.
        quick: whether it is to be built quickly, rather than to be fast: without a schedule.
        scheduled: whether quick code has a schedule all the same, as that of steps with much work.
    """

    mode: str = "strict"
    backend: str = "auto"
    compiler: str | None = None
    cache: bool = True
    optimisation: str | None = None
    grads: bool = True
    cache_key: str = ""
    threads: int = 1
    separate: bool = False
    quick: bool = False
    scheduled: bool = False

    def quickly(self, work: int = 0) -> Options | None:
        """Options for code that is there soon, by a compiler that does not optimise; None where there is none.

        Where such code would take long to run, it is that of the best compiler, with small loops and less optimisation.
        Whoever has asked for a certain compiler, or for a mode that depends on it, gets that from the first call on.
        """
        asked = self.compiler or self.optimisation or settings.compiler() or settings.cflags()
        if asked or self.mode != "strict" or self.backend == "python":
            return None
        if work > _MUCH_WORK:
            return replace(self, quick=True, scheduled=True)
        quick = next((one for one in compilers.candidates(None) if not one.kind.optimises), None)
        return None if quick is None else replace(self, compiler=quick.command, quick=True)


@dataclass(frozen=True)
class StepOptions:
    """All of them."""

    code: Options = field(default_factory=Options)
    precision: Precision = FLOAT64
    static: frozenset[str] = frozenset()
    limit: int | None = None
    warn_after: int = 10
    lock: bool = True
    verify: str = "auto"
    background: bool = False
    refuse: str = ""

    @property
    def goes_on(self) -> bool:
        """Whether a call that cannot be compiled is plain Python; mgjit's own steps have no `refuse`, and raise."""
        return bool(self.refuse) and settings.refuse(self.refuse) == "plain"

    @property
    def is_patient(self) -> bool:
        """Whether calls wait for the code of a kernel, instead of being plain Python until it is there."""
        return not settings.background(self.background)
