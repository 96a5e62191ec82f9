"""PyPI's micrograd, its own classes imported and decorated, beside the same step over mgjit.Value.

    python bench/pypi_micrograd.py              the moons demo with 10 and 100 samples, and 784-50-10
    python bench/pypi_micrograd.py --seconds 10

The layers of both are those of `micrograd.nn`, whose text is run a second time with mgjit.Value.  Calls are timed
alternately; the ratio is the median of pairs.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import types
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import micrograd.engine
import micrograd.nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgjit  # noqa: E402 - found through the line above
from bench.mnist import interpreter, pin_to_one_core  # noqa: E402

CASES = {
    "moons, 10 samples": ([2, 16, 16, 1], 10),
    "moons, 100 samples": ([2, 16, 16, 1], 100),
    "784-50-10": ([784, 50, 10], 1),
}


def layers(value: type) -> Any:
    """The module micrograd.nn over a class."""
    if value is micrograd.engine.Value:
        return micrograd.nn
    text = Path(micrograd.nn.__file__).read_text().replace("from micrograd.engine import Value", "")
    module = types.ModuleType("layers")
    module.Value = value  # type: ignore[attr-defined]
    exec(compile(text, micrograd.nn.__file__, "exec"), module.__dict__)  # noqa: S102 - what import does
    return module


def training(value: type, sizes: list[int]) -> tuple[Any, Callable[..., float]]:
    """A model and its step: the loss of micrograd's demo for one output, squares for several."""
    random.seed(1)
    model = layers(value).MLP(sizes[0], sizes[1:])

    def step(xs: list[list[float]], ys: list[list[float]], rate: float) -> float:
        scores = list(map(model, [list(map(value, row)) for row in xs]))
        if sizes[-1] == 1:
            losses = [(1 + -y[0] * score).relu() for y, score in zip(ys, scores)]
            regularisation = 1e-4 * sum(p * p for p in model.parameters())
            total = sum(losses) * (1.0 / len(losses)) + regularisation
        else:
            total = sum(sum((s - t) ** 2 for s, t in zip(row, y)) for row, y in zip(scores, ys))
        model.zero_grad()
        total.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        return total.data  # type: ignore[no-any-return]

    return model, step


def batch(sizes: list[int], count: int) -> tuple[list[list[float]], list[list[float]]]:
    """Random samples and targets of 1 or -1."""
    draw = random.Random(5)
    xs = [[draw.uniform(-1, 1) for _ in range(sizes[0])] for _ in range(count)]
    return xs, [[draw.choice([-1.0, 1.0]) for _ in range(sizes[-1])] for _ in range(count)]


def row(name: str, seconds: float) -> str:
    """One row of the table."""
    sizes, count = CASES[name]
    xs, ys = batch(sizes, count)
    _, undecorated = training(micrograd.engine.Value, sizes)
    started = perf_counter()
    wanted = undecorated(xs, ys, 1e-4)
    plain = perf_counter() - started
    steps = [
        mgjit.compile(training(kind, sizes)[1], background=False) for kind in (micrograd.engine.Value, mgjit.Value)
    ]
    started = perf_counter()
    found = steps[0](xs, ys, 1e-4)
    first = perf_counter() - started
    times: list[list[float]] = [[], []]
    for step in steps:
        for _ in range(5):
            step(xs, ys, 1e-4)
    until = perf_counter() + seconds
    while perf_counter() < until or len(times[0]) < 5:
        for step, mine in zip(steps, times):
            started = perf_counter()
            for _ in range(50):
                step(xs, ys, 1e-4)
            mine.append((perf_counter() - started) / 50)
    ratio = statistics.median(a / b for a, b in zip(*times))
    ours, theirs = (statistics.median(mine) * 1e6 for mine in times)
    return (
        f"| {name} | {'yes' if found == wanted else 'NO'} | {plain * 1e6:,.0f} | {first:.2f} | {ours:,.1f} "
        f"| {theirs:,.1f} | {ratio:.2f} | {plain * 1e6 / ours:,.0f} x |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each case")
    arguments = parser.parse_args()
    pin_to_one_core()
    sys.setrecursionlimit(1_000_000)
    print(f"{interpreter()}, medians\n")
    print(
        "| step | first loss equal | undecorated µs | first call s | decorated µs | mgjit.Value µs | ratio | speed-up |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in CASES:
        print(row(name, arguments.seconds), flush=True)


if __name__ == "__main__":
    main()
