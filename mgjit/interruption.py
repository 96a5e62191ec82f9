"""Work that leaves nothing half done, whatever is raised where.

Ctrl-C, a handler of SIGTERM or a MemoryError may raise between any two lines of Python, also in an `__enter__`, in an
`__exit__` and at the first line of a `finally`.  Three rules keep that harmless:

1. What a call changes is prepared first, where nobody sees it, and then shown by a few assignments that can be
   repeated: `settle`.
2. `settled(work, settle)` runs `settle` after `work`; when something is raised, in `settle` itself as well, it does so
   once more.  `settle` finds out for itself how far `work` has come.
3. Locks are taken by `with lock:` and nothing else: that is C, and no signal is delivered between taking and entering.

A fork copies what other threads have under way and the locks they hold, and not the threads.  The child settles the
one for them and opens the others, as far as they come from `new_lock`.
"""

from __future__ import annotations

import os
import threading
from itertools import count
from threading import get_ident
from typing import Any, Callable, TypeVar
from weakref import WeakSet

T = TypeVar("T")

#: What is under way: by number, the thread and its `settle`.
_under_way: dict[int, tuple[int, Callable[[], Any]]] = {}
_numbers = count()
_locks: WeakSet[Any] = WeakSet()
#: What settles something itself, in the child of a fork.
_settlers: WeakSet[Any] = WeakSet()


def settled(work: Callable[[], T], settle: Callable[[], Any]) -> T:
    """`work()`, and afterwards `settle()`, also when anything is raised anywhere in between.

    Args:
        settle: may be called more than once, also when `work` has not begun.
    """
    number = next(_numbers)
    try:
        try:
            _under_way[number] = (get_ident(), settle)
            return work()
        finally:
            settle()
            _under_way.pop(number, None)
    except BaseException:
        settle()
        _under_way.pop(number, None)
        raise


def settle_after_fork(thing: Any) -> None:
    """Let `thing.settle()` be called in the child of a fork, which may come at any time."""
    _settlers.add(thing)


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
        thread, settle = _under_way[number]
        if thread != me:
            del _under_way[number]
            settle()
    for thing in _settlers:
        thing.settle()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)
