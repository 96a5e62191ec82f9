"""The order in which `order="exact"` adds, which does not depend on the number of ranks.

1. The n rows of a batch are cut into S shards, whatever the number of ranks: shard s has the rows from n * s // S to
   n * (s + 1) // S.
2. The rows of a shard are added from the first to the last.  A sum begins with -0.0, which changes nothing.
3. The sums of the shards are added along a fixed tree: those of the first half of the shards, and those of the second.
4. A shard whose rows lie on several ranks is handed on: each rank goes on with the sum of the one before it.  This is
   done first, so that no rank waits for one that has other things to do.
5. Of two sums on different ranks, the second is sent to the rank of the first.  Every rank goes through the same tree,
   and does what concerns it; in the end one rank has the sum, and sends it to all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Protocol


def cut(count: int, parts: int) -> list[int]:
    """Where so many parts of `count` rows begin, and the end of the last one."""
    return [count * part // parts for part in range(parts + 1)]


class Carrier(Protocol):
    """Sends and receives sums."""

    rank: int

    def send(self, block: Any, to: int) -> None: ...

    def receive(self, block: Any, source: int) -> None: ...

    def broadcast(self, block: Any, root: int) -> None: ...


class Work(NamedTuple):
    """What a rank can do with sums.

    Attributes:
        new: makes a sum of no rows.
        run: adds rows, from a first one to one behind the last, to a sum.
        add: adds a second sum to a first one.
    """

    new: Callable[[], Any]
    run: Callable[[int, int, Any], None]
    add: Callable[[Any, Any], None]


class _Node(NamedTuple):
    """The sum of some shards: the rank that has it, and its name there."""

    rank: int
    name: int


class Tree:
    """Adds up the rows of all ranks in the exact order.

    Args:
        starts: the first row of each rank, and the number of all rows.
        shards: how many shards there are.
    """

    def __init__(self, starts: Sequence[int], shards: int, carrier: Carrier, work: Work) -> None:
        self._edges = cut(starts[-1], shards)
        self._shards, self._carrier, self._work = shards, carrier, work
        self._first, self._last = starts[carrier.rank], starts[carrier.rank + 1]
        #: For each shard, the ranks that have rows of it, in order.
        self._ranks = [
            [rank for rank in range(len(starts) - 1) if max(low, starts[rank]) < min(high, starts[rank + 1])]
            for low, high in zip(self._edges, self._edges[1:])
        ]
        self._sums: dict[int, Any] = {}

    def total(self) -> Any:
        """The sum of all rows, on every rank."""
        me = self._carrier.rank
        for shard, ranks in reversed(list(enumerate(self._ranks))):
            if me in ranks[:-1]:  # at most one begins here and ends elsewhere; others come from elsewhere, too
                self._carrier.send(self._shard(shard), ranks[ranks.index(me) + 1])
        node = self._add(0, self._shards)
        assert node is not None  # there are rows
        block = self._sums.pop(node.name) if node.rank == me else self._work.new()
        self._carrier.broadcast(block, node.rank)
        return block

    def _shard(self, shard: int) -> Any:
        """The sum of this rank's rows of a shard, and of those before them on other ranks."""
        block, ranks = self._work.new(), self._ranks[shard]
        place = ranks.index(self._carrier.rank)
        if place:
            self._carrier.receive(block, ranks[place - 1])
        self._work.run(max(self._first, self._edges[shard]), min(self._last, self._edges[shard + 1]), block)
        return block

    def _add(self, low: int, high: int) -> _Node | None:
        """The sum of the shards from `low` to `high`; None if they have no rows."""
        me = self._carrier.rank
        if high - low == 1:
            if not self._ranks[low]:
                return None
            if self._ranks[low][-1] == me:
                self._sums[low] = self._shard(low)
            return _Node(self._ranks[low][-1], low)
        middle = (low + high) // 2
        one, other = self._add(low, middle), self._add(middle, high)
        if one is None or other is None:
            return one or other
        if other.rank == me:
            block = self._sums.pop(other.name)
            if one.rank == me:
                self._work.add(self._sums[one.name], block)
            else:
                self._carrier.send(block, one.rank)
        elif one.rank == me:
            block = self._work.new()
            self._carrier.receive(block, other.rank)
            self._work.add(self._sums[one.name], block)
        return one
