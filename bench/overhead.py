"""What a trace costs besides running the step: finding the user's functions and numbers, rewriting, guards.

    python bench/overhead.py
    python bench/overhead.py --rounds 20

Every round traces each step once, as a first call would, with nothing kept from the rounds before, and once more
with the functions as they are in the source, where they can be traced so.  The quickest of all rounds of:

    step       the step itself, running on traced numbers
    search     which functions it can reach, and which numbers of the user's objects these could assign
    rewriting  of the functions, and what they take longer for being rewritten
    memory     putting traced numbers into the user's objects, recording what was assigned, putting all back
    guards     what a later call compares
    share      all but the step, over the whole

A later length is one that the step is traced for after another: what is known of its functions by then is used again.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.util
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgjit  # noqa: E402 - found through the line above
from bench import workloads  # noqa: E402
from bench.mnist import interpreter, pin_to_one_core  # noqa: E402
from mgjit import kernels  # noqa: E402
from mgjit.errors import MgjitError  # noqa: E402
from mgjit.garbage import without_garbage_collection  # noqa: E402
from mgjit.trace import bytecode, capture, rewriting  # noqa: E402
from mgjit.trace.memory import Heap  # noqa: E402
from mgjit.world.guard import Guard  # noqa: E402
from tests.foreign.running import loaded, parts  # noqa: E402

HEADER = "| step | records | step s | search s | rewriting s | memory s | guards s | share |"

#: A step and the arguments of calls: it is traced for each of them, and the last trace counts.
Made = tuple[Callable[..., Any], list[tuple[Any, ...]]]


def image_with_values() -> Made:
    """784-50-10 of mgjit.Value."""
    instance = workloads.image(workloads.Sources())
    return instance.step, [instance.calls[0]]


def image_with_own_class(value: type) -> Made:
    """784-50-10 of somebody else's class, written as one writes it."""
    draw = random.Random(1)
    layers = [
        [[value(draw.uniform(-0.1, 0.1)) for _ in range(inputs)] for _ in range(outputs)]
        for inputs, outputs in ((784, 50), (50, 10))
    ]

    def step(pixels: Any, wanted: Any, rate: Any) -> Any:
        activations = pixels
        for layer in layers:
            activations = [sum(w * x for w, x in zip(row, activations)) for row in layer]
        loss = sum((a - y) ** 2 for a, y in zip(activations, wanted))
        loss.backward()
        for layer in layers:
            for row in layer:
                for w in row:
                    w.data -= rate * w.grad
                    w.grad = 0.0
        return loss

    return step, [([draw.random() for _ in range(784)], [float(k == 3) for k in range(10)], 0.1)]


def language_model(*lengths: int) -> Made:
    """The step of examples/own_class.py, for words of these lengths."""
    spec = importlib.util.spec_from_file_location("own_class", ROOT / "examples" / "own_class.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["own_class"] = module  # whose classes these are is looked up there
    spec.loader.exec_module(module)
    words = [[module.END, *range(length), module.END] for length in lengths]
    return module.train_step.__wrapped__, [(word, 1) for word in words]


@contextmanager
def steps() -> Iterator[dict[str, Callable[[], Made]]]:
    """What is traced, by name: each call makes a new one."""
    with tempfile.TemporaryDirectory() as folder, loaded("attention", Path(folder)) as module:

        def attention() -> Made:
            programs, calls, _ = parts(module)
            return programs[0], [calls[0]]

        yield {
            "784-50-10, mgjit.Value": image_with_values,
            "784-50-10, own class": lambda: image_with_own_class(module.Value),
            "attention, own class": attention,
            "language model, Adam in lists": lambda: language_model(5),
            "language model, a later length": lambda: language_model(3, 5),
        }


def trace(make: Callable[[], Made], is_rewritten: bool) -> tuple[int, dict[str, float]]:
    """The number of records, and the seconds of each part, of one trace."""
    function, (*earlier, arguments) = make()
    step: Any = mgjit.compile(function, background=False)
    for cached in (
        *(rewriting._definitions, rewriting._text_around, rewriting._part, rewriting._rewritten),
        *(bytecode._naming, bytecode.global_names),
    ):
        cached.cache_clear()
    seconds: defaultdict[str, float] = defaultdict(float)

    def timed(part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def method(*positional: Any, **named: Any) -> Any:
            started = perf_counter()
            try:
                return work(*positional, **named)
            finally:
                seconds[part] += perf_counter() - started

        return method

    with ExitStack() as stack:
        for part, owner, name in (
            ("step", kernels.Kernels, "undecorated"),
            ("search", kernels, "reachable_functions"),
            ("search", Heap, "__init__"),
            ("memory", Heap, "enter"),
            ("memory", Heap, "settle"),
            ("memory", Heap, "restore"),
            ("rewriting", capture, "rewritten"),
        ):
            stack.enter_context(mock.patch.object(owner, name, timed(part, getattr(owner, name))))
        if not is_rewritten:
            stack.enter_context(mock.patch.object(capture, "rewritten", return_value=[]))
        for others in earlier:
            step.lower(*others)
        seconds.clear()
        gc.collect()
        records = step.lower(*arguments).lowered.records
    timed("guards", lambda: without_garbage_collection(lambda: Guard(function)))()
    return records, seconds


def row(name: str, make: Callable[[], Made], rounds: int) -> str:
    """One row of the table."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    plain: list[float] = []
    records = 0
    for _ in range(rounds):
        records, seconds = trace(make, is_rewritten=True)
        for part in ("step", "search", "rewriting", "memory", "guards"):
            found[part].append(seconds[part])
        with contextlib.suppress(MgjitError):  # where it needs what rewriting does
            plain.append(trace(make, is_rewritten=False)[1]["step"])
    least = {part: min(times) for part, times in found.items()}
    if plain:
        alone = min(*plain, least["step"])
        least["rewriting"] += least["step"] - alone
        least["step"] = alone
    share = 1.0 - least["step"] / sum(least.values())
    times = " | ".join(f"{least[part]:.4f}" for part in ("step", "search", "rewriting", "memory", "guards"))
    return f"| {name} | {records:,} | {times} | {share:.0%} |"


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=7, help="how often each step is traced")
    chosen = options.parse_args()
    pin_to_one_core()
    print(f"{interpreter()}\n\n{HEADER}\n|---|" + "---:|" * (HEADER.count("|") - 2))
    with steps() as makers:
        for name, make in makers.items():
            print(row(name, make, chosen.rounds), flush=True)


if __name__ == "__main__":
    main()
