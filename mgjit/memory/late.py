"""Gradients that are computed when somebody looks at them.

The gradients that a call leaves are a function of a few numbers, which its code keeps
(compiler/simplify/late_gradients.py).  Most calls are followed by others, which leave others.

1. Quick calls of the one kernel that works on the gradients of a storage leave them out, and note that they are due.
   The next such call only keeps other numbers.
2. Whoever reads or writes them, by a parameter or in memory, comes by `storage.grad`, which computes them first.  So do
   all other ways of running the kernel, which compute gradients at once.
3. When another kernel comes that works on them, they are not late any more.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

from ..base.interruption import new_lock, with_cleanup
from .buffers import ParameterStorage


class Late:
    """What a kernel and its memory say to each other.

    Attributes:
        words: whether gradients are due, which the code says, and whether they may be late, which it is told.
        compute: computes those that are due.
    """

    def __init__(self) -> None:
        self.words = array("q", [0, 1])
        self.compute: Callable[[], Any] = int
        self._lock = new_lock()
        self._is_computing = False

    def settle(self) -> None:
        """Let no gradients be due; another thread may be computing them."""
        while self.words[0] or self._is_computing:
            with self._lock:
                self._is_computing = True
                with_cleanup(self.compute, self._finish)

    def _finish(self) -> None:
        self._is_computing = False

    def end(self) -> None:
        """Let none be late from now on."""
        self.words[1] = 0
        self.settle()


class LateStorage(ParameterStorage):
    """Memory of parameters whose gradients may be due."""

    __slots__ = ()

    @property
    def grad(self) -> Any:
        """The gradients, none of which is due."""
        self.settle()
        return _memory_of_gradients(self)


_memory_of_gradients: Callable[[ParameterStorage], Any] = ParameterStorage.__dict__["grad"].__get__


def use_gradients(storage: ParameterStorage, user: Any) -> None:
    """Note that a kernel is going to work on the gradients of a storage."""
    if type(storage) in (ParameterStorage, LateStorage):
        if storage.users is None:
            storage.users = WeakSet()
        storage.users.add(user)
        if storage.late is not None:
            storage.late.end()


def late_gradients(storages: Sequence[ParameterStorage], user: Any) -> Late | None:
    """What lets a kernel, which has been noted, leave the gradients of storages; None if it must not."""
    for storage in storages:
        may_be_late = type(storage) in (ParameterStorage, LateStorage) and not storage.has_homes
        if not may_be_late or [*(storage.users or ())] != [user]:
            return None
    late = Late()
    for storage in storages:
        storage.settle()
        storage.late = late
        storage.__class__ = LateStorage
    return late
