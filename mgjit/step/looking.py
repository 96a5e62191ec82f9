"""Looking inside a compiled step, and taking it elsewhere: `.lower`, `.report`, `.export`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, Generic, TypeVar

from ..base.tracebacks import with_short_tracebacks

if TYPE_CHECKING:
    import os

    from ..kernels.kernels import Kernels
    from ..report.report import Report
    from ..runtime.turn import Turn
    from .lowering import Lowering

try:
    from typing import ParamSpec
except ImportError:  # before Python 3.10
    from .._typing import ParamSpec  # type: ignore[assignment]

P = ParamSpec("P")
R = TypeVar("R")


class Looking(Generic[P, R]):
    """The methods of a compiled step that do not run it."""

    if TYPE_CHECKING:
        __name__: str
        _kernels: Kernels
        _turn: Turn
        wait: Callable[..., bool]
        _bound: Callable[..., tuple[Any, ...]]
        _refuse_in_trace: Callable[[str], None]
        _with_kernel: Callable[[str, Callable[[], Any]], Any]
    else:
        __slots__ = ()

    @with_short_tracebacks
    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowering:
        """Trace and lower the step for these arguments without building or running it.

        Examples:
            >>> print(mgjit.compile(lambda x, y: x * y + 1.0).lower(2.0, 3.0).graph, end="")
            forward:
                %0 = multiply(x0[0], x0[1])
                %1 = add(%0, 1.0)
                %2 = y[0] = copy(%1)
        """
        from .lowering import lowering_of

        self._refuse_in_trace("lower")
        lowering: Lowering = self._turn.run(
            self._with_kernel, "lower", lambda: lowering_of(self._kernels.maker, self._bound(args, kwargs))
        )
        lowering.paths = self._kernels.describe_paths()
        return lowering

    @with_short_tracebacks
    def export(
        self, directory: Any, name: str | None = None, *, calls: Sequence[Sequence[Any]] | None = None,
        weights: str = "inside",
    ) -> list[Any]:  # fmt: skip
        """Write the step as self-contained C99, with the parameters and state that it has now.

        Args:
            directory: where the files go.
            name: the prefix of all names in C, and the name of the files; by default that of the step.
            calls: arguments of calls, a tuple for each, which the exported program repeats to check itself; by default
                those of the last call. The first one decides the structure of the arguments.
            weights: "inside" the C file, or in a data "file".

        Returns:
            The paths of the files.

        Raises:
            ArgumentError, ArgumentValueError: an argument cannot be one of C, or the name is no C identifier.
            ExportError: a file cannot be written.
            RandomnessError, UnsupportedError: the step draws random numbers, or does something else that C cannot do.
        """
        from ..export.exporter import export_step, listed_calls

        self._refuse_in_trace("export")
        name = self.__name__ if name is None else name
        bound = None if calls is None else [self._bound(call, {}) for call in listed_calls(calls)]
        return self._turn.run(
            self._with_kernel, "export", lambda: export_step(self._kernels, directory, name, bound, weights)
        )

    def report(self, path: str | os.PathLike[str] | None = None) -> Report:
        """What became of the step: the time of each line, its loops, its memory, its passes.

        Waits for code that is being built.  Shown in a notebook, or written to `path` as a page of HTML.
        """
        self._refuse_in_trace("report")
        self.wait()
        from ..report.report import report_of

        return self._turn.run(report_of, self._kernels, self.__name__, path)

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()
