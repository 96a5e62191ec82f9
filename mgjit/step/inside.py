"""What the packages that are built on steps use of one: ensembles, data parallel steps, reports of scripts.

All that is private of a step stays private: these packages get an `Inside`, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..tracing.call.columns import Column, Columns, SameColumn, read_columns
from ..tracing.call.plan import bind
from .unlocked import UnlockedStep

if TYPE_CHECKING:
    from ..kernels.kernels import Kernels
    from ..runtime.kernel import Kernel
    from ..runtime.stats import Stats
    from .step import CompiledStep

T = TypeVar("T")


class Inside:
    """A compiled step, as those see it that are made of it.

    Attributes:
        step: what `stats`, names and calls are asked of; that of this thread, if there is one for each.
        function: what was compiled.
    """

    __slots__ = ("function", "step")

    def __init__(self, step: CompiledStep[..., Any], user: str) -> None:
        """Look into a step.

        Args:
            user: what is being made of it.

        Raises:
            PhaseError: another step is being traced.
        """
        step._refuse_in_trace(user)
        self.step: CompiledStep[..., Any] = step._mine() if isinstance(step, UnlockedStep) else step
        self.function: Callable[..., Any] = self.step._function

    @property
    def kernels(self) -> Kernels:
        """The kernels of whole calls."""
        return self.step._kernels

    @property
    def stats(self) -> Stats:
        """What it has done so far."""
        return self.step.stats

    @property
    def name(self) -> str:
        """That of the step."""
        return self.step.__name__

    @property
    def parameters(self) -> list[str]:
        """The names of the function's parameters."""
        return list(self.step._signature.parameters)

    # ---- running something in place of a call ------------------------------------------------------------

    def run(self, user: str, work: Callable[..., T], *arguments: Any) -> T:
        """Return `work(*arguments)`, which stands for a call: no other thread calls the step meanwhile.

        Raises:
            PhaseError: a step is being traced.
        """
        self.step._refuse_in_trace(user)
        return self.in_turn(work, *arguments)

    def in_turn(self, work: Callable[..., T], *arguments: Any) -> T:
        """Return `work(*arguments)`; no other thread calls the step meanwhile."""
        return self.step._turn.run(work, *arguments)

    def forget_phase(self) -> None:
        """Let no `.backward()` or `.update()` follow a `.forward()` that was called before."""
        self.step._phase = ""

    def run_row(self, row: Sequence[Any]) -> Any:
        """Run one row of `.loop` by itself."""
        return self.step._run_row(row, lambda count: None)

    def no_rows(self) -> Any:
        """What `.loop` returns for columns without rows."""
        return self.step._no_rows()

    # ---- arguments ---------------------------------------------------------------------------------------

    def arguments(self, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call by position, with defaults."""
        step = self.step
        return given if not named and len(given) == step._arity else step._bound(given, named)

    def bound_columns(self, given: Sequence[Any], named: Mapping[str, Any]) -> Mapping[str, Any]:
        """The columns of `.loop` by the names of parameters."""
        return bind(self.step._signature, given, named, ".loop").arguments

    def columns(self, given: Sequence[Any], named: Mapping[str, Any]) -> Columns:
        """What `.loop` of the step makes of columns."""
        return read_columns(self.step._signature, given, named, self.step._options.static)

    def one_row(self, arguments: Sequence[Any]) -> Columns:
        """A call as the columns of a single row."""
        columns: list[Column] = [SameColumn(argument) for argument in arguments]
        return Columns(self.parameters, columns, 1, self.step._options.static)

    # ---- phases ------------------------------------------------------------------------------------------

    @property
    def phases(self) -> Kernels:
        """The kernels that run forward, backward and update apart."""
        return self.step._kernels.separate

    def fitting_phases(self, user: str, arguments: tuple[Any, ...]) -> Kernel:
        """The kernel of phases for a call.

        Raises:
            UnsupportedError: with these arguments the step runs as plain Python.
        """
        return self.step._with_kernel(user, lambda: self.phases.fitting(arguments, patient=True))  # type: ignore[no-any-return]

    def are_as_plain(self, kernel: Kernel, arguments: tuple[Any, ...]) -> bool:
        """Whether phases compute what plain Python does; if not, the kernel is not used any more."""
        return self.step._compare_phases(self.phases, kernel, arguments)
