"""Steps that share parameters, in any order of building: each alone, and after another step has been built.

    python bench/orders.py
    python bench/orders.py --only mnist --rounds 20

Parameters move into memory when the first step that uses them is built.  A later one should be as fast as if it had
been the first.  Each row is a pair of steps over one model, of which the later one is measured, in microseconds of
processor time a call: alone, on a model of its own, and after the other; the least of all rounds, which take turns.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgjit  # noqa: E402 - found through the line above
from bench import workloads  # noqa: E402
from mgjit import nn  # noqa: E402

#: A compiled step with the arguments of its calls.
Call = tuple[Callable[..., Any], tuple[Any, ...]]
WARM, CALLS = 10, 200


def pixels(count: int = 784) -> array[float]:
    """Numbers like those of an image."""
    draw = random.Random(3)
    return array("d", (draw.random() for _ in range(count)))


def trained(model: Callable[[Any], Any], parameters: list[Any]) -> Callable[..., Any]:
    """A step of gradient descent."""

    def train(x: Any, label: Any, rate: Any) -> Any:
        scores = model(x)
        loss = sum((s - y) ** 2 for s, y in zip(scores, mgjit.one_hot(label, len(scores))))
        for p in parameters:
            p.grad = 0.0
        loss.backward()
        workloads.descend(parameters, rate)
        return loss

    return mgjit.compile(train)


def mnist() -> dict[str, Call]:
    """784-50-10."""
    model = nn.MLP(784, [50, 10])
    train = trained(model, model.parameters())
    return {
        "train": (train, (pixels(), 3, 0.01)),
        "train on lists": (train, (list(pixels()), 3, 0.01)),
        "predict": (mgjit.compile(model.__call__), (pixels(),)),
    }


def two_heads() -> dict[str, Call]:
    """Two networks that share their first layer."""
    base, heads = nn.MLP(784, [50]), [nn.MLP(50, [outputs]) for outputs in (10, 20)]

    def network(head: nn.MLP) -> Call:
        return trained(lambda x: head(base(x)), base.parameters() + head.parameters()), (pixels(), 3, 0.01)

    return {"one head": network(heads[0]), "the other head": network(heads[1])}


def microgpt() -> dict[str, Call]:
    """W6, and its scores alone."""
    model = workloads.MicroGPT()
    adam = workloads.Adam(model.parameters(), 0.85, 0.99)
    tokens = workloads.spelled("anna")
    train = mgjit.compile(workloads.microgpt_step(model, adam, 1))
    return {
        "train": (train, (tokens, *adam.corrections(0.01, 1))),
        "train on lists": (train, (list(tokens), *adam.corrections(0.01, 1))),
        "predict": (mgjit.compile(lambda tokens: model(tokens)[-1]), (tokens,)),
    }


def momentum() -> dict[str, Call]:
    """784-50-10 with a state beside each parameter."""
    model = nn.MLP(784, [50, 10])
    parameters, state = model.parameters(), mgjit.zeros(len(model.parameters()))

    def train(x: Any, label: Any, rate: Any) -> Any:
        loss = sum((s - y) ** 2 for s, y in zip(model(x), mgjit.one_hot(label, 10)))
        model.zero_grad()
        loss.backward()
        for k, p in enumerate(parameters):
            state[k] = 0.9 * state[k] + p.grad
            p.data -= rate * state[k]
        return loss

    return {
        "train": (mgjit.compile(train), (pixels(), 3, 0.01)),
        "predict": (mgjit.compile(model.__call__), (pixels(),)),
    }


MODELS: dict[str, Callable[[], dict[str, Call]]] = {
    "mnist": mnist,
    "two heads": two_heads,
    "microgpt": microgpt,
    "momentum": momentum,
}


def seconds(call: Call) -> float:
    """A call."""
    step, arguments = call
    for _ in range(WARM):
        step(*arguments)
    gc.collect()
    started = process_time()
    for _ in range(CALLS):
        step(*arguments)
    return (process_time() - started) / CALLS


def measure(make: Callable[[], dict[str, Call]], first: str, second: str, rounds: int) -> tuple[float, float]:
    """The second step alone, and after the first one; both are measured again and again in the same process."""
    alone, both = make()[second], make()
    seconds(both[first])
    times = [(seconds(alone), seconds(both[second])) for _ in range(rounds)]
    return min(time for time, _ in times), min(time for _, time in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=MODELS, help="one model")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    os.environ.update(MGJIT_VERIFY="never", MGJIT_BACKGROUND="0")
    print("| model | step | after | alone, us | after it, us | ratio |\n|---|---|---|---:|---:|---:|")
    for name, make in MODELS.items():
        steps = list(make()) if options.only in (None, name) else []
        for first, second in [(first, second) for second in steps for first in steps if first != second]:
            alone, after = measure(make, first, second, options.rounds)
            ratio = f"{after / alone:.2f}"
            print(f"| {name} | {second} | {first} | {alone * 1e6:.1f} | {after * 1e6:.1f} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
