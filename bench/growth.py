"""How tracing and lowering grow with the number of records: is the time a record the same at every size?

    python bench/growth.py                          10^4, 10^5 and 10^6 records of three kinds of step
    python bench/growth.py --largest 100000 --only irregular

An MLP n-50-10 grows in its inputs, a batch loop over 2-16-16-1 in its samples, an irregular graph in random
operations.  Lowering is everything from a trace to a Program; its stages are listed apart.  The irregular
graphs of up to 10^5 records are also built: that is where the C compiler takes most of the time.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgjit  # noqa: E402 - found through the line above
from bench.mnist import interpreter, pin_to_one_core  # noqa: E402
from mgjit import nn  # noqa: E402
from mgjit.errors import MgjitError  # noqa: E402
from tests import training  # noqa: E402
from tests.shapes import OPERATIONS  # noqa: E402
from tests.workload import descend, numbers, reset, values  # noqa: E402

Step = Callable[..., Any]


def mlp(records: int) -> tuple[Step, tuple[Any, ...]]:
    """One image a step; the image grows."""
    inputs = max(1, round((records - 3300) / 301))
    draw = random.Random(1)
    pixels = bytes(draw.randrange(256) for _ in range(inputs))
    return training.image_step(nn.MLP(inputs, [50, 10]), 255.0), (pixels, 3, 0.01)


def batch_loop(records: int) -> tuple[Step, tuple[Any, ...]]:
    """Two moons; the batch grows."""
    model = nn.MLP(2, [16, 16, 1])
    samples = max(2, round((records - 2000) / 645))

    def step(xs: Any, ys: Any, lr: Any) -> Any:
        losses = [(1 + -y * model(x)).relu() for x, y in zip(xs, ys)]
        loss = sum(losses) * (1.0 / len(losses)) + 1e-4 * sum(p * p for p in model.parameters())
        model.zero_grad()
        loss.backward()
        descend(model.parameters(), lr)
        return loss

    return step, (*training.moons_data(samples, 0.1, 1), 0.5)


def irregular(records: int) -> tuple[Step, tuple[Any, ...]]:
    """Random operations on random earlier results, half of them recent; every result counts, nothing repeats."""
    draw = random.Random(79)
    parameters = values(draw, 30)
    xs = numbers(draw, 10)
    known = [*(p.data for p in parameters), *xs]
    plan: list[tuple[Step, list[int]]] = []
    names = list(OPERATIONS)
    unused = set(range(len(known)))
    for _ in range(max(100, round(records / 2.2))):
        function, binary = OPERATIONS[draw.choice(names)]
        size = len(known)
        ids = [draw.randrange(0 if draw.random() < 0.5 else size - 30, size) for _ in range(1 + binary)]
        result = function(*(known[i] for i in ids))
        if abs(result) > 4.0:
            function, ids = OPERATIONS["tanh"][0], ids[:1]
            result = math.tanh(known[ids[0]])
        unused.difference_update(ids)
        unused.add(size)
        known.append(result)
        plan.append((function, ids))
    ends = sorted(unused)

    def step(xs: Any, lr: Any) -> Any:
        nodes = [*parameters, *xs]
        for function, ids in plan:
            nodes.append(function(*[nodes[i] for i in ids]))
        loss = sum(mgjit.tanh(nodes[i]) for i in ends)
        reset(parameters)
        loss.backward()
        descend(parameters, lr)
        return loss

    return step, (xs, 1e-3)


KINDS = {"mlp": mlp, "batch loop": batch_loop, "irregular": irregular}


def main() -> int:
    """Measure and print."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--largest", type=int, default=1_000_000, metavar="N", help="records (default 1000000)")
    parser.add_argument("--only", choices=KINDS, help="one kind of step")
    parser.add_argument("--compile-up-to", type=int, default=100_000, metavar="N", help="records (default 100000)")
    options = parser.parse_args()
    sizes = [10**k for k in range(4, 10) if 10**k <= options.largest]
    if not sizes:
        parser.error("--largest is 10000 at least")
    print(f"{interpreter()}, {pin_to_one_core()}")
    for kind in [options.only] if options.only else KINDS:
        for size in sizes:
            print(_row(kind, size), flush=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["MGJIT_CACHE_DIR"] = cache
        for size in sizes:
            if size <= options.compile_up_to and options.only in (None, "irregular"):
                print(_built(size), flush=True)
    return 0


def _row(kind: str, size: int) -> str:
    step, arguments = KINDS[kind](size)
    gc.collect()
    lowering = mgjit.compile(step).lower(*arguments)
    lowered = lowering.lowered
    seconds = lowered.seconds
    total = sum(seconds.values())
    stages = ", ".join(f"{stage} {spent:.3f}" for stage, spent in seconds.items())
    return (
        f"{kind:<11}{lowered.records:>10,} records: trace {lowering.trace_seconds:7.3f} s "
        f"({lowering.trace_seconds / lowered.records * 1e6:5.2f} us a record), "
        f"lower {total:8.3f} s ({total / lowered.records * 1e6:6.2f} us a record: {stages}); "
        f"{lowered.loops:,} loops, {lowered.statements:,} statements"
    )


def _built(size: int) -> str:
    step, arguments = irregular(size)
    compiled = mgjit.compile(step, backend="c", background=False)
    started = time.perf_counter()
    try:
        compiled(*arguments)
    except MgjitError as error:
        return f"irregular, built: {type(error).__name__} after {time.perf_counter() - started:.1f} s: {error}"
    total = time.perf_counter() - started
    stats = compiled.stats
    return (
        f"irregular, built: {stats.records:,} records, {stats.lines:,} lines of C: C compiler "
        f"{stats.compile_seconds:.2f} s of {total:.2f} s to the first result ({stats.compiler})"
    )


if __name__ == "__main__":
    sys.exit(main())
