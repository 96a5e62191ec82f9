"""Rows of `.loop(threads=)` side by side, for steps that write nothing but their results.

1. Rows are run in rounds, one after the other.  A round is cut into pieces of consecutive rows, a few for each thread,
   which run in the pool (pool.py).  All pieces read the same parameters; each has its part of the results.
2. Random numbers are drawn before each round, in the order of the rows.
3. After an exception (Ctrl-C), the round is completed: so the generators, and the count of calls, are those of a whole
   number of rows.
"""

from __future__ import annotations

import functools
from array import array
from time import perf_counter
from typing import Any, Callable

from ...base.interruption import with_cleanup
from ...engine.state import zero_array
from ...runtime.kernel import Kernel
from ...runtime.loop import run_rows
from ...tracing.call.rows import Rows
from . import pool
from .memory import Bound, Piece, Scratch

#: Seconds that a round should take.
_SECONDS_A_ROUND = 0.1
#: The first rows may be slower or faster than the others.
_FASTEST_GROWTH = 64
#: Pieces for each thread in a round: a thread that is held up leaves the rest to the others.
_PIECES = 4


def run_rows_in_threads(threads: int) -> Callable[..., Any]:
    """As `run_rows` of runtime/loop.py, for so many threads."""
    return functools.partial(_run, threads)


def _run(
    threads: int, kernel: Kernel, rows: Rows, report: Callable[[int], Any], count: array[int], ahead: array[float]
) -> Any:
    """Run all rows and return the columns of their results.

    Args:
        threads: how many there may be.
        kernel: has run before, and writes nothing but results.
        rows: packed by its plan.
        report: is called from time to time with how many more rows are done.
        count: one number, to which the number of rows that were run is added, also if a signal ends the loop.
        ahead: outputs of earlier rows, which were run as calls of their own.
    """
    width = len(kernel.outputs)
    outputs = zero_array(rows.count * width, kernel.plan.precision)
    kernel.copy_in()
    scratch = Scratch(kernel, threads)
    position, last = 0, 1
    while position < rows.count:
        wanted = int(_SECONDS_A_ROUND * threads / kernel.seconds_a_row) if kernel.seconds_a_row else threads
        last = min(max(wanted, threads), _FASTEST_GROWTH * last * threads, rows.count - position)
        if kernel.loop_trial is not None and not kernel.loop_trial.passes(last):
            if not kernel.loop_trial.allows(kernel, rows.after(position)):
                return run_rows(kernel, rows.after(position), report, count, ahead + outputs[: position * width])
            kernel.loop_trial.passes(last)
        _round(kernel, rows.between(position, position + last), memoryview(outputs)[position * width :], scratch, count)
        position += last
        report(last)
    return kernel.result.columns(ahead + outputs if ahead else outputs, width, rows.start + rows.count)


def _round(kernel: Kernel, rows: Rows, outputs: Any, scratch: Scratch, count: array[int]) -> None:
    threads, width = scratch.threads, len(kernel.outputs)
    size = max(1, -(-rows.count // (_PIECES * threads)))
    starts = range(0, rows.count, size)
    pieces = []
    for start in starts:
        end = min(start + size, rows.count)
        pieces.append(Piece(Bound(kernel), rows.between(start, end), scratch, outputs[start * width : end * width]))
    states = [] if kernel.draws is None else kernel.draws.states()
    before = count[0]

    def finish() -> None:
        if count[0] == before:
            return
        for piece in pieces:
            piece.run(0)

    def work() -> None:
        try:
            for start, piece in zip(starts, pieces):
                number = min(size, rows.count - start)
                drawn = None if kernel.draws is None else kernel.draws.rows(number, kernel.frame.packed.typecode)
                piece.advance(number, drawn)
        except BaseException:
            if kernel.draws is not None:
                kernel.draws.restore(states)
            raise
        count[0] = before + rows.count  # from here on, the round is completed
        pool.run([piece.run for piece in pieces], threads)

    started = perf_counter()
    with_cleanup(work, finish)
    kernel.seconds_a_row = max((perf_counter() - started) * min(threads, len(pieces)) / rows.count, 1e-9)
