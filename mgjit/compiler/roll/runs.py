"""Facts about a run of repeating shapes, kept so that the search for loops does not recompute them for every item.

A run repeats the shapes of its items with a period; whether it is a loop depends on the operands (roll/roll.py), and
on the item at which iterations start.  If there is no loop, the search tries one item of the run after the other, and
without these facts each attempt would take time proportional to the length of an iteration.

1. `PossibleStarts` compares all operands of a run with those one period later, once, and notes which starts this rules
   out.
2. `Rotations` counts the operands that cross each place where iterations may be cut.  Where the wiring repeats, these
   counts are the same for the next iteration, even if it starts some items later; so only operands that do not repeat
   change them.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate


class PossibleStarts:
    """Where in a run a loop may start, as far as any two iterations that follow each other tell.

    Two operands one period apart, `first` and `second`, are wired alike when their distance is the period.  If it is
    not, a loop that starts at `s` cannot contain both unless they read from outside of it: in the first two iterations,
    from before `s` and from before the second iteration; in later ones, both from before `s`.  So each such pair rules
    out an interval of starts.

    Args:
        columns: the operands of all records.
        starts: the first record of each item.
        k, end: the run, in items.
        period: of the run, in records.
        fewest: iterations of a loop.
    """

    def __init__(
        self, columns: Sequence[array[int]], starts: Sequence[int], k: int, end: int, period: int, fewest: int
    ) -> None:
        self._offset = k
        base, stop = starts[k], starts[end]
        changes = [0] * (stop - base + 1)

        def rule_out(low: int, high: int) -> None:  # low < s <= high
            low = max(low + 1, base)
            if low <= high:
                changes[low - base] += 1
                changes[high - base + 1] -= 1

        for column in columns:
            firsts, seconds = column[base : stop - period], column[base + period : stop]
            for position, (first, second) in enumerate(zip(firsts, seconds), base):
                if second - first != period and (first >= base or second >= base):
                    rule_out(position - period, max(first, second - period))
                    rule_out(position - (fewest - 1) * period, min(position - period, max(first, second)))
        ruled_out = list(accumulate(changes))
        #: For each item of the run, the next one where a loop may start.
        self._next = following = [end] * (end - k + 1)
        for item in range(end - 1, k - 1, -1):
            following[item - k] = following[item - k + 1] if ruled_out[starts[item] - base] else item

    def has_any(self, k: int, period: int) -> bool:
        """Whether a loop may start at one of `period` items from `k` on."""
        return self._next[k - self._offset] < k + period


class Rotations:
    """The offsets at which the iterations of a run may start.

    Counted are the operands of one iteration that are computed less than a period before they are used, for each place
    between the two; places are numbers modulo the period.

    Args:
        columns: the operands of all records.
        starts: the first record of each item.
        period: of the run, in items.
        flat_period: of the run, in records.
    """

    def __init__(self, columns: Sequence[array[int]], starts: Sequence[int], period: int, flat_period: int) -> None:
        self._columns, self._starts, self._period, self._flat_period = columns, starts, period, flat_period
        self._at = -1  # the first record of the iteration that is counted
        self._changes = [0] * (flat_period + 1)

    def best(self, k: int) -> list[int]:
        """The offsets for a run from item `k` on, best first: no offset, unless another carries less.

        `k` must not decrease from call to call.
        """
        starts, period, flat_period = self._starts, self._period, self._flat_period
        self._move(starts[k + period])  # the second iteration, which is typical
        counts = list(accumulate(self._changes))
        cost = [counts[start % flat_period] for start in starts[k : k + period]]
        least = min(cost)
        return [0] if least == cost[0] else [cost.index(least), 0]

    def _move(self, at: int) -> None:
        """Count for the iteration that begins with the record `at`."""
        period, before = self._flat_period, self._at
        if before < 0 or at - before >= period:
            self._changes = [0] * (period + 1)
            for column in self._columns:
                self._count(at, column[at : at + period], 1)
        else:
            for column in self._columns:
                leaving, entering = column[before:at], column[before + period : at + period]
                for position, (old, new) in enumerate(zip(leaving, entering), before):
                    if new - old != period:
                        self._count(position, (old,), -1)
                        self._count(position + period, (new,), 1)
        self._at = at

    def _count(self, at: int, operands: Sequence[int], times: int) -> None:
        period, changes = self._flat_period, self._changes
        for position, operand in enumerate(operands, at):
            if operand >= 0 and position - operand < period:  # reaches across the places operand + 1 .. position
                first, last = (operand + 1) % period, position % period
                changes[first] += times
                changes[last + 1] -= times
                if first > last:
                    changes[0] += times
