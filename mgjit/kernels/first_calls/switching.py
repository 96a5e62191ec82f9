"""Steps whose calls change their kernel so often that plain Python is quicker: very short ones.

A call that takes another kernel than the one before does not find it by the quick path, which takes some microseconds.
Where a plain call takes less than that, and most calls are such changes, the step is better off as plain Python:

1. From the `_FIRST`-th compiled call on, so that quick calls are there, which may do without the change, the next
   changes after `_BETWEEN` others are timed: `_PAIRS` are made by kernels, and as many by plain Python, in turn.
2. If plain calls took less than `_PART` of the time of changes, by the medians, `_TIMES` times in a row, and more than
   half of the calls were changes, the step is plain for good (`Leaving._give_up_kernels`).
3. Otherwise twice as many changes pass before the next ones are timed: to time a plain call takes much longer than to
   make it, because parameters become ordinary objects for it.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import thread_time
from typing import Any, TypeVar

from .earnings import seconds_of_clock

T = TypeVar("T")

_FIRST, _BETWEEN, _PAIRS, _TIMES = 10_000, 256, 16, 3
#: The part of the time of a change that a plain call takes at most.
_PART = 0.75


class Switching:
    """What is known of the changes of a step."""

    def __init__(self) -> None:
        self._changes, self._calls, self._in_a_row = 0, 0, 0
        self._between = _BETWEEN
        self._compiled: list[float] = []  # seconds of those that have been timed
        self._plain: list[float] = []

    def is_due(self, calls: int) -> bool:
        """Note a change; returns whether it is to be timed.

        Args:
            calls: compiled ones so far.
        """
        self._changes += 1
        return self._changes >= self._between and calls >= _FIRST

    @property
    def wants_plain_call(self) -> bool:
        """Whether the next call is to be plain, and timed."""
        return len(self._compiled) > len(self._plain)

    def timed(self, call: Callable[..., T], *args: Any) -> T:
        """What a call returns that changes the kernel, or that is plain because one was timed."""
        times = self._plain if self.wants_plain_call else self._compiled
        started = thread_time()
        result = call(*args)
        times.append(thread_time() - started - seconds_of_clock())
        return result

    def is_too_much(self, calls: int) -> bool:
        """Whether the step is to be plain.

        Args:
            calls: compiled ones so far.
        """
        if len(self._plain) < _PAIRS:
            return False
        is_mostly = 2 * self._changes > calls - self._calls
        is_quicker = median(self._plain) < _PART * median(self._compiled)
        self._in_a_row = self._in_a_row + 1 if is_mostly and is_quicker else 0
        self._between = _BETWEEN if self._in_a_row else 2 * self._between
        self._changes, self._calls, self._compiled, self._plain = 0, calls, [], []
        return self._in_a_row >= _TIMES
