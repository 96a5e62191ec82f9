"""Sixteen lengths of microgpt: what each costs to build, and how fast its kernel is, sharing code or not.

    python bench/lengths.py                     cold, and again warm
    python bench/lengths.py --letters 7 9 5 8   these lengths, in this order

For each length: the seconds of its first call, those of the trace in it, by how much the call is longer than the trace,
whether its kernel shares its code (families.py), the statements of the code, and the least time of a call in
microseconds; beside it that of a kernel of its own.  At last the seconds of all first calls, those that processors were
busy with them, and the mean of a call where the lengths take turns, least of all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgjit  # noqa: E402 - found through the line above
from bench import workloads  # noqa: E402
from bench.processes import environment  # noqa: E402
from mgjit.compiler.build.families import FAMILY, Kin  # noqa: E402

LETTERS = [7, 9, 6, 5, 8, 4, 3, 10, 12, 11, 14, 13, 15, 2, 1, 0]
CALLS = 300


class Run:
    """Calls of one compiled step, each of another length."""

    def __init__(self) -> None:
        model = workloads.MicroGPT()
        self._adam = workloads.Adam(model.parameters(), 0.85, 0.99)
        step = workloads.microgpt_step(model, self._adam, 1)
        self.step: Any = mgjit.compile(step, background=False, verify="never", limit=100)
        self.total = self.busy = 0.0
        self.kernels: list[Callable[[], object]] = []

    def first_call(self, letters: int, number: int) -> tuple[float, dict[str, Any], float]:
        """Seconds, facts of the code, and the least seconds of a later call."""
        name = "".join(random.Random(letters).choice(workloads.LETTERS) for _ in range(letters))
        arguments = (workloads.spelled(name), *self._adam.corrections(0.01, number))
        started, busy = time.perf_counter(), _busy()
        self.step(*arguments)
        seconds = time.perf_counter() - started
        self.total += seconds
        self.busy += _busy() - busy
        kernel = self.step._kernels.last
        run, best = kernel.run["step"], float("inf")
        for _ in range(CALLS):
            started = time.perf_counter()
            run()
            best = min(best, time.perf_counter() - started)
        self.kernels.append(run)
        return seconds, kernel.code.facts, best

    def in_turn(self) -> float:
        """The mean seconds of a call where the kernels take turns: the least of all rounds."""
        best = float("inf")
        for _ in range(CALLS):
            started = time.perf_counter()
            for run in self.kernels:
                run()
            best = min(best, time.perf_counter() - started)
        return best / len(self.kernels)


def _busy() -> float:
    """The seconds that processors have worked for this process and for those that it has started."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measured(letters: list[int], alone: list[float], shares: bool) -> list[float]:
    """Print a table; returns the least seconds of each kernel."""
    if not shares:
        Kin.note = lambda *_: None  # type: ignore[assignment, method-assign]
    run = Run()
    found = []
    for number, count in enumerate(letters, 1):
        seconds, facts, best = run.first_call(count, number)
        trace = seconds - facts["lower_seconds"] - facts["compile_seconds"]
        beside = f" ({best / alone[number - 1]:.2f} of its own)" if alone else ""
        print(
            f"{count:3} letters: {seconds:6.2f} s, trace {trace:5.2f} s, {seconds / trace:5.1f} x; "
            f"{'shared' if FAMILY in facts else 'alone '} {facts['cache']:4} {facts['statements']:5} statements, "
            f"{best * 1e6:6.1f} us{beside}",
            flush=True,
        )
        found.append(best)
    print(
        f"all: {run.total:.1f} s, processor {run.busy:.1f} s; in turn {run.in_turn() * 1e6:.1f} us a call", flush=True
    )
    return found


def main() -> None:
    """Measure and print, each way in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--letters", type=int, nargs="+", default=LETTERS, metavar="N")
    parser.add_argument("--way", choices=("alone", "shared"), help=argparse.SUPPRESS)
    parser.add_argument("--times", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        warnings.simplefilter("ignore")
        alone = json.loads(options.times.read_text()) if options.times.exists() else []
        found = measured(options.letters, alone, options.way == "shared")
        if options.way == "alone":
            options.times.write_text(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as place:
        for title, way, cache in (("alone", "alone", "a"), ("shared, cold", "shared", "b"), ("warm", "shared", "b")):
            print(title, flush=True)
            letters = [str(count) for count in options.letters]
            command = [sys.executable, __file__, "--way", way, "--times", f"{place}/times", "--letters", *letters]
            subprocess.run(command, env=environment(Path(place, cache)), check=True)


if __name__ == "__main__":
    main()
