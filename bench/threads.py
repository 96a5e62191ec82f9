"""What `threads=` makes of a step: the same step with one thread and with more, in turn, and whether the bits agree.

    python bench/threads.py [--threads 2] [--repeats 20] [--first] [mlp lenet ...]

Calls alternate, so that other load meets both alike.  The least and the median time of a call are shown, and the load.
"""

from __future__ import annotations

import argparse
import math
import os
import random
from statistics import median
from time import perf_counter
from typing import Any

import mgjit
import mgjit.nn.functional as F
from mgjit import nn, optim

BATCH = 128


def mlp() -> tuple[nn.Module, tuple[int, ...]]:
    layers = nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    return nn.Sequential(*layers), (BATCH, 784)


def small() -> tuple[nn.Module, tuple[int, ...]]:
    return nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 10)), (BATCH, 64)


def lenet() -> tuple[nn.Module, tuple[int, ...]]:
    features = (
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
    )  # fmt: skip
    layers = nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)
    return nn.Sequential(*features, nn.Flatten(), *layers), (BATCH, 1, 28, 28)


MODELS = {"mlp": mlp, "lenet": lenet, "small": small}


def made(name: str, threads: int) -> tuple[nn.Module, Any, tuple[Any, Any]]:
    """A model, its compiled step, and a batch; the same for any number of threads."""
    mgjit.manual_seed(0)
    model, shape = MODELS[name]()
    optimiser = optim.Adam(model.parameters(), lr=1e-3)
    numbers = random.Random(0)

    @mgjit.compile(background=False, verify="never", threads=threads)
    def step(x: Any, y: Any) -> Any:
        optimiser.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimiser.step()
        return loss

    x = mgjit.Tensor([numbers.random() for _ in range(math.prod(shape))]).reshape(*shape)
    return model, step, (x, mgjit.Tensor([numbers.randrange(10) for _ in range(BATCH)]).long())


def bits(model: nn.Module) -> list[bytes]:
    """Parameters and gradients."""
    return [memoryview(one.numpy()).tobytes() for p in model.parameters() for one in (p.detach(), p.grad)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--first", action="store_true", help="run before all other programs while it measures (root)")
    asked = parser.parse_args()
    for name in asked.models:
        ways = [made(name, threads) for threads in (1, asked.threads)]
        times: list[list[float]] = [[], []]
        for _, step, batch in ways:  # the same calls of both, plain or compiled
            for _ in range(3):
                step(*batch)
                step.wait()
        if asked.first:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        for _ in range(asked.repeats):
            for (_, step, batch), seconds in zip(ways, times):
                started = perf_counter()
                step(*batch)
                seconds.append(perf_counter() - started)
        if asked.first:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        alike = bits(ways[0][0]) == bits(ways[1][0])
        (one, more), (usual, usual_more) = map(min, times), map(median, times)
        print(
            f"{name:6} 1 thread {1e3 * one:.2f} ms, {asked.threads} threads {1e3 * more:.2f}: least {one / more:.2f} x,"
            f" median {usual / usual_more:.2f} x, {'same' if alike else 'OTHER'} bits, load {os.getloadavg()[0]:.1f}"
        )


if __name__ == "__main__":
    main()
