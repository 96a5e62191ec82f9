"""Steps whose compiled calls take longer than plain ones: these are plain Python for good.

A compiled call checks what its kernel relies on and copies what goes in and out.  A step that gets a list of thousands
of numbers and reads two of them, or computes both sides of a branch of which Python mostly takes the short one, may be
a thousand times slower for it.  So the first quick calls of a step are weighed, by processor time:

1. If they take less than half of what plain calls have taken, the step is weighed no more: that is the usual case.
2. Otherwise there are rounds (`_ROUNDS`): blocks of compiled calls and of plain ones take turns.  A block tells the
   mean of its calls without the first one of each kernel, which has to look at everything, and without the dearest,
   which may have been interrupted.  The median of the blocks counts; against plain calls, the dearest of all.  A first
   plain call that takes long, and a hundred times as long as compiled ones (`_FAR`), ends that at once: the others
   would take minutes.
3. Where plain calls take less than half of the time, now and before there was a kernel, the step is given up at once:
   after some twenty calls, or in the second round if it is about a few microseconds.  Where they take less than
   `_CLEARLY`, that has to be so in `_TIMES` rounds in a row.
4. That counts only if the calls will not become quicker: because better code is on its way, or because short calls may
   still be made by C (vectorcall.py).  Otherwise the round is made again later.
5. Calls that change the kernel do not count, nor those before them in a block.  Where they are most of the calls, they
   are weighed by themselves, in the same way (step/giving_up.py).
6. A step is weighed until its kernels have won clearly, or there are no more rounds.  What has been found is never
   looked at again, and is noted for the code of the step (lives.py).
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import thread_time
from typing import Any, TypeVar

from .earnings import seconds_of_clock

T = TypeVar("T")

#: Before each round so many calls pass; its blocks have so many calls that count.
_ROUNDS = ((3, 3), (64, 16), (512, 32), (4_096, 32), (16_384, 32), (65_536, 32), (262_144, 32))
#: Blocks of a round, of compiled calls and plain ones in turn.
_BLOCKS = 5
_HALF, _CLEARLY, _TIMES = 0.5, 0.9, 3
#: A single plain call that takes so many seconds, and so many times what compiled ones take, tells enough.
_LONG, _FAR = 0.1, 100.0
#: The first calls of a kernel take so many seconds more than later ones, in any case.
_COLD = 10e-6
#: What plain calls before there was a kernel have been measured to take may be so many seconds too much.
_OF_LOOK = 5e-6
#: Where calls take one path of several (kernels/paths.py), so many pass before the first round: each path has its own
#: kernel, whose first calls take long.
FIRST_OF_PATHS = 400
#: So many calls pass before a round that is made again.
_AGAIN = 256


class Weighing:
    """What is known of the calls of a step.

    Attributes:
        is_over: whether the step is weighed no more. is_slower: whether plain calls are quicker.
        ratio: how many times longer a compiled call takes, in the last round.
        last: seconds of the last call that was noted.
        is_exact: whether plain calls of the round are what they would be for good; otherwise they may take longer.
    """

    def __init__(self) -> None:
        self.is_over = self.is_slower = False
        self.is_exact = True
        self.ratio = self.last = 0.0
        self._round, self._left, self._times = 0, _ROUNDS[0][0], 0
        self._blocks: list[list[float]] = [[]]
        self._kernels = 1

    def is_due(self) -> bool:
        """Count a call; returns whether it is to be timed."""
        self._left -= 1
        return self._left < 0

    def postpone(self, calls: int) -> None:
        """Let so many calls pass before the first one that is timed, unless there has been one."""
        if self._blocks == [[]]:
            self._left = max(self._left, calls)

    @property
    def wants_plain_call(self) -> bool:
        """Whether the call that is to be timed is a plain one."""
        return len(self._blocks) % 2 == 0

    def timed(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """What a plain call returns, which is timed."""
        started = thread_time()
        result = call(*args, **kwargs)
        self.note(thread_time() - started)
        return result

    def note(self, seconds: float) -> None:
        """Note what a call has taken."""
        self.last = max(0.0, seconds - seconds_of_clock())
        self._blocks[-1].append(self.last)

    def begin_block(self) -> None:
        """Forget the calls of the block: what is told by them is what it takes to change the kernel."""
        self._blocks[-1] = []

    def judge(self, before: float, kernels: int, may_be_quicker: Callable[[float, float], bool]) -> None:
        """After a call that was timed, see whether that is enough.

        Args:
            kernels: how many the step has.
            before: seconds of a plain call when there was no kernel.
            may_be_quicker: whether compiled calls, given what they and plain ones take, may take less later.
        """
        before -= _OF_LOOK
        if kernels > self._kernels:  # whose first calls are still to come: the round is made again
            self._kernels = kernels
            self._begin_round(self._left)
        if self.wants_plain_call and self._blocks[-1][:1] > [max(_LONG, _FAR * self._usual(self._blocks[0]))]:
            self.is_over = True
        if self.is_over or len(self._blocks[-1]) < _ROUNDS[self._round][1] + self._kernels:
            return
        if len(self._blocks) == 1 and self._usual(self._blocks[0]) < _HALF * before:
            self.is_over = True
        elif len(self._blocks) < _BLOCKS:
            self._blocks.append([])
        else:
            self._weigh(before, may_be_quicker)

    def _weigh(self, before: float, may_be_quicker: Callable[[float, float], bool]) -> None:
        """Compare the two kinds of calls of a round."""
        compiled = median(map(self._usual, self._blocks[::2]))
        plain = max(map(self._mean, self._blocks[1::2]))
        self.ratio = compiled / max(plain, 1e-9)
        if self.is_exact and compiled < _HALF * median(map(self._usual, self._blocks[1::2])):
            self.is_over = True
        elif may_be_quicker(compiled, plain):
            self._begin_round(_AGAIN)
        else:
            self._times = self._times + 1 if plain < _CLEARLY * compiled else 0
            is_clear = max(plain, before) < _HALF * compiled and (self._round > 0 or compiled - plain > _COLD)
            self._round += 1
            self.is_slower = is_clear or self._times >= _TIMES
            self.is_over = self.is_slower or self._round == len(_ROUNDS)
            if not self.is_over:
                self._begin_round(_ROUNDS[self._round][0])

    def _begin_round(self, left: int) -> None:
        """After so many calls."""
        self._left, self._blocks, self.is_exact = left, [[]], True

    def _mean(self, block: list[float]) -> float:
        """Of all calls of a block but the first ones."""
        return sum(block[self._kernels :]) / (len(block) - self._kernels)

    def _usual(self, block: list[float]) -> float:
        """The same without the dearest one."""
        return (sum(block[self._kernels :]) - max(block[self._kernels :])) / (len(block) - self._kernels - 1)
