"""When the garbage collector runs: it only costs time where much is allocated and little freed.

A trace runs without it.  A step in plain Python builds a graph, and CPython looks through it again and again while it
grows: in small language models that is more than half of their time, and in graphs with cycles 70 %.  So during plain
calls it looks rarely:

1. In a call, young objects are looked through when there are `_IN_A_CALL` of them, and older ones every second time.
   That bounds what a call leaves that makes many graphs.
2. What calls have left adds up.  When it is as much as `_left.limit`, everything is looked through; but not if the
   collections that CPython makes anyhow have found next to nothing, because the graphs are freed without them.
3. Where that has found little, or has taken longer than the calls, because there is much else, the limit doubles;
   otherwise it is halved.

A program with a policy of its own, that has switched the collector off or set other thresholds, keeps that.
"""

from __future__ import annotations

import gc
from time import perf_counter
from typing import Callable, TypeVar

from .interruption import new_lock, with_cleanup

T = TypeVar("T")

#: The thresholds of CPython, by version.
_USUAL = frozenset({(700, 10, 10), (2000, 10, 10), (2000, 10, 0)})
#: Those during a plain call.
_IN_A_CALL = (500_000, 2, 2)
#: So many objects may be left by plain calls, at least and at most, before everything is looked through.
_LEAST, _MOST = 300_000, 2_400_000
#: The parts of what was left that are much, and next to nothing.
_MUCH, _LITTLE = 0.125, 0.01


def without_garbage_collection(work: Callable[[], T]) -> T:
    """Return `work()`, run with the garbage collector switched off; afterwards its state is restored."""
    enabled = gc.isenabled()

    def uncollected() -> T:
        gc.disable()
        return work()

    def restore() -> None:
        if enabled:
            gc.enable()

    return with_cleanup(uncollected, restore)


class _Left:
    """What plain calls have left since everything was looked through.

    Attributes:
        objects: how many. seconds: how long the calls have taken. limit: how many objects there may be.
    """

    def __init__(self) -> None:
        self.objects, self.seconds, self.limit = 0, 0.0, _LEAST
        self._collected = 0  # by then, in this process
        self._lock = new_lock()

    def add(self, objects: int, seconds: float) -> None:
        """A call has taken so long and left so many objects more."""
        with self._lock:
            self.objects, self.seconds = self.objects + objects, self.seconds + seconds
            if self.objects < self.limit:
                return
            before, calls = self.objects, self.seconds
            may_have_cycles = _collected() - self._collected > _LITTLE * before
            if not may_have_cycles and self.limit < _MOST:  # those collections may only be to come
                may_have_cycles = objects > self.limit
                self.limit *= 2
                if not may_have_cycles:
                    return
            self.objects, self.seconds = 0, 0.0
        if may_have_cycles:
            started = perf_counter()
            is_worth_it = gc.collect() > _MUCH * before and perf_counter() - started < calls
            self.limit = max(self.limit // 2, _LEAST) if is_worth_it else min(2 * self.limit, _MOST)
        self._collected = _collected()


def _collected() -> int:
    """How many objects have been found to be garbage."""
    return sum(generation["collected"] for generation in gc.get_stats())


_left = _Left()


def with_few_collections(work: Callable[[], T]) -> T:
    """Return `work()`, which builds a graph and drops it, while the garbage collector looks at it rarely."""
    if not hasattr(gc, "get_threshold") or not gc.isenabled() or (usual := gc.get_threshold()) not in _USUAL:
        return work()

    started, before = perf_counter(), gc.get_stats()[0]["collections"]

    def uncollected() -> T:
        gc.set_threshold(*_IN_A_CALL)
        return work()

    def restore() -> None:
        if gc.get_threshold() == _IN_A_CALL:  # and no other policy has been chosen in the call
            gc.set_threshold(*usual)
            collections = gc.get_stats()[0]["collections"] - before
            _left.add(gc.get_count()[0] + collections * _IN_A_CALL[0], perf_counter() - started)

    return with_cleanup(uncollected, restore)


def leave_out() -> None:
    """Let the garbage collector look no more at what there is now, such as the objects that kernels keep.

    Of that, what becomes garbage with cycles is collected the next time.
    """
    if hasattr(gc, "freeze") and gc.isenabled():
        gc.unfreeze()
        gc.collect()
        gc.freeze()
