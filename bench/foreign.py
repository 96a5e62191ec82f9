"""What a decorator does for programs with their own autograd classes: those of tests/programs/foreign, in a table.

    python bench/foreign.py                     all programs, medians
    python bench/foreign.py rnn gru --seconds 5

Calls are timed alternately, undecorated and compiled, each over the same arguments again and again; the state goes on.
"Lines" counts the lines that differ from the undecorated program, the decorator included.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgjit  # noqa: E402 - found through the line above
from bench.mnist import interpreter, pin_to_one_core  # noqa: E402
from tests.programs.foreign.running import CHANGES, NAMES, difference, loaded, parts, run  # noqa: E402

#: Seconds of calls before any is timed, and of one round.
WARM_UP, ROUND = 0.3, 0.01

HEADER = "| program | lines | equal | records | first call s | CPython µs | mgjit µs | speed-up |"


def measured(name: str, folder: Path, seconds: float) -> str:
    """One row of the table."""
    plain, _ = run(name, lambda step: step, folder)
    started = perf_counter()
    found, steps = run(name, mgjit.compile(cache=False, background=False), folder)
    first = perf_counter() - started
    equal = not any(difference(list(a), list(b)) for a, b in zip(plain, found))
    undecorated, compiled = medians(name, folder, seconds)
    lines = len(steps) + sum(text.count("\n") for text in CHANGES.get(name, {}).values())
    records = " + ".join(f"{step.stats.records:,}" for step in steps)
    return (
        f"| {name} | {lines} | {'yes' if equal else 'NO'} | {records} | {first:.2f} | {undecorated * 1e6:,.0f} "
        f"| {compiled * 1e6:,.1f} | {undecorated / compiled:,.0f} x |"
    )


def medians(name: str, folder: Path, seconds: float) -> tuple[float, float]:
    """Seconds a call, undecorated and compiled."""
    with loaded(name, folder) as mine, loaded(name, folder) as theirs:
        ways = [Way(mine, lambda step: step), Way(theirs, mgjit.compile)]
        for way in ways:
            way.warm_up()
        until = perf_counter() + seconds
        while perf_counter() < until or len(ways[0].times) < 5:
            for way in ways:
                way.times.append(way.round())
        return statistics.median(ways[0].times), statistics.median(ways[1].times)


class Way:
    """A program, decorated in one way."""

    def __init__(self, module: Any, decorate: Callable[[Any], Any]) -> None:
        self._module, self._decorate = module, decorate
        self._begin()
        self.repeats = 1
        self.times: list[float] = []

    def _begin(self) -> None:
        steps, self.calls, _ = parts(self._module)
        self.steps = [self._decorate(step) for step in steps]

    def warm_up(self) -> None:
        """Until steps have their call paths and have compared everything around them a few times."""
        until = perf_counter() + WARM_UP
        while perf_counter() < until:
            seconds = self.round()
        self.repeats = max(1, int(ROUND / seconds / len(self.calls)))

    def round(self) -> float:
        """Seconds a call, over all calls of the program."""
        calls = [(self.steps[k % len(self.steps)], arguments) for k, arguments in enumerate(self.calls)] * self.repeats
        done = 0
        started = perf_counter()
        try:
            for done, (step, arguments) in enumerate(calls, 1):  # noqa: B007 - used below
                step(*arguments)
        except (ArithmeticError, ValueError):  # it has trained for so long that Python has no numbers any more
            self._begin()
        return (perf_counter() - started) / done


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="program", help=f"among {', '.join(NAMES)}")
    options.add_argument("--seconds", type=float, default=1.5, help="how long each program is timed")
    chosen = options.parse_args()
    pin_to_one_core()
    print(f"{interpreter()}\n\n{HEADER}\n|---|" + "---:|" * (HEADER.count("|") - 2))
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.names or NAMES:
            print(measured(name, Path(folder), chosen.seconds), flush=True)


if __name__ == "__main__":
    main()
