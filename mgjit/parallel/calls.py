"""Single calls of members that are settled: nothing is looked for, made or checked that the call before has found.

1. After a call in which the code of one kernel worked on the memory of all members (course.py), `Calls` keeps for each
   member a pointer block, room for its arguments, and room for its results.
2. The next call packs the arguments, and runs the blocks: in this thread if there is little work, else in the pool.
3. Whatever is not as it was (arguments of another structure, a kernel that is to be compared, a member that was
   changed) is left to course.py, which handles every case and every error.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from ..base import ffi
from ..base.interruption import with_cleanup
from ..engine.leaks import PlainCall
from ..kernels.side_by_side import pool
from ..kernels.side_by_side.memory import Bound, Memory, Scratch
from ..runtime.kernel import Kernel, check_index
from ..tracing.call.collected import collect_results
from ..tracing.draws.plan import DrawPlan
from .member import MemberState, changes

#: Less work than so many seconds is done by one thread, because waking another would take as long.
SECONDS_FOR_THREADS = 200e-6


def seconds_of(kernel: Kernel) -> float:
    """How long a row takes, as far as it is known."""
    return kernel.seconds_a_row or (kernel.seconds_a_call if kernel.timed_calls else 0.0)


class _One:
    """A call of one member, which can be run in any thread."""

    def __init__(self, kernel: Kernel, memory: Memory, scratch: Scratch) -> None:
        assert kernel.code.library is not None
        self.memory, self._scratch = memory, scratch
        self.frame, self.outputs = kernel.plan.frame(), kernel.outputs[:]
        self.block = Bound(kernel, memory).pointer_block()
        self._slots = [kernel.slot("input", region) for region in range(1, len(kernel.plan.buffers) + 1)]
        if self.frame.packed:
            self.block.set(kernel.slot("input", 0), self.frame.packed)
        if self.outputs:
            self.block.set(kernel.slot("output", 0), self.outputs)
        #: For mgjit_loop: one row at a time, how many have been run, no pointer that moves (codegen/entries.py).
        self._numbers = array("q", [1, 0, 0])
        both = ffi.PointerBlock(2)
        both.set_block(0, self.block)
        both.set(1, self._numbers)
        self._call = kernel.code.library.bind("mgjit_loop", both)
        self._end = 0

    def advance(self) -> None:
        """Let `run` make one more call, with the arguments in the frame."""
        for slot, buffer in zip(self._slots, self.frame.buffers):
            self.block.set(slot, buffer)
        self._end = self._numbers[1] + 1

    def run(self, thread: int) -> None:
        """Make it, in a thread; does nothing once that is done."""
        if self._numbers[1] < self._end:
            if self._scratch.blocks:
                self.block.set(self._scratch.slot, self._scratch.blocks[thread])
            self._call()


class Calls:
    """Calls of all members by one kernel.

    Args:
        kernel: that has just run on the memory of all members.
        members: of the ensemble. threads: how many there may be.
        is_settled: whether a kernel has nothing else to do in so many calls.

    Attributes:
        threads: as given.
    """

    def __init__(
        self, kernel: Kernel, members: Sequence[MemberState], threads: int, is_settled: Callable[[Kernel, int], bool]
    ) -> None:
        self._kernel, self._code, self._members, self.threads = kernel, kernel.code, members, threads
        self._is_settled = is_settled
        scratch = Scratch(kernel, threads)
        memories = [member.memory for member in members]
        self._ones = [_One(kernel, memory, scratch) for memory in memories if memory is not None]

    def run(self, arguments: Sequence[Sequence[Any]], counter: array[int], note: Callable[[], Any]) -> Any:
        """Make a call of each member; returns the columns of their results, or None if something is not as it was.

        Args:
            arguments: of each member. counter: counts the calls of the kernel. note: is told when all are made.

        Raises:
            IndexRangeError: a run-time index is out of range; nothing was done.
        """
        kernel, ones = self._kernel, self._ones
        if not (self._are_as_they_were() and self._pack(arguments)):
            return None
        for one in ones:
            for check in kernel.checks:
                check_index(check, kernel.plan, one.frame)
        if not self._is_settled(kernel, len(ones)):
            return None
        states = [] if kernel.draws is None else self._draw(kernel.draws)
        left = [member.calls_left - 1 for member in self._members]
        calls = counter[0] + len(ones)
        for one in ones:
            one.advance()
        tasks = [one.run for one in ones]

        def finish() -> None:
            for task in tasks:
                task(0)
            for member, number in zip(self._members, left):
                member.calls_left = number
            for one, state in zip(ones, states):
                one.memory.note_drawn(kernel, state)
            counter[0] = calls
            note()

        if seconds_of(kernel) * len(ones) > SECONDS_FOR_THREADS:
            with_cleanup(lambda: pool.run(tasks, self.threads), finish)
        else:
            with_cleanup(lambda: None, finish)
        return collect_results([kernel.result(one.outputs, given) for one, given in zip(ones, arguments)])

    def _are_as_they_were(self) -> bool:
        members = zip(self._members, self._ones)
        return self._kernel.code is self._code and all(
            member.memory is one.memory and member.calls_left > 0 and one.memory.is_of(self._kernel)
            for member, one in members
        )

    def _pack(self, arguments: Sequence[Sequence[Any]]) -> bool:
        pack, before, first = self._kernel.plan.pack, None, self._ones[0].frame
        try:
            for one, given in zip(self._ones, arguments):
                if given is before:  # the same for all
                    one.frame.packed[:] = first.packed
                    one.frame.buffers[:] = first.buffers
                elif not pack(given, one.frame) or changes(self._kernel, given):
                    return False
                before = arguments[0]
        except PlainCall:
            return False
        return True

    def _draw(self, plan: DrawPlan) -> list[list[Any]]:
        """Draw the numbers of all members; returns the states of their generators after that."""
        before, slot = plan.states(), self._kernel.slot("input", len(self._kernel.plan.buffers) + 1)

        def draw() -> list[list[Any]]:
            drawn = [one.memory.drawn(self._kernel, 1) for one in self._ones]
            for one, (numbers, _) in zip(self._ones, drawn):
                one.block.set(slot, numbers)
            return [states for _, states in drawn]

        return with_cleanup(draw, lambda: plan.restore(before))
