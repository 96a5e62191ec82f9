"""Taking turns: one thread at a time may run the code of a step.

1. `turn.run(work)` waits for other threads; the same thread may enter again.  Meanwhile the gate is closed.
2. A short call needs no turn.  It holds the GIL from the moment it looks at the gate, in C, to its end.  So no other
   Python code runs in between, and if the gate is open, nothing else of the same step is under way.  If the gate is
   closed, the call does nothing and says so, and a turn is taken instead.
3. A long call only holds the lock, which costs less than a turn.  A step that has long calls keeps its gate closed,
   because other threads run Python while they are under way.
4. So does a short call whose buffers are put into its block by Python.  It holds the GIL in C, and nobody else uses
   its block; so a short call may run before it, and the gate stays open.
"""

from __future__ import annotations

from array import array
from typing import Any, Callable, TypeVar

from ..base.interruption import new_lock, recover_after_fork, with_cleanup
from .detached import attach_all

T = TypeVar("T")


class Turn:
    """A reentrant lock and a gate.

    Attributes:
        lock: what a thread holds during its turn.
        gate: one number; 0 means open.
        has_long_calls: whether the gate stays closed.
    """

    __slots__ = ("__weakref__", "gate", "has_long_calls", "lock")

    def __init__(self) -> None:
        self.lock = new_lock()
        self.gate = array("q", [0])
        self.has_long_calls = False
        recover_after_fork(self)

    def recover(self) -> None:
        """In the child of a fork, open the gate if another thread had the turn."""
        self.gate[0] = int(self.lock._is_owned() or self.has_long_calls)

    def run(self, work: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Return `work(*arguments, **named)`, run in a turn, with parameters attached."""
        attach_all()
        return self.take(work, *arguments, **named)

    def take(self, work: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """As `run`, with parameters as they are."""
        is_inside = self.lock._is_owned()

        def closed() -> T:
            self.gate[0] = 1
            return work(*arguments, **named)

        def leave() -> None:
            self.gate[0] = int(is_inside or self.has_long_calls)

        with self.lock:
            return with_cleanup(closed, leave)

    def expect_long_calls(self) -> None:
        """Close the gate for good; to be called in a turn."""
        self.has_long_calls = True
