"""What the first calls of a kernel cost beside later ones: nothing that takes long to compare is compared in each.

    python bench/first_calls.py
    python bench/first_calls.py --rounds 10

Each round makes a step and calls it, always with the same arguments.  The table has microseconds of processor time a
call, the least of all rounds, of calls 5 to 50 and 5,000 to 5,050 (without verification, and built at the first call):

    W3        784-50-10 over nn.MLP, one image
    W6        microgpt over mgjit.Value, one name
    own class bench/own_class.py, a language model over a class of its own
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import workloads  # noqa: E402 - found through the line above

EARLY, LATE = range(5, 51), range(5000, 5051)
#: A step, and the arguments of all its calls.
Made = tuple[Callable[..., Any], tuple[Any, ...]]


def image() -> Made:
    """W3."""
    instance = workloads.image(workloads.Sources())
    return workloads.compiled(instance, workloads.WORKLOADS["W3"]), instance.calls[0]


def microgpt() -> Made:
    """W6."""
    instance = workloads.microgpt(workloads.Sources())
    return workloads.compiled(instance, workloads.WORKLOADS["W6"]), instance.calls[0]


def own_class() -> Made:
    """The example, always with the same word."""
    specification = importlib.util.spec_from_file_location("own_class", ROOT / "bench" / "own_class.py")
    assert specification is not None
    assert specification.loader is not None
    example: Any = importlib.util.module_from_spec(specification)
    sys.modules["own_class"] = example
    specification.loader.exec_module(example)
    return example.train_step, ([example.END, *map(example.LETTERS.index, example.WORDS[0]), example.END], 1)


MAKERS = {"W3": image, "W6": microgpt, "own class": own_class}


def seconds(make: Callable[[], Made]) -> tuple[float, float]:
    """A call early and late."""
    step, arguments = make()
    spent = {}
    gc.collect()
    for number in range(1, LATE.stop):
        if number in (EARLY.start, LATE.start):
            started = process_time()
        step(*arguments)
        if number in (EARLY[-1], LATE[-1]):
            spent[number] = process_time() - started
    return spent[EARLY[-1]] / len(EARLY), spent[LATE[-1]] / len(LATE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    os.environ.update(MGJIT_VERIFY="never", MGJIT_BACKGROUND="0")
    print("| step | calls 5 to 50, us | calls 5,000 to 5,050, us | ratio |\n|---|---:|---:|---:|")
    for name, make in MAKERS.items():
        early, late = (min(times) for times in zip(*(seconds(make) for _ in range(rounds))))
        print(f"| {name} | {early * 1e6:.1f} | {late * 1e6:.1f} | {early / late:.2f} |", flush=True)


if __name__ == "__main__":
    main()
