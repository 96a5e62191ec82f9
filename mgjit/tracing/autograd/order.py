"""Reorder the records of a trace so that gradients are added up in the order in which a class adds them.

A backward pass adds contributions in reverse order of the records that make them.  So, besides coming after their
operands, some records must come before others:

1. Each record has a preferred place: where it is, or, for one that was added later, right after its operands.
2. If the order by preferred places satisfies all constraints, it is used.
3. Otherwise, if that satisfies them, the order in which the class has visited its nodes, which is the one in which they
   contribute, read backwards.  What else they need comes right before it is needed.
4. Otherwise, records are taken in the preferred order for as long as possible, and then the first one that is ready
   (topological sorting after Kahn, Communications of the ACM 5, 1962).  Following a run for as long as possible moves
   whole rows of products rather than single ones, so that loops can still be found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import chain, compress
from operator import gt, not_

from ...ir import opcodes as ops
from ..record.recorder import Recorder
from .flow import NoFlow


class Arrangement:
    """The order of the records since the last change of memory.

    Args:
        first_added: records from here on were added later, and have no place yet.
    """

    def __init__(self, recorder: Recorder, first_added: int) -> None:
        self._recorder, self._first_added = recorder, first_added
        self._start = recorder.last_change
        self._firsts: list[int] = []
        self._seconds: list[int] = []  # each must come after the first one at the same place

    def keep_order(self, records: Sequence[int]) -> None:
        """Require these records to come in this order.

        Raises:
            NoFlow: some of them can no longer be moved.
        """
        if min(records) >= self._start:
            self._firsts += records[:-1]
            self._seconds += records[1:]
            return
        for first, second in zip(records, records[1:]):
            if first >= self._start and second >= self._start:
                self._firsts.append(first)
                self._seconds.append(second)
            elif first > second:
                raise NoFlow("it adds gradients in an order that memory which was changed in between rules out")

    def apply(self, senders: Sequence[int] = ()) -> None:
        """Rearrange the records.

        Args:
            senders: the records that make contributions, the last one first.

        Raises:
            NoFlow: there is no such order.
        """
        if self._needs_earlier():
            raise NoFlow("nodes from before memory was changed need numbers that were copied after it")
        order = None if self._goes_back() else self._by_places()
        if order is None or not self._is_possible(order):
            visited = self._as_visited(senders)
            in_turn = self._keeps_order(self._positions(visited))
            order = visited if in_turn else self._sorted(self._by_places() if order is None else order)
        if order != list(range(self._start, len(self._recorder.op))):
            self._recorder.rearrange(self._start, order)

    def _goes_back(self) -> bool:
        """Whether, of two records that have been there before, the later one is to come first: as no place tells."""
        return any(second < first < self._first_added for first, second in zip(self._firsts, self._seconds))

    def _needs_earlier(self) -> bool:
        """Whether a record that cannot be moved has an operand that comes after it."""
        start, recorder = self._start, self._recorder
        if not start:
            return False
        thirds = (operand for record, operand in recorder.third.items() if record < start)
        return any(max(column, default=-1) >= start for column in (recorder.a[:start], recorder.b[:start], thirds))

    def _by_places(self) -> list[int]:
        """The records by preferred place: those that were added later come right after their operands."""
        start, recorder = self._start, self._recorder
        first, count = max(self._first_added, start), len(recorder.op)
        places: list[int] = []  # of those that were added
        after: defaultdict[int, list[int]] = defaultdict(list)
        third = recorder.third.get
        for record, a, b in zip(range(first, count), recorder.a[first:], recorder.b[first:]):
            c = third(record, ops.NO_OPERAND)
            place = max(
                places[a - first] if a >= first else a,
                places[b - first] if b >= first else b,
                places[c - first] if c >= first else c,
            )
            places.append(place if place >= 0 else start)
            after[places[-1]].append(record)
        order = [record for place in sorted(after) if place < start for record in after.pop(place)]
        done = start
        for place in sorted(after):
            order += range(done, min(place + 1, first))
            order += after[place]
            done = max(done, min(place + 1, first))
        return [*order, *range(done, first)]

    def _as_visited(self, senders: Sequence[int]) -> list[int]:
        """The senders, each after what it needs; then all other records."""
        start, recorder = self._start, self._recorder
        a, b, third = recorder.a, recorder.b, recorder.third
        first, count = max(self._first_added, start), len(recorder.op)
        is_placed = bytearray(b"\1") * start + bytearray(count - start)
        order: list[int] = []
        place = order.append
        for wanted in chain(senders, range(start, first)):
            if is_placed[wanted]:
                continue
            x, y = a[wanted], b[wanted]
            if (x < 0 or is_placed[x]) and (y < 0 or is_placed[y]) and wanted not in third:
                is_placed[wanted] = 1
                place(wanted)
                continue
            pending = [wanted]
            while pending:
                record = pending[-1]
                operand = a[record]
                if operand < 0 or is_placed[operand]:
                    operand = b[record]
                    if operand < 0 or is_placed[operand]:
                        operand = third.get(record, ops.NO_OPERAND)
                if operand >= 0 and not is_placed[operand]:
                    pending.append(operand)
                else:
                    is_placed[record] = 1
                    place(pending.pop())
        order += compress(range(first, count), map(not_, is_placed[first:]))  # they come after their operands
        return order

    def _is_possible(self, order: list[int]) -> bool:
        """Whether the order by preferred places satisfies all constraints."""
        recorder, start, first = self._recorder, self._start, self._first_added
        position = self._positions(order)
        if not self._keeps_order(position):
            return False
        # What was added comes after its operands, and what was there is in order; but it may need what was added.
        columns = (enumerate(column[start:first], start) for column in (recorder.a, recorder.b))
        added = ((record, operand) for record, operand in chain(*columns) if operand >= first)
        thirds = recorder.third.items()
        return all(o < start or r < start or position[o] < position[r] for r, o in chain(added, thirds))

    def _positions(self, order: list[int]) -> list[int]:
        """By record; what cannot be moved comes first."""
        position = [-1] * self._start + [0] * len(order)
        for number, record in enumerate(order):
            position[record] = number
        return position

    def _keeps_order(self, position: list[int]) -> bool:
        place = position.__getitem__
        return not any(map(gt, map(place, self._firsts), map(place, self._seconds)))

    def _sorted(self, order: list[int]) -> list[int]:
        """The order, changed only as far as the constraints require."""
        start, count = self._start, len(order)
        rank = [0] * count  # of each record in the preferred order
        for number, record in enumerate(order):
            rank[record - start] = number
        followers, waits_for = self._graph(rank)
        ready = [number for number in range(count) if not waits_for[number]]
        heapify(ready)
        found: list[int] = []
        is_done = bytearray(count)
        following = 0
        while len(found) < count:
            if following < count and not waits_for[following] and not is_done[following]:
                number = following
            else:
                while ready and is_done[ready[0]]:
                    heappop(ready)
                if not ready:
                    raise NoFlow("it adds gradients in an order in which numbers would be needed before they are there")
                number = heappop(ready)
            is_done[number] = 1
            found.append(order[number])
            following = number + 1
            for follower in followers[number]:
                waits_for[follower] -= 1
                if not waits_for[follower] and follower != following:
                    heappush(ready, follower)
        return found

    def _graph(self, rank: list[int]) -> tuple[list[list[int]], list[int]]:
        """By rank: the records that must come after each, and how many each must wait for."""
        start, recorder = self._start, self._recorder
        followers: list[list[int]] = [[] for _ in rank]
        waits_for = [0] * len(rank)
        thirds = [(rank[record - start], operand) for record, operand in recorder.third.items() if record >= start]
        for mine, operand in chain(zip(rank, recorder.a[start:]), zip(rank, recorder.b[start:]), thirds):
            if operand >= start:
                followers[rank[operand - start]].append(mine)
                waits_for[mine] += 1
        for first, second in zip(self._firsts, self._seconds):
            if first != second:
                followers[rank[first - start]].append(rank[second - start])
                waits_for[rank[second - start]] += 1
        return followers, waits_for
