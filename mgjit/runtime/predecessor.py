"""The first call of better code is also made by the code whose place it takes: both have to leave the same numbers.

That code has been compared with plain Python (verification/trial.py), which takes much longer than a call of both.

1. Run the code that was there before, and keep what it leaves.
2. Put back what was in memory, and run the better code.
3. Compare all numbers that they can write, bit for bit, except that one nan is like another, and that what is written
   to the padding between rows of parameters or states does not count, nor do gradients that nobody reads
   (`grads=False`).  If they differ, leave those of the code before.

An interruption leaves the memory as it was, or a whole call.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..base.interruption import with_cleanup

if TYPE_CHECKING:
    from ..compiler.build.code import Code

#: The memory that code writes, and that outlives a call.
WRITTEN = frozenset({"parameter", "gradient", "state", "output"})


class Predecessor:
    """The code of a kernel that has been replaced.

    Args:
        code, run: the code, and what runs it.
        buffers: the memory that it works on, by slot.
        put_buffer: lets it work on a buffer among the arguments, which is another one in each call.
        places: those of a buffer that hold numbers of the program's, and no padding.
        with_gradients: whether gradients are to be compared.

    Attributes:
        has_run: whether a call has been compared.
        mismatch: how the better code differs; empty if it does not.
    """

    def __init__(
        self,
        code: Code,
        run: Callable[[], Any],
        buffers: Sequence[Any],
        put_buffer: Callable[[int, Any], None],
        places: Callable[[Any], Sequence[int]] = lambda buffer: range(len(buffer)),
        with_gradients: bool = True,
    ) -> None:
        self.code, self._run, self._buffers, self._put_buffer = code, run, buffers, put_buffer
        self._places, self._with_gradients = places, with_gradients
        self.has_run = False
        self.mismatch = ""

    def run_both(self, run: Callable[[], Any], given: Sequence[Any], runs: list[Any], verdict: int = -1) -> None:
        """Make a call with both.

        Args:
            run: runs the better code. given: the buffers among the arguments of this call.
            runs: gets an element when the call is complete.
            verdict: an output; where it is not 0.0, the call is to be undone, and another one is compared.
        """
        for number, slot in enumerate(self.code.slots):
            if slot.space == "input" and 0 < slot.region <= len(given):
                self._put_buffer(number, given[slot.region - 1])
        slots = [k for k, slot in enumerate(self.code.slots) if slot.space in WRITTEN and len(self._buffers[k])]
        views = [memoryview(self._buffers[k]).cast("B") for k in slots]
        before = [view.tobytes() for view in views]

        def write(contents: Sequence[bytes]) -> None:
            for view, content in zip(views, contents):
                view[:] = content

        try:
            self._run()
            expected = [view.tobytes() for view in views]
            write(before)
            run()
            if verdict >= 0 and self._output(verdict) != 0.0:  # each code has left what it had computed by then
                runs.append(None)
                return
            self.mismatch = self._difference(slots, expected, [view.tobytes() for view in views])
            if self.mismatch:
                write(expected)
            self.has_run = True
            runs.append(None)
        except BaseException:
            if not runs:
                with_cleanup(lambda: write(before), lambda: write(before))
            raise

    def _output(self, number: int) -> float:
        place = next(k for k, slot in enumerate(self.code.slots) if slot.space == "output")
        return float(self._buffers[place][number])

    def _difference(self, slots: Sequence[int], expected: Sequence[bytes], found: Sequence[bytes]) -> str:
        """The first number that differs, in words."""
        ours, theirs = dict(zip(slots, expected)), dict(zip(slots, found))
        every = range(len(self._buffers))
        difference = first_difference(
            self.code, self._buffers, self._places, self._with_gradients, [*map(ours.get, every)],
            [*map(theirs.get, every)],
        )  # fmt: skip
        if difference is None:
            return ""
        what, number, before, now = difference
        return f"number {number} of the {what} memory is {now!r}, and was {before!r}"


def first_difference(
    code: Code,
    buffers: Sequence[Any],
    places: Callable[[Any], Sequence[int]],
    with_gradients: bool,
    expected: Sequence[Any],
    found: Sequence[Any],
) -> tuple[str, int, float, float] | None:
    """The first number that code leaves differently in two runs: the space and its number there, and both numbers.

    Args:
        buffers: the memory that the code works on, by slot.
        places: those of a buffer that hold numbers of the program's, and no padding.
        expected, found: the bytes there after each run; None for what is not compared.  There may be more of them than
            slots: results.
    """
    formats = [(slot.space, slot.format) for slot in code.slots]
    output = next((slot.format for slot in code.slots if slot.space == "output"), "d")
    formats += [("output", output)] * (len(buffers) - len(formats))
    for (space, format), buffer, one, other in zip(formats, buffers, expected, found):
        is_left_out = space not in WRITTEN or (space == "gradient" and not with_gradients)
        if is_left_out or one is None or one is buffer is other:
            continue
        first, second = memoryview(one).cast("B").tobytes(), memoryview(other).cast("B").tobytes()
        if first == second:
            continue
        ours, theirs = array(format, first), array(format, second)
        for number in places(buffer):
            x, y = ours[number], theirs[number]
            same_sign = math.copysign(1.0, x) == math.copysign(1.0, y)
            if not ((x == y and same_sign) or (x != x and y != y)):
                return space, number, x, y
    return None
