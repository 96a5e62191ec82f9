"""Many steps in one foreign call: running the rows of `.loop` through a kernel.

1. The rows get their own pointer block, in which the packed numbers, the buffers and the outputs point at row 0 of a
   table.  The code runs a step and moves these pointers by one row, again and again.
2. Each foreign call runs as many rows as should take about 50 ms, judging by the rows before.  In between, Python can
   react to signals and show progress.  While rows are run, the GIL is released.
3. Random numbers are drawn, row by row, for the rows that are run next.  If a signal keeps rows from being run, the
   generators are left as after the last row that was.
4. The outputs of all rows are one table, whose columns are the result.

Where a call may have to be undone (undo.py), what was there before each foreign call is saved.  If a row is to be
undone, all of that call are, those in front of it are run again, and that is the end (`UndoneRows`).

Argument Values are copied in before the first row and out after the last, also if a signal ends the loop.  A kernel
that has never run begins with a single row, in the transaction that moves the parameters.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import starmap
from time import perf_counter
from typing import Any, Callable, Protocol

from ..base import ffi
from ..base.interruption import with_cleanup
from ..engine.state import zero_array
from ..tracing.call.node import Frame, flat_view
from ..tracing.call.rows import Rows
from .kernel import Kernel
from .undo import Undo

#: Seconds that one foreign call should take: short enough for Ctrl-C, long enough for its own cost not to matter.
_SECONDS_A_CHUNK = 0.05
#: The first rows of a loop may be slower or faster than the others.
_FASTEST_GROWTH = 64
#: For `starmap`: one call without arguments.
_ONCE: tuple[tuple[()], ...] = ((),)


class Runner(Protocol):
    """Runs rows; `done` is how many have been run, also after an interruption, or where it has stopped by itself."""

    @property
    def done(self) -> int: ...

    def run(self, count: int) -> None: ...


class Runnable(Protocol):
    """A kernel, or one whose code works on other memory of the same form."""

    @property
    def frame(self) -> Frame: ...
    @property
    def outputs(self) -> array[float]: ...
    @property
    def draws(self) -> Any: ...

    def pointer_block(self) -> ffi.PointerBlock: ...
    def slot(self, space: str, region: int) -> int: ...


class CountingRunner:
    """A Runner whose code counts by itself.

    Attributes:
        _numbers: first how many rows the next call runs, and how many have been run; the rest belongs to the code.
        _call: runs them.
    """

    _numbers: array[int]
    _call: Callable[[], Any]

    @property
    def done(self) -> int:
        return self._numbers[1]

    def run(self, count: int) -> None:
        self._numbers[0] = count
        self._call()


class NativeRunner(CountingRunner):
    """Rows through C.

    Args:
        count: how many rows the next call runs.

    Attributes:
        block: the pointers, those to inputs and outputs at the next row.
        both: the argument of `mgjit_loop`.
    """

    def __init__(
        self, library: ffi.Library, kernel: Runnable, rows: Rows, outputs: array[float], count: int = 0
    ) -> None:
        self.library = library
        block = self.block = kernel.pointer_block()
        moves = array("q")
        for slot, memory, stride in moving_inputs(kernel, rows):
            if len(memory):
                block.set(slot, memory)
                moves.extend([slot, stride])
        slot = kernel.slot("output", 0)
        if outputs:
            block.set(slot, outputs)
            moves.extend([slot, kernel.outputs.itemsize * len(kernel.outputs)])
        self._draw: Callable[[int], None] | None = None
        if kernel.draws is not None:
            plan, slot = kernel.draws, kernel.slot("input", len(rows.buffers) + 1)
            code = kernel.frame.packed.typecode
            moves.extend([slot, kernel.frame.packed.itemsize * plan.size])

            def draw(count: int) -> None:
                block.set(slot, plan.rows(count, code))

            self._draw = draw
        self._numbers = array("q", [count, 0, len(moves) // 2, *moves])
        both = self.both = ffi.PointerBlock(2)
        both.set_block(0, block)
        both.set(1, self._numbers)
        self._call = library.bind("mgjit_loop", both)

    def run(self, count: int) -> None:
        if self._draw is not None:
            self._draw(count)
        super().run(count)


class StepRunner:
    """Rows through the code of single calls, one after the other.

    Args:
        done: how many rows have been run already.
    """

    def __init__(
        self, library: ffi.Library, kernel: Runnable, rows: Rows, outputs: array[float], done: int = 0
    ) -> None:
        self._runs: list[Any] = [0] * done
        self._block, self._draws = kernel.pointer_block(), kernel.draws
        self._moves: list[tuple[int, memoryview, int]] = []
        for slot, memory, stride in moving_inputs(kernel, rows):
            if len(memory):
                self._moves.append((slot, memoryview(memory).cast("B"), stride))
        if len(outputs):  # not cast: of a part of a cast view, PyPy passes a copy to C
            self._moves.append((kernel.slot("output", 0), memoryview(outputs), len(kernel.outputs)))
        if kernel.draws is not None:
            self._code, self._drawn = kernel.frame.packed.typecode, kernel.slot("input", len(rows.buffers) + 1)
            self._stride = kernel.frame.packed.itemsize * kernel.draws.size
        self._call = library.bind("mgjit_step", self._block)

    @property
    def done(self) -> int:
        return len(self._runs)

    def run(self, count: int) -> None:
        drawn = None if self._draws is None else memoryview(self._draws.rows(count, self._code)).cast("B")
        for number in range(count):
            row = self.done
            for slot, memory, stride in self._moves:
                self._block.set(slot, memory[row * stride : (row + 1) * stride] if stride else memory)
            if drawn is not None:
                self._block.set(self._drawn, drawn[number * self._stride : (number + 1) * self._stride])
            self._runs.extend(starmap(self._call, _ONCE))  # runs it and notes that, in one call into C


class PythonRunner:
    """Rows through generated Python."""

    def __init__(self, kernel: Kernel, rows: Rows, outputs: array[float]) -> None:
        self._runs: list[Any] = []
        self._step = kernel.functions["step"]
        self._outputs, self._of_one = outputs, kernel.outputs
        self._draw = kernel.draw
        self._memory = list(kernel.buffers)
        self._moves: list[tuple[int, Any, int]] = []
        for slot, memory, stride in moving_inputs(kernel, rows):
            format = kernel.code.slots[slot].format
            view = memory if isinstance(memory, array) else flat_view(memory, format)
            self._memory[slot] = view
            if stride:
                self._moves.append((slot, view, len(view) // rows.count))

    @property
    def done(self) -> int:
        return len(self._runs)

    def run(self, count: int) -> None:
        width, one, memory = len(self._of_one), self._of_one, self._memory
        for row in range(self.done, self.done + count):
            for slot, view, size in self._moves:
                memory[slot] = view[row * size : (row + 1) * size]
            if self._draw is not None:
                self._draw()
            self._runs.extend(starmap(self._step, ((memory,),)))  # runs it and notes that, in one uninterrupted call
            self._outputs[row * width : (row + 1) * width] = one


class UndoneRows:
    """Rows of a kernel that says which of its calls are to be undone: those up to the first of them.

    Args:
        runner: makes one for the rows from one on.

    Attributes:
        is_over: whether that row has been met.
    """

    def __init__(self, kernel: Kernel, outputs: array[float], runner: Callable[[int], Runner]) -> None:
        self._runner, self._undo = runner, Undo(kernel, whatever=True)
        self._verdicts, self._width = memoryview(outputs)[kernel.verdict :: len(kernel.outputs)], len(kernel.outputs)
        self._settled, self._under_way = 0, runner(0)
        self.is_over = False

    @property
    def done(self) -> int:
        """How many rows have been run; what was to be undone is then."""
        self._settle()
        return self._settled

    def run(self, count: int) -> None:
        start = self.done
        self._undo.save()
        self._under_way = self._runner(start)
        self._under_way.run(count)
        self._settle()

    def _settle(self) -> None:
        """Undo what is to be undone; may be interrupted, and repeated."""
        before, count = self._settled, self._under_way.done
        bad = next((k for k, one in enumerate(self._verdicts[before : before + count].tolist()) if one != 0.0), -1)
        if bad >= 0:
            self.is_over = True
            self._undo.restore()
            again = self._runner(before)
            if bad:
                again.run(bad)
            count = bad
        self._settled, self._under_way = before + count, _NoRows()


class _NoRows:
    """Runs nothing."""

    done = 0

    def run(self, count: int) -> None:
        """Nothing is to be done."""


def run_rows(
    kernel: Kernel,
    rows: Rows,
    report: Callable[[int], Any],
    count: array[int],
    ahead: array[float] | None = None,
    row: Callable[[int], Sequence[Any]] | None = None,
) -> Any:
    """Run all rows and return the columns of their results.

    Args:
        kernel: the arguments of row 0 are in its frame.
        rows: checked.
        report: called from time to time with how many more rows are done.
        count: one number, to which the number of rows that were run is added, also if a signal ends the loop.
        ahead: outputs of earlier rows, which were run as calls of their own.
        row: gives the arguments of a row, by its number in the whole loop.
    """
    width = len(kernel.outputs)
    outputs = zero_array(rows.count * width, kernel.plan.precision)
    kernel.copy_in()
    runner: Runner
    if kernel.verdict >= 0:
        runner = UndoneRows(kernel, outputs, lambda start: _runner(kernel, rows.after(start), outputs, start * width))
    else:
        runner = _runner(kernel, rows, outputs)
    before, trial = count[0], kernel.loop_trial
    if trial is not None and trial.is_over and not trial.is_wrong:
        trial = None  # as most often

    def work() -> None:
        nonlocal runner
        if kernel.move is not None:
            kernel.transaction(lambda: _run(kernel, runner, 1), lambda: runner.done, lambda: None)
            report(1)
        while runner.done < rows.count:
            end = rows.count
            if trial is not None and isinstance(runner, NativeRunner):
                if trial.allows(kernel, rows.after(runner.done)):
                    end = runner.done + trial.until_next(rows.count - runner.done)
                    trial.passes(end - runner.done)
                else:
                    runner = StepRunner(runner.library, kernel, rows, outputs, runner.done)
            for chunk in in_chunks(kernel, runner, end):
                report(chunk)
                if isinstance(runner, UndoneRows) and runner.is_over:
                    return

    def show() -> None:
        if runner.done:
            if row is not None and kernel.copies is not None and kernel.copies.told.paths:
                kernel.copies.keep(row(rows.start + runner.done - 1))
            kernel.copy_out()
        count[0] = before + runner.done

    with_cleanup(work, show)
    return kernel.result.columns(ahead + outputs if ahead else outputs, width, rows.start + rows.count)


def _runner(kernel: Kernel, rows: Rows, outputs: Any, start: int = 0) -> Runner:
    """What runs rows, whose outputs begin at a place; one by one where the code of loops is known to be wrong."""
    library = kernel.code.library
    outputs = memoryview(outputs)[start:] if start else outputs
    if library is None:
        return PythonRunner(kernel, rows, outputs)
    trial = kernel.loop_trial
    if kernel.verdict >= 0 and trial is not None and not trial.allows(kernel, rows):
        return StepRunner(library, kernel, rows, outputs)
    return NativeRunner(library, kernel, rows, outputs)


@contextmanager
def reporting(total: int, name: str, progress: bool) -> Iterator[Callable[[int], Any]]:
    """A context that gives the function to report progress to: that of a progress bar, or one that does nothing."""
    if not progress:
        yield lambda count: None
        return
    from tqdm import tqdm  # takes longer to import than many steps to compile

    with tqdm(total=total, desc=name, unit=" steps") as bar:
        yield bar.update


def in_chunks(kernel: Kernel, runner: Runner, count: int) -> Iterator[int]:
    """Run rows, about 50 ms in each foreign call; yields how many rows it was, until it stops by itself."""
    chunk = int(_SECONDS_A_CHUNK / kernel.seconds_a_row) if kernel.seconds_a_row else 1
    while runner.done < count:
        wanted, before = min(max(chunk, 1), count - runner.done), runner.done
        started = perf_counter()
        _run(kernel, runner, wanted)
        this = runner.done - before
        kernel.seconds_a_row = max((perf_counter() - started) / max(this, 1), 1e-9)
        chunk = min(int(_SECONDS_A_CHUNK / kernel.seconds_a_row), _FASTEST_GROWTH * wanted)
        yield this
        if this < wanted:
            return


def _run(kernel: Kernel, runner: Runner, count: int) -> None:
    """Run rows; afterwards the generators are as after the last row that was run."""
    kernel.settle()
    if kernel.draws is None:
        runner.run(count)
        return
    states, before = kernel.draws.states(), runner.done
    try:
        runner.run(count)
    except BaseException:
        kernel.draws.restore(states)
        kernel.draws.rows(runner.done - before, "d")
        raise


def moving_inputs(kernel: Runnable, rows: Rows) -> Iterator[tuple[int, Any, int]]:
    """Slot, memory and row stride in bytes of everything that holds arguments."""
    yield kernel.slot("input", 0), rows.packed, rows.packed_stride
    for region, (memory, stride) in enumerate(rows.buffers, 1):
        yield kernel.slot("input", region), memory, stride
