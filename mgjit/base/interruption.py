"""Work that never leaves anything half done, whatever exception is raised where.

Ctrl-C, a handler of SIGTERM or a MemoryError may raise between any two lines of Python, also in an `__enter__`, in an
`__exit__` and at the first line of a `finally`.  Three rules keep that harmless:

1. What a call changes is prepared first, where nobody sees it, and then made visible by a few assignments that can be
   repeated: the cleanup.
2. `with_cleanup(work, cleanup)` calls `cleanup` after `work`, and once more if an exception is raised anywhere, even
   in `cleanup` itself.  `cleanup` must be repeatable, and must find out for itself how far `work` got.
3. Locks are taken by `with lock:` and nothing else: that is C, and no signal is delivered between taking the lock and
   entering the block.

A fork copies the unfinished work of other threads and the locks that they hold, but not the threads.  The child runs
the cleanups for them, and releases their locks if they come from `new_lock`.
"""

from __future__ import annotations

import os
import threading
from itertools import count
from threading import get_ident
from typing import Any, Callable, TypeVar
from weakref import WeakSet

T = TypeVar("T")

#: Work that is under way: by number, its thread and its cleanup.
_under_way: dict[int, tuple[int, Callable[[], Any]]] = {}
_numbers = count()
_locks: WeakSet[Any] = WeakSet()
#: Objects whose `recover` is called in the child of a fork.
_recovering: WeakSet[Any] = WeakSet()


def with_cleanup(work: Callable[[], T], cleanup: Callable[[], Any]) -> T:
    """Return `work()`, and call `cleanup()` afterwards, also if an exception is raised anywhere in between.

    Args:
        cleanup: may be called more than once, and even if `work` has not begun.
    """
    number = next(_numbers)
    try:
        try:
            _under_way[number] = (get_ident(), cleanup)
            return work()
        finally:
            cleanup()
            _under_way.pop(number, None)
    except BaseException:
        cleanup()
        _under_way.pop(number, None)
        raise


def recover_after_fork(thing: Any) -> None:
    """Have `thing.recover()` called in the child of a fork, which may happen at any time."""
    _recovering.add(thing)


def new_lock() -> Any:
    """A reentrant lock that is open in the child of a fork unless the thread that forked holds it."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _forget_other_threads() -> None:
    me = get_ident()
    for lock in _locks:
        if not lock._is_owned():
            lock._at_fork_reinit()
    for number in sorted(_under_way, reverse=True):
        thread, cleanup = _under_way[number]
        if thread != me:
            del _under_way[number]
            cleanup()
    for thing in _recovering:
        thing.recover()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)
