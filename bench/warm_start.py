"""What a second process with the same step saves: the disk cache, from an empty one.

    python bench/warm_start.py                 each step: one process on an empty cache, then another one

A process imports mgjit, makes the network, and calls the step once.  The time is that of the call alone;
compiler runs are all that the process started (probing a compiler is one as well).  Exits with 1 when the two
processes differ in a bit of the result, never because of a time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

STEPS = ("784-50-10, one image", "moons 2-16-16-1, batch 100")


def main() -> int:
    """Measure and print, or be one of the processes measured."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="pairs of processes a step (default 3)")
    parser.add_argument("--child", choices=STEPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(_call_once(options.child)))
        return 0
    if options.repeat < 1:
        parser.error("--repeat is 1 at least")
    same = True
    for name in STEPS:
        pairs = [_pair(name) for _ in range(options.repeat)]
        same = same and all(first["loss"] == second["loss"] for first, second in pairs)
        print(f"{name} ({pairs[0][0]['interpreter']}; medians of {options.repeat})")
        for which, runs in zip(("first process", "second process"), zip(*pairs)):
            print(f"  {which:<15}{_describe(runs)}", flush=True)
    print("results: equal bit for bit" if same else "results: NOT EQUAL")
    return 0 if same else 1


def _describe(runs: tuple[dict[str, Any], ...]) -> str:
    def median(key: str) -> float:
        return statistics.median(run[key] for run in runs)

    def each(key: str) -> str:
        return "/".join(sorted({str(run[key]) for run in runs}))

    return (
        f"call to first result {median('call'):.3f} s (trace {median('trace'):.3f}, passes {median('lower'):.3f}, "
        f"C compiler {median('compile'):.3f}), cache {each('cache')}, compiler runs {each('compiler_runs')}, "
        f"import {median('import'):.3f} s"
    )


def _pair(name: str) -> list[dict[str, Any]]:
    """Two processes, one after the other, that share a cache which was empty before."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "MGJIT_CACHE_DIR": cache, "MGJIT_DISABLE": "0"}
        words = [sys.executable, __file__, "--child", name]
        return [
            json.loads(subprocess.run(words, env=environment, check=True, stdout=subprocess.PIPE).stdout)
            for _ in range(2)
        ]


def _call_once(name: str) -> dict[str, Any]:
    started = time.perf_counter()
    import mgjit
    from mgjit.toolchain import process

    imported = time.perf_counter() - started
    from bench.mnist import interpreter
    from tests import programs

    instance = programs.mnist() if name == STEPS[0] else programs.moons()
    step = mgjit.compile(instance.step, background=False)
    started = time.perf_counter()
    result = step(*instance.calls[0])
    seconds = time.perf_counter() - started
    loss = result[0] if isinstance(result, tuple) else result
    return {
        "interpreter": interpreter(),
        "import": imported,
        "call": seconds,
        "trace": step.stats.trace_seconds,
        "lower": step.stats.roll_seconds,
        "compile": step.stats.compile_seconds,
        "cache": step.stats.cache,
        "compiler_runs": process.compiler_runs,
        "loss": float(loss).hex(),
    }


if __name__ == "__main__":
    sys.exit(main())
