"""Who may run code of a step: one thread at a time.

1. `with turn:` waits for other threads; the same thread may enter again.  In between, the gate is closed.
2. A short call needs no turn.  It holds the GIL from its look at the gate, in C, to its end, so nothing else of
   Python happens in between, and nothing of the same step is under way when the gate is open.  When it is closed,
   the call does nothing and says so, and takes a turn instead.
3. A long call only holds the lock, which costs less than a turn.  A step that has such calls keeps its gate closed,
   because they let other threads run Python meanwhile.
"""

from __future__ import annotations

import threading
from array import array
from types import TracebackType


class Turn:
    """A reentrant lock and a gate.

    Attributes:
        lock: what a thread holds during its turn.
        gate: one number, 0 when it is open.
        has_long_calls: whether it stays closed.
    """

    __slots__ = ("gate", "has_long_calls", "lock")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.gate = array("q", [0])
        self.has_long_calls = False

    def __enter__(self) -> None:
        self.lock.acquire()
        self.gate[0] += 1

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.gate[0] -= 1
        self.lock.release()

    def expect_long_calls(self) -> None:
        """Close the gate for good; to be called in a turn."""
        if not self.has_long_calls:
            self.has_long_calls = True
            self.gate[0] += 1
