"""The exact order, for any number of ranks: compared with a definition in plain Python."""

from __future__ import annotations

import random
import threading
from queue import Queue
from typing import Any

import pytest

from mgjit.distributed.shards import Tree, Work, cut


def defined(rows: list[list[float]], shards: int) -> list[float]:
    """The definition of docs/howto/machines.md."""

    def add(one: list[float], other: list[float]) -> list[float]:
        return [a + b for a, b in zip(one, other)]

    def total(low: int, high: int) -> list[float]:
        if high - low > 1:
            middle = (low + high) // 2
            return add(total(low, middle), total(middle, high))
        sums = [-0.0] * len(rows[0])
        for row in rows[len(rows) * low // shards : len(rows) * high // shards]:
            sums = add(sums, row)
        return sums

    return total(0, shards)


class Threads:
    """A rank that is a thread."""

    def __init__(self, rank: int, size: int, queues: Any) -> None:
        self.rank, self._size, self._queues = rank, size, queues

    def send(self, block: Any, to: int) -> None:
        self._queues[self.rank, to].put(list(block))

    def receive(self, block: Any, source: int) -> None:
        block[:] = self._queues[source, self.rank].get(timeout=20)

    def broadcast(self, block: Any, root: int) -> None:
        if self.rank == root:
            for other in set(range(self._size)) - {root}:
                self.send(block, other)
        else:
            self.receive(block, root)


def summed(rows: list[list[float]], starts: list[int], shards: int) -> list[list[float]]:
    """The sums that each rank has in the end, and that each rank runs only its own rows."""
    size = len(starts) - 1
    queues: Any = {(a, b): Queue() for a in range(size) for b in range(size)}
    totals: list[Any] = [None] * size

    def run_rank(rank: int) -> None:
        def run(low: int, high: int, block: list[float]) -> None:
            assert starts[rank] <= low <= high <= starts[rank + 1]
            for row in rows[low:high]:
                block[:] = [a + b for a, b in zip(block, row)]

        def add(block: list[float], other: list[float]) -> None:
            block[:] = [a + b for a, b in zip(block, other)]

        work = Work(lambda: [-0.0] * len(rows[0]), run, add)
        totals[rank] = Tree(starts, shards, Threads(rank, size, queues), work).total()

    threads = [threading.Thread(target=run_rank, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return totals


@pytest.mark.parametrize("seed", range(10))
def test_any_cut_of_the_rows_gives_the_defined_sum(seed: int) -> None:
    rng = random.Random(seed)
    count, size, shards = rng.randrange(1, 40), rng.randrange(1, 7), rng.choice([1, 2, 5, 12, 50])
    rows = [[rng.gauss(0, 10.0 ** rng.randrange(-8, 8)) for _ in range(3)] for _ in range(count)]
    starts = [0, *sorted(rng.randrange(count + 1) for _ in range(size - 1)), count]
    expected = defined(rows, shards)
    assert [list(map(float.hex, total)) for total in summed(rows, starts, shards)] == [
        list(map(float.hex, expected)) for _ in range(size)
    ]


def test_a_sum_of_negative_zeros_keeps_its_sign() -> None:
    assert list(map(float.hex, summed([[-0.0]], [0, 0, 1], 12)[0])) == ["-0x0.0p+0"]


def test_parts_differ_by_one_row_at_most() -> None:
    for count in range(30):
        edges = cut(count, 7)
        assert (edges[0], edges[-1]) == (0, count)
        assert {b - a for a, b in zip(edges, edges[1:])} <= {count // 7, count // 7 + 1}
