"""Compare the code of `.loop` with that of single calls, which is compared with plain Python (trial.py).

A loop over rows may be code of its own: with arrays in registers from row to row, with the end of a row and the
beginning of the next one in one, with statements packed for it (codegen/rows.py).  So before the first rows of a kernel
are run by `mgjit_loop`, and once more before some later ones:

1. Copy the memory that the code writes, twice.  What the program sees stays as it is.
2. Run a few rows by `mgjit_step` on one copy, and the same rows by `mgjit_loop` on the other.
3. Compare all numbers that both have left and returned.  If one differs, all rows of this code are run one by one from
   then on.

The same is done when other code has taken the place of what was compared.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..base import ffi, settings
from ..base.interruption import with_cleanup
from ..engine.state import zero_array
from ..memory.buffers import aligned_zeros
from ..runtime.kernel import Kernel
from ..runtime.loop import NativeRunner, StepRunner
from ..runtime.predecessor import first_difference
from ..tracing.call.rows import Rows
from .trial import calls_until_next, trials_after_the_first

if TYPE_CHECKING:
    from ..compiler.build.options import StepOptions

#: How many rows are compared: an odd number, for loops that take two or four rows at a time.  A rotated loop does all
#: that it can do in three.
_ROWS, _ROWS_OF_SLOW_CODE = 9, 3
#: Seconds of a row of slow code.
_SLOW = 1e-3


def loop_trial(options: StepOptions, note: Callable[[int, str], Any]) -> LoopTrial | None:
    """When the code of loops, or that adds up rows, is to be compared with that of calls; None for never.

    Not with mode="fast": a compiler may round differently in each of them.  Other threads may run as usual, because
    the comparison works on copies.
    """
    if settings.verify(options.verify) == "never" or options.code.mode != "strict":
        return None
    return LoopTrial(options.code.grads, note)


class LoopTrial:
    """Decides when rows are compared, and compares them.

    Args:
        with_gradients: whether gradients are compared.
        note: is told how many rows have been compared, and how they differ, or the empty string.

    Attributes:
        left: how many rows ahead the next comparison is.
        is_over: whether there are no more comparisons.
        is_wrong: whether `mgjit_loop` has been found to be wrong.
    """

    def __init__(self, with_gradients: bool, note: Callable[[int, str], Any]) -> None:
        self._with_gradients, self._note = with_gradients, note
        self.begin()

    def begin(self) -> None:
        """Begin anew, with other code."""
        self.left, self._later = 0, trials_after_the_first()
        self.is_over = self.is_wrong = False
        self._members_are_due = True

    @property
    def is_due(self) -> bool:
        """Whether the next rows are to be compared."""
        return self.left <= 0 and not (self.is_over or self.is_wrong)

    def passes(self, count: int) -> bool:
        """Count rows that are to be run next; returns False if the first of them are to be compared before that."""
        if self.is_wrong or self.is_due:
            return False
        self.left -= count
        return True

    def allows(self, kernel: Kernel, rows: Rows) -> bool:
        """Whether `mgjit_loop` may run the next rows, the first of which are compared if that is due.

        Args:
            rows: checked; the memory of the kernel is as before the first of them.
        """
        if kernel.code.library is None:
            return True
        count = min(rows.count, _ROWS if kernel.seconds_a_call < _SLOW else _ROWS_OF_SLOW_CODE)
        return self.judges(count, lambda: _difference(kernel, rows.between(0, count), self._with_gradients))

    def judges(self, count: int, difference: Callable[[], str]) -> bool:
        """Whether code may run the next rows, the first of which are compared if that is due.

        Args:
            count: how many are compared. difference: compares them; returns how they differ, or the empty string.
        """
        if not self.is_due:
            return not self.is_wrong
        try:
            found = difference()
        except MemoryError:  # there is no room for copies
            self.is_over = True
            return True
        self._note(count, found)
        if found:
            self.is_wrong = True
        elif count >= _ROWS_OF_SLOW_CODE:  # of fewer rows, the next ones are compared as well
            self.is_over = self._later <= 0
            self._later -= 1
            self.left = calls_until_next()
            self._members_are_due = True
        return not found

    def judges_member(self, count: int, difference: Callable[[], str]) -> bool:
        """As `judges`, for rows in the memory of a member of an ensemble: once after other rows have been compared."""
        if self._members_are_due and not self.is_wrong:
            self._members_are_due = False
            found = difference()
            self._note(count, found)
            self.is_wrong = bool(found)
        return not self.is_wrong

    def until_next(self, count: int) -> int:
        """How many of the next rows come before the next comparison: all of them, as a rule."""
        return min(count, self.left) if self.left > 0 and not (self.is_over or self.is_wrong) else count


class _Copy:
    """A copy of all memory that the code of a kernel writes; as a `Runnable` (runtime/loop.py).

    Args:
        drawn: the random numbers of all rows.
    """

    def __init__(self, kernel: Kernel, drawn: array[float]) -> None:
        self._kernel, self.frame, self.outputs = kernel, kernel.frame, kernel.outputs
        self.draws = None if kernel.draws is None else _Drawn(kernel.draws.size, drawn)
        copies: dict[int, Any] = {}
        for slot, buffer in zip(kernel.code.slots, kernel.buffers):
            if slot.space in ("parameter", "gradient", "state") and len(buffer):
                copies.setdefault(id(buffer), copied(buffer))
            elif slot.space == "scratch" and len(buffer):
                copies[id(buffer)] = aligned_zeros(len(buffer), kernel.plan.precision)
        self.buffers = [copies.get(id(buffer), buffer) for buffer in kernel.buffers]

    def pointer_block(self) -> ffi.PointerBlock:
        """A new block of pointers to it."""
        block = ffi.PointerBlock(len(self.buffers))
        for number, buffer in enumerate(self.buffers):
            if buffer is not None and len(buffer):
                block.set(number, buffer)
        return block

    def slot(self, space: str, region: int) -> int:
        """The number of the slot of a region of memory."""
        return self._kernel.slot(space, region)


class _Drawn:
    """Random numbers that have been drawn."""

    def __init__(self, size: int, numbers: array[float]) -> None:
        self.size, self._numbers = size, numbers

    def rows(self, count: int, typecode: str) -> array[float]:
        """Those of all rows."""
        return self._numbers


def copied(buffer: Any) -> Any:
    """A copy of the bytes of a buffer, at the start of a cache line, and up to seven zeros."""
    with memoryview(buffer) as view:
        made = aligned_zeros(-(-view.nbytes // 8))  # no part of a cast view: of that, PyPy would pass a copy to C
        made.cast("B")[: view.nbytes] = view.cast("B")
    return made


def _difference(kernel: Kernel, rows: Rows, with_gradients: bool) -> str:
    """How rows run by `mgjit_loop` differ from the same ones run by `mgjit_step`, in words; empty if they do not."""
    library, width = kernel.code.library, len(kernel.outputs)
    assert library is not None
    drawn = _drawn(kernel, rows.count)
    copies = [_Copy(kernel, drawn) for _ in range(2)]
    outputs = [zero_array(rows.count * width, kernel.plan.precision) for _ in copies]
    StepRunner(library, copies[0], rows, outputs[0]).run(rows.count)
    NativeRunner(library, copies[1], rows, outputs[1]).run(rows.count)
    by_steps, by_loop = ([*copy.buffers, results] for copy, results in zip(copies, outputs))
    buffers = [*kernel.buffers, outputs[0]]
    found = first_difference(kernel.code, buffers, kernel.places_in, with_gradients, by_steps, by_loop)
    if not found:
        return ""
    what, number, ours, theirs = found
    where = f"number {number % width} of the results" if what == "output" else f"number {number} of the {what} memory"
    return f"{where} is {ours!r} in single calls, and {theirs!r} in a loop over the same {rows.count} rows"


def _drawn(kernel: Kernel, count: int) -> array[float]:
    """The random numbers of the next rows, which are drawn again when these are run."""
    if kernel.draws is None:
        return array("d")
    plan = kernel.draws
    states = plan.states()
    return with_cleanup(lambda: plan.rows(count, kernel.frame.packed.typecode), lambda: plan.restore(states))
