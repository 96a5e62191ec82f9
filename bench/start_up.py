"""From the first call to its result, in processes of their own; and whether the C compiler's time depends on widths.

    python bench/start_up.py [--path MNIST_DIR] [--names names.txt]

1. Each measurement is a child process that imports mgjit, makes the workload, and reads the clock around the calls.
2. Cold is with an empty cache directory, warm the same again in another process.
3. The widths: the seconds that the compiler took for 784-50-10 and 784-500-10, without cache.
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

from bench import workloads  # noqa: E402 - found through the line above

BLOCK = 16
REPEATS = 3
LABELS = {
    "image": "784-50-10, one image",
    "microgpt": f"microgpt, all {BLOCK} sequence lengths",
    "batch": "784-50-10, batch 128",
    "width 50": "784-50-10",
    "width 500": "784-500-10",
}


def child(what: str, sources: workloads.Sources) -> dict[str, float]:
    """Seconds of the first calls, and of the C compiler in them."""
    if what == "microgpt":
        workload, instance = workloads.WORKLOADS["W6"], workloads.microgpt(sources)
        letters = workloads.LETTERS
        calls = [(workloads.spelled(letters[:length]), *instance.calls[0][1:]) for length in range(BLOCK)]
    else:
        workload = workloads.WORKLOADS["W4" if what == "batch" else "W3"]
        width = int(what.split()[1]) if what.startswith("width") else 50
        instance = workload.make(sources) if width == 50 else workloads.image(sources, hidden=width, calls=1)
        calls = instance.calls[:1]
    step = workloads.compiled(instance, workload, cache=not what.startswith("width"), warn_after=100)
    compiling = 0.0
    started = time.perf_counter()
    for arguments in calls:
        step(*arguments)
        compiling += step.stats.compile_seconds
    return {"seconds": time.perf_counter() - started, "compiler": compiling}


def run_child(what: str, cache: str, arguments: list[str]) -> dict[str, float]:
    """The answer of a child process."""
    argv = [sys.executable, __file__, "--child", what, *arguments]
    environment = {**os.environ, "MGJIT_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=300)
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def measure(arguments: list[str]) -> list[tuple[str, float, float]]:
    """For each of the workloads: cold and warm seconds, medians."""
    table = []
    for what in ("image", "microgpt", "batch"):
        cold, warm = [], []
        for _ in range(REPEATS if what == "image" else 1):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(run_child(what, cache, arguments)["seconds"])
                warm.append(run_child(what, cache, arguments)["seconds"])
        table.append((LABELS[what], statistics.median(cold), statistics.median(warm)))
    return table


def widths(arguments: list[str]) -> list[tuple[str, float]]:
    """Seconds of the C compiler for both widths, the least of some."""
    return [
        (LABELS[what], min(run_child(what, "", arguments)["compiler"] for _ in range(REPEATS)))
        for what in ("width 50", "width 500")
    ]


def report(arguments: list[str]) -> list[str]:
    """Both tables, as lines of Markdown."""
    lines = ["| first result | cold, s | warm, s |", "|---|---|---|"]
    lines += [f"| {label} | {cold:.3f} | {warm:.3f} |" for label, cold, warm in measure(arguments)]
    compiled = widths(arguments)
    lines += ["", "| C compiler | s |", "|---|---|"]
    lines += [f"| {label} | {seconds:.3f} |" for label, seconds in compiled]
    lines += ["", f"Wide over narrow: {compiled[1][1] / compiled[0][1]:.2f} (target: at most 1.3)."]
    return lines


def main() -> None:
    """Measure and print, or be a child."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", type=Path, metavar="DIR", help="folder with MNIST IDX files")
    parser.add_argument("--names", type=Path, metavar="FILE", help="names, one a line")
    parser.add_argument("--child", choices=LABELS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child, workloads.Sources(options.path, options.names))))
        return
    arguments = [text for name in ("path", "names") for text in given(name, getattr(options, name))]
    print("\n".join(report(arguments)))


def given(name: str, value: Any) -> list[str]:
    """An option of the command line, if it has a value."""
    return [f"--{name}", str(value)] if value else []


if __name__ == "__main__":
    main()
