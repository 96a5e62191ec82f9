"""Members of an ensemble, and rows of a loop, on one and on two threads.

    python bench/ensembles.py                            all workloads, 8 members
    python bench/ensembles.py --members 4 --threads 4 --rounds 9

For each workload, rounds with one thread and with several take turns in one process; of all rounds of a kind, the
quickest counts.  `wall` is the time that passes, `processor` that of all threads together, and `busiest` that of the
thread that works most: what a round takes at least, on a machine that does nothing else.

    alone      the rows of one member, by `.loop` of the step, times the number of members
    loop       the same rows in each member, by `.loop` of the ensemble
    call       one row in each member, by a call of the ensemble
    predict    rows of a step that only reads, by `.loop(threads=)`
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mgjit
from mgjit import nn
from mgjit.data import digits

#: Processor seconds that a round should take.
_SECONDS = 1.0


class Time(NamedTuple):
    """Seconds of one round."""

    wall: float
    processor: float
    busiest: float


def timed(work: Callable[[], Any]) -> Time:
    """How long it takes."""
    work_of_threads = _processor_seconds()
    started = perf_counter()
    work()
    wall = perf_counter() - started
    spent = [seconds - work_of_threads.get(thread, 0.0) for thread, seconds in _processor_seconds().items()]
    return Time(wall, sum(spent), max(spent))


def _processor_seconds() -> dict[int, float]:
    """What each thread of Python has spent so far."""
    threads = [thread.ident for thread in threading.enumerate() if thread.ident is not None]
    return {thread: time.clock_gettime(time.pthread_getcpuclockid(thread)) for thread in threads}


class Training:
    """A network and its training step.

    Args:
        width: repetitions of the 64 pixels of a digit, so that there are more inputs. hidden: units.
    """

    def __init__(self, width: int, hidden: int) -> None:
        data = digits()
        self.model = nn.MLP(64 * width, [hidden, 10])
        self.images = [image * width for image in data.train.images]
        self.labels = data.train.labels

    @mgjit.compile
    def step(self, pixels: bytes, label: int, rate: float) -> Any:
        """Plain gradient descent on one image."""
        scores = self.model([p / 16 for p in pixels])
        loss = sum(((s - y) ** 2 for s, y in zip(scores, mgjit.one_hot(label, 10))), mgjit.Value(0.0))
        self.model.zero_grad()
        loss.backward()
        for p in self.model.parameters():
            p.data -= rate * p.grad
        return loss

    @mgjit.compile
    def predict(self, pixels: bytes) -> Any:
        """The scores of one image."""
        return self.model([p / 16 for p in pixels])

    def columns(self, rows: int) -> tuple[list[bytes], list[int]]:
        """So many rows."""
        times = -(-rows // len(self.images))
        return (self.images * times)[:rows], (self.labels * times)[:rows]


def ways(training: Training, members: int) -> dict[str, tuple[int, Callable[[int], Any]]]:
    """For each way: how many rows a round has, and what runs it with so many threads."""
    ensemble = mgjit.ensemble(training.step, members)
    rates = mgjit.each([0.001 * (k + 1) / members for k in range(members)])
    first = training.columns(64)
    ensemble.loop(*first, rates)
    while training.step.stats.compared_calls < 2 and training.step.stats.calls < 100_000:
        ensemble.loop(*first, rates)  # until the kernel is compared no more
    training.predict.loop(first[0] * 20)
    row = max(1e-7, training.step._kernels.last.seconds_a_row)  # type: ignore[union-attr]
    rows = max(64, min(100_000, int(_SECONDS / members / row)))
    columns = training.columns(rows)
    calls = max(10, min(200, rows // 10))
    many = training.columns(min(400_000, 10 * rows))[0]

    def set_threads(threads: int) -> mgjit.Ensemble:
        ensemble.threads = threads
        return ensemble

    return {
        "alone": (rows * members, lambda threads: [training.step.loop(*columns, 0.001) for _ in range(members)]),
        "loop": (rows * members, lambda threads: set_threads(threads).loop(*columns, rates)),
        "call": (
            calls * members,
            lambda threads: [set_threads(threads)(x, y, rates) for x, y in zip(columns[0][:calls], columns[1])],
        ),
        "predict": (len(many), lambda threads: training.predict.loop(many, threads=threads)),
    }


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    print(f"{given.members} members; microseconds a row and member: wall / processor / busiest")
    print(f"{'':20} {'1 thread':>28} {f'{given.threads} threads':>28} {'quicker: wall, busiest':>24}")
    for name, width, hidden in (("64-50-10", 1, 50), ("832-50-10", 13, 50), ("832-200-10", 13, 200)):
        for way, (rows, run) in ways(Training(width, hidden), given.members).items():
            times: dict[int, list[Time]] = {1: [], given.threads: []}
            for _ in range(given.rounds):
                for threads, found in times.items():
                    found.append(timed(lambda run=run, threads=threads: run(threads)))
            one, several = (Time(*map(min, zip(*found))) for found in times.values())
            shown = [" / ".join(f"{1e6 * seconds / rows:.2f}" for seconds in best) for best in (one, several)]
            ratios = f"{one.wall / several.wall:.2f}, {one.busiest / several.busiest:.2f}"
            print(f"{name + ', ' + way:20} {shown[0]:>28} {shown[1]:>28} {ratios:>24}", flush=True)


if __name__ == "__main__":
    main()
