"""The first call of better code is also made by the code whose place it takes: both have to leave the same numbers.

That code has been compared with plain Python (verification/trial.py), which takes much longer than a call of both.

1. Run the code that was there before, and keep what it leaves.
2. Put back what was in memory, and run the better code.
3. Compare all numbers that they can write, bit for bit, except that one nan is like another, and that what is written
   to the padding between rows of parameters does not count, nor do gradients that nobody reads (`grads=False`).  If
   they differ, leave those of the code before.

An interruption leaves the memory as it was, or a whole call.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..interruption import with_cleanup

if TYPE_CHECKING:
    from .buffers import ParameterStorage
    from .code import Code

#: The memory that code writes, and that outlives a call.
_WRITTEN = frozenset({"parameter", "gradient", "state", "output"})


class Predecessor:
    """The code of a kernel that has been replaced.

    Args:
        code, run: the code, and what runs it.
        buffers: the memory that it works on, by slot.
        put_buffer: lets it work on a buffer among the arguments, which is another one in each call.
        storages: of the parameters.
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
        storages: Sequence[ParameterStorage] = (),
        with_gradients: bool = True,
    ) -> None:
        self.code, self._run, self._buffers, self._put_buffer = code, run, buffers, put_buffer
        self._storages, self._with_gradients = storages, with_gradients
        self.has_run = False
        self.mismatch = ""

    def run_both(self, run: Callable[[], Any], given: Sequence[Any], runs: list[Any]) -> None:
        """Make a call with both.

        Args:
            run: runs the better code. given: the buffers among the arguments of this call.
            runs: gets an element when the call is complete.
        """
        for number, slot in enumerate(self.code.slots):
            if slot.space == "input" and 0 < slot.region <= len(given):
                self._put_buffer(number, given[slot.region - 1])
        slots = [k for k, slot in enumerate(self.code.slots) if slot.space in _WRITTEN and len(self._buffers[k])]
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
            self.mismatch = self._difference(slots, expected, [view.tobytes() for view in views])
            if self.mismatch:
                write(expected)
            self.has_run = True
            runs.append(None)
        except BaseException:
            if not runs:
                with_cleanup(lambda: write(before), lambda: write(before))
            raise

    def _difference(self, slots: Sequence[int], expected: Sequence[bytes], found: Sequence[bytes]) -> str:
        """The first number that differs, in words."""
        for k, one, other in zip(slots, expected, found):
            if one == other:
                continue
            slot = self.code.slots[k]
            if slot.space == "gradient" and not self._with_gradients:
                continue
            ours, theirs = array(slot.format, one), array(slot.format, other)
            for number in self._places(self._buffers[k]):
                x, y = ours[number], theirs[number]
                same_sign = math.copysign(1.0, x) == math.copysign(1.0, y)
                if not ((x == y and same_sign) or (x != x and y != y)):
                    return f"number {number} of the {slot.space} memory is {y!r}, and was {x!r}"
        return ""

    def _places(self, buffer: Any) -> Sequence[int]:
        """The places of a buffer that hold numbers of the program's, and no padding."""
        for storage in self._storages:
            if buffer is storage.data or buffer is storage.grad:
                return storage.places(range(len(storage)))
        return range(len(buffer))
