"""Count and time, by processor seconds, the iterations of a loop, while most of them do nothing for that.

    if SECTION.on and SECTION.due() and SECTION.ready:

1. `due` is a function of Python's own, which is false for as many iterations as were let go by (`let_go`), and then
   true until there are others.  An iteration without a question takes about 0.05 us, and 0.01 us if `on` is false.
2. At a question, and when the loop is left, it is known how many iterations have gone by since the last look at the
   clock (`count`).  What comes between the end of a loop and its next beginning does not count.
3. In the same way, loops that take little time are begun without being counted (`enters`), as often as makes counting
   cheap.  What they do is taken to be like what was counted.
"""

from __future__ import annotations

from functools import partial
from operator import length_hint
from time import thread_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Questions are at least so many seconds apart, as far as iterations are alike; and at most so many iterations.
_APART, _MOST = 0.005, 10_000
#: What counting the iterations of a loop costs from its beginning to its end, at most: seconds, and a part of its time.
_COUNTING, _PART = 3e-6, 0.01
#: From so many loops on it is known how long one takes.
_KNOWN = 8


class Counted:
    """The iterations of a loop.

    Attributes:
        on: whether they are counted. due: whether there is a question. enters: whether the next loop is counted.
        done: iterations that have ended. iteration: seconds that one of them has taken, on average.
        entries: how often the loop has begun, as far as that was counted. skipped: the other times.
    """

    __slots__ = ("asked", "bare", "base", "done", "due", "enters", "entries", "iteration", "mark", "skipped", "unseen")

    on = True

    def __init__(self) -> None:
        self.done = self.entries = self.skipped = self.base = 0
        self.iteration = self.mark = 0.0
        self.asked = False
        self.unseen: Any = iter(b"")
        self.enters: Any = partial(next, self.unseen, True)
        self.let_go(0)

    def let_go(self, iterations: int) -> None:
        """Let so many iterations go by without a question."""
        self.base = iterations
        self.bare: Any = iter(bytes(iterations))
        self.due: Any = partial(next, self.bare, True)

    def begin(self) -> None:
        """The loop begins."""
        self.mark, self.base, self.asked = thread_time(), length_hint(self.bare), False
        self.entries += 1

    def gone_by(self) -> int:
        """How many iterations have ended since this was last asked, or the loop has begun."""
        left = length_hint(self.bare)
        found, self.base = self.base - left + self.asked, left
        return found

    def count(self, is_question: bool) -> None:
        """Count what has gone by; at a question, an iteration begins."""
        now, found = thread_time(), self.gone_by()
        if found:
            self.done += found
            self.iteration += (now - self.mark - found * self.iteration) / self.done
        if found or not is_question:
            self.mark = now
        self.asked = is_question

    def rest(self) -> None:
        """Let iterations go by after a question, so that the next one comes in time."""
        self.let_go(min(_MOST, int(_APART / max(self.iteration, 1e-9))) if self.done else 0)

    def leave(self) -> None:
        """The loop has ended: let others begin without being counted, if they take little time."""
        self.count(False)
        if self.entries >= _KNOWN:
            each = max(self.iteration * self.done / self.entries, 1e-9)
            more = min(_MOST, int(_COUNTING / (_PART * each)))
            self.unseen = iter(bytes(more))
            self.enters = partial(next, self.unseen, True)
            self.skipped += more

    def total(self) -> float:
        """How many iterations there have been, counted or not."""
        skipped = self.skipped - length_hint(self.unseen)
        return self.done + (self.done * skipped / self.entries if skipped else 0.0)
