"""Steps that threads may run at once: `@mgjit.compile(lock=False)`.

Each thread has its own compiled step, with its own inputs, outputs and scratch memory.  Parameters live where the
first of these steps has put them, and machine code is shared, as between all kernels of equal structure.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.tracebacks import unseen
from ..runtime.stats import Stats
from .step import CompiledStep

if TYPE_CHECKING:
    import os

    from ..report.report import Report
    from .lowering import Lowering

try:
    from typing import ParamSpec
except ImportError:  # before Python 3.10
    from .._typing import ParamSpec  # type: ignore[assignment]

P = ParamSpec("P")
R = TypeVar("R")


class UnlockedStep(CompiledStep[P, R]):
    """A step that several threads may run at once: each thread has its own step, over the same parameters."""

    if not TYPE_CHECKING:
        __slots__ = ()

    def _clear(self) -> None:
        self._of_threads = threading.local()
        self._outer = unseen(self._call)
        setattr(self, "__call__", self._outer)  # noqa: B010 - a method, as far as type checkers know

    def _mine(self) -> CompiledStep[P, R]:
        """The step of this thread."""
        mine: Any = getattr(self._of_threads, "step", None)
        if mine is None:
            mine = self._of_threads.step = CompiledStep(self._function, self._options)
        return mine  # type: ignore[no-any-return]

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        return self._mine()(*args, **kwargs)

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._mine().forward(*args, **kwargs)

    def backward(self) -> None:
        self._mine().backward()

    def update(self) -> None:
        self._mine().update()

    def loop(self, *columns: Any, progress: bool = False, threads: int | None = 1, **named: Any) -> Any:
        return self._mine().loop(*columns, progress=progress, threads=threads, **named)

    def wait(self, seconds: float | None = None) -> bool:
        return self._mine().wait(seconds)

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowering:
        return self._mine().lower(*args, **kwargs)

    def report(self, path: str | os.PathLike[str] | None = None) -> Report:
        return self._mine().report(path)

    def export(
        self, directory: Any, name: str | None = None, *, calls: Sequence[Sequence[Any]] | None = None,
        weights: str = "inside",
    ) -> list[Any]:  # fmt: skip
        return self._mine().export(directory, name, calls=calls, weights=weights)

    @property
    def stats(self) -> Stats:
        """The stats of this thread's step."""
        return self._mine().stats

    def __repr__(self) -> str:
        return f"<compiled step {self.__qualname__}, without a lock>"
