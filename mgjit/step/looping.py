"""`.loop` of a compiled step: many calls in one.

1. The arguments become a table, whose columns are checked (call/columns.py).  Its first row chooses the kernel.
2. All rows are packed by the plan of that kernel (call/rows.py).  Rows of several lengths, or rows that may change
   what the kernel knows, are calls of their own, or turns of several kernels (runtime/turns.py).
3. Of a kernel that is still compared with plain Python, the first rows are calls of their own.
4. Rows of a step with several paths run in C until one is for none that has a kernel (runtime/path_rows.py).
5. The other rows run in C, in one thread (runtime/loop.py) or in several (side_by_side/rows.py).
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Callable

from ..base import settings
from ..base.tracebacks import with_short_tracebacks
from ..engine.leaks import PlainCall
from ..errors import MgjitError, SharedWriteError
from ..kernels.first_calls.plain import as_part
from ..kernels.side_by_side.pool import checked_threads
from ..memory.buffers import Moved
from ..runtime.detached import attach_all
from ..runtime.kernel import Kernel
from ..runtime.loop import reporting, run_rows
from ..runtime.path_rows import PathRows, joined, run_path_rows, usable
from ..runtime.turns import run_in_turn
from ..tracing.call.collected import as_it_is, collect_results
from ..tracing.call.columns import Columns, bound_arguments, read_columns
from ..tracing.call.rows import Rows, pack_rows
from ..tracing.source.debugging import is_debugged
from .looking import P, R
from .phased import Phased

if TYPE_CHECKING:
    from inspect import Signature

    from ..compiler.build.options import StepOptions
    from ..runtime.stats import Stats

#: So many rows of paths are run by C at a time, at first and at most.
_FIRST_ROWS, _MOST_ROWS = 256, 1 << 14
#: Where it has stopped before that many, more and more rows are calls of their own.
_FEW_ROWS, _MOST_ALONE = 8, 64


class Looping(Phased[P, R]):
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
        _refusal: Callable[[Exception, int], PlainCall]
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
            columns: the arguments, by position.
            named: the same, by name.
            progress: whether to show a progress bar.
            threads: how many run rows at the same time; None: one for each processor.  For steps that write nothing.

        Returns:
            The result of a step, with an `array('d')`, one element per step, in place of each number.  Parts that are
            no numbers are those of one step.  Without rows: empty arrays, in the structure of
            the last call where there was one.

        Raises:
            ColumnError: the columns differ in length, or a row in structure from row 0, other than in lengths.
            IndexRangeError: a run-time index of some row is out of range.
            SharedWriteError: the step writes something, and there are several threads.

        Examples:
            >>> double = mgjit.compile(lambda x: x + x)
            >>> double.loop([1.0, 2.0, 3.0]).tolist()
            [2.0, 4.0, 6.0]
        """
        self._refuse_in_trace("loop")
        return self._turn.run(self._loop, columns, named, progress, checked_threads(threads))

    def _loop(self, columns: Sequence[Any], named: dict[str, Any], progress: bool, threads: int) -> Any:
        self._phase = ""
        table = read_columns(self._signature, columns, named, self._options.static)
        if (self._kernels.last is None and settings.disabled()) or is_debugged():
            plain = functools.partial(as_part, self._options.precision)
            undecorated = self._kernels.maker.undecorated
            try:
                return collect_results(plain(functools.partial(undecorated, row)) for row in table.rows())
            finally:
                self._kernels.look_at_everything()
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
                from ..kernels.side_by_side.writes import refuse_writes

                refuse_writes(kernel, self._kernels.maker, table.row(0), self.__name__)
            rows = pack_rows(kernel.plan, kernel.frame, table)
            if not rows.ragged:  # those are checked one by one
                kernel.check_rows(rows)
            # Rows may be one buffer, or need another kernel, or none.
            separate = (
                rows.separate
                or kernel.guard.expired
                or kernel.is_changed_by_rows(table)
                or not kernel.stays_exact(rows)
            )
        except PlainCall:
            return None
        except (Moved, SharedWriteError):
            raise
        except Exception as error:
            self._refusal(error, self.stats.calls)
            return None  # the call of its row will find it again
        return None if separate else (kernel, rows)

    def _run_rows(self, kernel: Kernel, rows: Rows, table: Columns, threads: int, report: Callable[[int], Any]) -> Any:
        """Run the rows of one kernel.

        Raises:
            Moved: the kernel cannot be used any more; nothing was done.
        """
        if kernel.verdict >= 0:
            return self._rows_of_paths(kernel, rows, table, report)
        ahead = 0 if kernel.trial is None else kernel.trial.rows_ahead(kernel.move is None, table.length)
        if kernel.predecessor or (kernel.move and (threads > 1 or kernel.loop_trial)):
            ahead = max(1, ahead)
        results, outputs = [], kernel.outputs[:0]
        for number in range(ahead):
            plain_calls = self.stats.plain_calls
            results.append(self._run_row(table.row(number), report))
            outputs += kernel.outputs
            if self._kernels.last is not kernel or self.stats.plain_calls > plain_calls:
                return self._rows_apart(table, results, report)
        if ahead == table.length:
            return kernel.result.columns(outputs, len(kernel.outputs), ahead)
        run: Callable[..., Any] = functools.partial(run_rows, row=table.row)
        if threads > 1 and kernel.code.library:
            from ..kernels.side_by_side.rows import run_rows_in_threads

            run = run_rows_in_threads(threads)
        try:
            return run(kernel, rows.after(ahead), report, self.stats.counter, outputs)
        except Moved:
            if not ahead:
                raise
            return self._rows_apart(table, results, report)

    def _rows_of_paths(self, kernel: Kernel, rows: Rows, table: Columns, report: Callable[[int], Any]) -> Any:
        """Run rows each of which takes one path of several; those that take none with a kernel are separate calls."""
        start, count, alone = 0, _FIRST_ROWS, 1
        is_changed: dict[frozenset[int], bool] = {}
        found: list[PathRows | Any] = []  # of rows run together, or the result of one
        while start < table.length:
            count = min(count, table.length - start)
            runner = self._on_paths(kernel, rows.between(start, start + count), table, is_changed)
            if runner is None:
                numbers = range(start, min(start + alone, table.length))
                found.extend(as_it_is(self._run_row(table.row(number), report)) for number in numbers)
                start, alone = start + len(numbers), min(2 * alone, _MOST_ALONE)
                continue
            found.append(runner)
            self._run_paths(runner, lambda number, start=start: table.row(start + number), report)  # type: ignore[misc]
            start, count = start + runner.done, min(2 * count, _MOST_ROWS)
        columns = [x.columns() if isinstance(x, PathRows) else collect_results([x]) for x in found]
        whole = None if any(column is None for column in columns) else joined(columns)
        if whole is None:
            results = (x.results() if isinstance(x, PathRows) else [x] for x in found)
            return collect_results(chain.from_iterable(results))
        return whole

    def _on_paths(
        self, kernel: Kernel, rows: Rows, table: Columns, is_changed: dict[frozenset[int], bool]
    ) -> PathRows | None:
        """What runs rows by the kernels of paths; None if none can be run.

        Args:
            is_changed: whether some row has a list that a kernel changes, by all that it changes.
        """
        if not kernel.told or self._options.code.mode != "strict":  # otherwise compilers assume that there are no nans
            return None
        known = self._kernels.paths_of(kernel.plan.key)
        try:
            for one in known:
                changed = one.changed_now()
                if changed not in is_changed:
                    is_changed[changed] = one.is_changed_by_rows(table)
            known = [one for one in known if not is_changed[one.changed_now()]]
            kernels = usable(sorted(known, key=lambda one: -one.helped), rows)
        except (MgjitError, PlainCall):  # the call of its row will find it again
            return None
        return PathRows(kernels, rows) if kernels else None

    def _run_paths(self, runner: PathRows, row: Callable[[int], Sequence[Any]], report: Callable[[int], Any]) -> None:
        """Run rows; those that are for none of the kernels are separate calls, after which there may be other kernels.

        Args:
            row: gives the arguments of one.
        """
        while True:
            before, kernels = runner.done, len(self._kernels)
            run_path_rows(runner, report, self.stats.counter)
            if runner.done == runner.count:
                return
            alone = 1 if runner.done - before > _FEW_ROWS else _FEW_ROWS
            for _ in range(min(alone, runner.count - runner.done)):
                runner.skip(self._run_row(row(runner.done), report))
            has_same = len(self._kernels) == kernels and all(map(self._kernels.has, runner.kernels))
            if runner.done == runner.count or not (has_same and runner.may_go_on()):
                return

    def _rows_apart(self, table: Columns, done: list[Any], report: Callable[[int], Any]) -> Any:
        """Run the rows after those of which there are results as calls of their own."""
        rest = (self._run_row(table.row(number), report) for number in range(len(done), table.length))
        return collect_results([*done, *rest])

    def _no_rows(self) -> Any:
        return array("d") if self._kernels.last is None else self._kernels.last.result.columns(array("d"), 1, 0)

    def _run_row(self, arguments: Sequence[Any], report: Callable[[int], Any]) -> Any:
        """Run one row, which has an argument for each parameter, as a separate call."""
        bound, calls = bound_arguments(self._signature, arguments), self.stats.calls
        reason: PlainCall | None = None
        try:
            result = self._perform("step", bound.args, bound.kwargs)
        except PlainCall as plain:
            reason = plain
        except Exception as error:
            reason = self._refusal(error, calls)
        if reason is not None:
            result = self._call_plain(reason, lambda: self._kernels.maker.undecorated(arguments))
            attach_all()  # whose numbers the kernels of other rows want in their memory
        report(1)
        return result
