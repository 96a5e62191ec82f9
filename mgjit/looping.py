"""`.loop` of a compiled step: many calls in one.

1. The arguments become a table, whose columns are checked (call/columns.py).  Its first row chooses the kernel.
2. All rows are packed by the plan of that kernel (call/rows.py).  Rows of several lengths, or rows that may change
   what the kernel knows, are calls of their own, or turns of several kernels (runtime/turns.py).
3. Of a kernel that is still compared with plain Python, the first rows are calls of their own.
4. The other rows run in C, in one thread (runtime/loop.py) or in several (parallel/rows.py).
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable

from . import settings
from .call.columns import Columns, bound_arguments, read_columns
from .call.results import collect_results
from .call.rows import Rows, pack_rows
from .looking import Looking, P, R
from .parallel.pool import checked_threads
from .plain import as_part
from .record.leaks import PlainCall
from .runtime.buffers import Moved
from .runtime.detached import attach_all
from .runtime.kernel import Kernel
from .runtime.loop import reporting, run_rows
from .runtime.turns import run_in_turn
from .tracebacks import with_short_tracebacks

if TYPE_CHECKING:
    from inspect import Signature

    from .options import StepOptions
    from .stats import Stats


class Looping(Looking[P, R]):
    """The methods of a compiled step that run many rows."""

    if TYPE_CHECKING:
        _options: StepOptions
        _signature: Signature
        _phase: str

        @property
        def stats(self) -> Stats: ...

        _call_plain: Callable[..., Any]
        _forget_call: Callable[[], None]
        _perform: Callable[[str, Any, Any], Any]
    else:
        __slots__ = ()

    @with_short_tracebacks
    def loop(self, *columns: Any, progress: bool = False, threads: int | None = 1, **named: Any) -> Any:
        """Run many steps in one call into C: `losses = step.loop(images, labels, 0.01)`.

        A list, tuple, range, bytes, array, memoryview, numpy array or other sequence is a column: item k is what
        call k would get.  Everything else (a number, a Value, a dict), defaults, and arguments that `static=` names are
        the same for every step.  All columns must have the same length, and all rows are checked before the first step
        runs.  Rows of a buffer of two or more dimensions are not copied.  Rows of several lengths, such as sentences,
        are one call into C as well, once each length has a kernel; indices are then checked before such a call.

        Other Python threads run meanwhile.  Ctrl-C ends the loop within 0.2 s (or one step); with compiled code
        the parameters then hold the state after a whole number of steps, which `.stats.calls` counts.

        Args:
            columns, named: the arguments, by position or name.  progress: whether to show a progress bar.
            threads: how many run rows at the same time; None: one for each processor.  For steps that write nothing.

        Returns:
            The result of a step, with an `array('d')`, one element per step, in place of each number.  Parts that are
            no numbers are those of one step.  Without rows: empty arrays, in the structure of
            the last call where there was one.

        Raises:
            ColumnError: the columns differ in length, or a row in structure from row 0, other than in lengths.
            IndexRangeError: a run-time index of some row is out of range.
            SharedWriteError: the step writes something, and there are several threads.
        """
        self._refuse_in_trace("loop")
        return self._turn.run(self._loop, columns, named, progress, checked_threads(threads))

    def _loop(self, columns: Sequence[Any], named: dict[str, Any], progress: bool, threads: int) -> Any:
        self._phase = ""
        table = read_columns(self._signature, columns, named, self._options.static)
        if self._kernels.last is None and settings.disabled():
            undecorated = self._kernels.maker.undecorated
            plain = functools.partial(as_part, self._options.precision)
            return collect_results(plain(functools.partial(undecorated, row)) for row in table.rows())
        if not table.length:
            return self._no_rows()
        while True:
            packed = self._packed(table, threads)
            with reporting(table.length, self.__name__, progress) as report:
                if packed is None:
                    one = functools.partial(self._run_row, report=report)
                    return collect_results(
                        run_in_turn([*table.rows()], self._kernels.known, one, report, self.stats.counter)
                    )
                kernel, rows = packed
                try:
                    return self._run_rows(kernel, rows, table, threads, report)
                except Moved:
                    self._kernels.forget(kernel)

    def _packed(self, table: Columns, threads: int) -> tuple[Kernel, Rows] | None:
        """The kernel of the first row and the rows as it wants them; None if they are not for it alone."""
        try:
            kernel = self._kernels.patient(table.row(0))
            self._forget_call()  # it may have other code now
            if threads > 1:
                from .parallel.writes import refuse_writes

                refuse_writes(kernel, self._kernels.maker, table.row(0), self.__name__)
            rows = pack_rows(kernel.plan, kernel.frame, table)
            if not rows.ragged:  # those are checked one by one
                kernel.check_rows(rows)
            # Rows may be one buffer, or need another kernel, or none.
            separate = (
                rows.separate
                or kernel.guard.expired
                or kernel.is_changed_by_rows(table.rows_of_objects())
                or not kernel.stays_exact(rows)
            )
        except PlainCall:
            return None
        return None if separate else (kernel, rows)

    def _run_rows(self, kernel: Kernel, rows: Rows, table: Columns, threads: int, report: Callable[[int], Any]) -> Any:
        """Run the rows of one kernel.

        Raises:
            Moved: the kernel cannot be used any more; nothing was done.
        """
        ahead = 0 if kernel.trial is None else kernel.trial.rows_ahead(kernel.move is None, table.length)
        ahead = ahead if kernel.predecessor is None and (threads == 1 or not kernel.move) else max(1, ahead)
        results, outputs = [], kernel.outputs[:0]
        for number in range(ahead):
            plain_calls = self.stats.plain_calls
            results.append(self._run_row(table.row(number), report))
            outputs += kernel.outputs
            if self._kernels.last is not kernel or self.stats.plain_calls > plain_calls:
                return self._rows_apart(table, results, report)
        if ahead == table.length:
            return kernel.result.columns(outputs, len(kernel.outputs), ahead)
        run = run_rows
        if threads > 1 and kernel.code.library:
            from .parallel.rows import run_rows_in_threads

            run = run_rows_in_threads(threads)
        try:
            return run(kernel, rows.after(ahead), report, self.stats.counter, outputs)
        except Moved:
            if not ahead:
                raise
            return self._rows_apart(table, results, report)

    def _rows_apart(self, table: Columns, done: list[Any], report: Callable[[int], Any]) -> Any:
        """Run the rows after those of which there are results as calls of their own."""
        rest = (self._run_row(table.row(number), report) for number in range(len(done), table.length))
        return collect_results([*done, *rest])

    def _no_rows(self) -> Any:
        return array("d") if self._kernels.last is None else self._kernels.last.result.columns(array("d"), 1, 0)

    def _run_row(self, arguments: Sequence[Any], report: Callable[[int], Any]) -> Any:
        """Run one row, which has an argument for each parameter, as a separate call."""
        bound = bound_arguments(self._signature, arguments)
        try:
            result = self._perform("step", bound.args, bound.kwargs)
        except PlainCall as plain:
            result = self._call_plain(plain, lambda: self._kernels.maker.undecorated(arguments))
            attach_all()  # whose numbers the kernels of other rows want in their memory
        report(1)
        return result
