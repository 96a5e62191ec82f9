"""Another order of the records of a trace, in which gradients are added up as a class adds them.

A backward pass adds contributions in the reverse order of the records that make them.  So some records have to come
before others, besides after their operands:

1. Each record has a place where it would best be: where it is; one that was added later, right after its operands.
2. When that is an order in which every record comes after those that it needs, and before those that it has to be
   before, it is taken.
3. Otherwise, of all records that can come next, the one with the first place comes (topological sorting after Kahn,
   Communications of the ACM 5, 1962).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from . import opcodes as ops
from .flow import NoFlow
from .recorder import Recorder


class Arrangement:
    """The order of the records since memory was changed last.

    Args:
        first_added: records from here on have no place of their own.
    """

    def __init__(self, recorder: Recorder, first_added: int) -> None:
        self._recorder, self._first_added = recorder, first_added
        self._start = recorder.last_change
        self._followers: defaultdict[int, list[int]] = defaultdict(list)

    def keep_order(self, records: Sequence[int]) -> None:
        """Let these records come in this order.

        Raises:
            NoFlow: some of them cannot be moved any more.
        """
        for first, second in zip(records, records[1:]):
            if first < self._start or second < self._start:
                if first > second:
                    raise NoFlow("it adds gradients in an order that memory which was changed in between rules out")
            elif first != second:
                self._followers[first].append(second)

    def apply(self) -> None:
        """Rearrange the records.

        Raises:
            NoFlow: there is no such order.
        """
        places = self._places()
        order = sorted(range(self._start, len(self._recorder.op)), key=places.__getitem__)
        if not self._is_possible(order):
            order = self._sorted(places)
        if order != list(range(self._start, len(self._recorder.op))):
            self._recorder.rearrange(self._start, order)

    def _places(self) -> list[int]:
        places = list(range(len(self._recorder.op)))
        for record in range(max(self._first_added, self._start), len(places)):
            places[record] = max((places[o] for o in self._operands(record)), default=self._start)
        return places

    def _operands(self, record: int) -> list[int]:
        recorder = self._recorder
        found = (recorder.a[record], recorder.b[record], recorder.third.get(record, ops.NO_OPERAND))
        return [operand for operand in found if operand >= 0]

    def _is_possible(self, order: list[int]) -> bool:
        position = [-1] * len(self._recorder.op)
        for number, record in enumerate(order):
            position[record] = number
        return all(
            position[operand] < position[record] for record in order for operand in self._operands(record)
        ) and all(position[first] < position[second] for first, others in self._followers.items() for second in others)

    def _sorted(self, places: list[int]) -> list[int]:
        start, end = self._start, len(self._recorder.op)
        waits_for = [0] * (end - start)
        followers: list[list[int]] = [[] for _ in range(end - start)]
        for record in range(start, end):
            for operand in self._operands(record):
                if operand >= start:
                    followers[operand - start].append(record)
                    waits_for[record - start] += 1
        for first, others in self._followers.items():
            followers[first - start] += others
            for second in others:
                waits_for[second - start] += 1
        ready = [(places[record], record) for record in range(start, end) if not waits_for[record - start]]
        heapify(ready)
        order = []
        while ready:
            _, record = heappop(ready)
            order.append(record)
            for follower in followers[record - start]:
                waits_for[follower - start] -= 1
                if not waits_for[follower - start]:
                    heappush(ready, (places[follower], follower))
        if len(order) < end - start:
            raise NoFlow("it adds gradients in an order in which numbers would be needed before they are there")
        return order
