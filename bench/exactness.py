"""Is a compiled step bit for bit the undecorated one?  Every workload, every backend, 20 calls each.

    python bench/exactness.py                          this interpreter
    python bench/exactness.py --python PATH ...        these interpreters, one after the other
    python bench/exactness.py --mnist DIR              real images (IDX files) for the 784-50-10 step
    python bench/exactness.py --dtype float32          float32 steps

After every call the results, parameters, gradients and states are compared by their bits with an undecorated
run; for float32 steps, of one whose numbers round themselves (tests/single.py).  Exits with 1 when anything
differs or fails.  Nothing is timed.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.workloads import microgpt_ragged  # noqa: E402 - found through the line above
from mgjit import data as datasets  # noqa: E402
from tests.training import CALLS, mnist  # noqa: E402
from tests.workload import BACKENDS, WORKLOADS, Factory, Snapshot, compare, missing, run, run_single  # noqa: E402


def main() -> int:
    """Run the matrix, here or under other interpreters."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--python", nargs="+", metavar="PATH", help="interpreters to run under, not this one")
    parser.add_argument("--mnist", type=Path, metavar="DIR", help="folder with MNIST as IDX files, gz or not")
    parser.add_argument("--calls", type=int, default=CALLS, help="calls of each step (default 20)")
    parser.add_argument("--only", metavar="TEXT", default="", help="workloads whose name contains this")
    parser.add_argument("--backend", action="append", choices=BACKENDS, help="only this one (repeatable)")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    options = parser.parse_args()
    if options.python:
        return max(_elsewhere(python, options) for python in options.python)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["MGJIT_CACHE_DIR"] = cache
        for name in ("MGJIT_CC", "MGJIT_CFLAGS", "MGJIT_DISABLE"):
            os.environ.pop(name, None)
        workloads = _workloads(options.mnist, options.only)
        return _matrix(workloads, options.backend or list(BACKENDS), options)


def _elsewhere(python: str, options: argparse.Namespace) -> int:
    words = [python, __file__, "--calls", str(options.calls), "--only", options.only, "--dtype", options.dtype]
    words += ["--mnist", str(options.mnist)] if options.mnist else []
    for backend in options.backend or ():
        words += ["--backend", backend]
    return subprocess.run(words, check=False).returncode


def _workloads(folder: Path | None, only: str) -> dict[str, Factory]:
    found = dict(WORKLOADS)
    found["microgpt, 16 lengths in one step, 2 calls"] = microgpt_ragged
    if folder is None:
        found["784-50-10, random pixels, 2 calls"] = mnist
    else:
        train = datasets.mnist(folder).train
        found["784-50-10, MNIST, 2 calls"] = lambda: mnist(train.images, train.labels)
    return {name: make for name, make in found.items() if only in name}


def _matrix(workloads: dict[str, Factory], backends: list[str], options: argparse.Namespace) -> int:
    calls, dtype = options.calls, options.dtype
    interpreter = f"{platform.python_implementation()} {platform.python_version()}"
    print(f"{interpreter}, {platform.machine()}, {dtype}, {calls} calls; a nan equals any nan")
    started = time.perf_counter()
    compared = differing = failed = 0
    details: list[str] = []
    usable = [backend for backend in backends if not missing(backend)]
    for backend in set(backends) - set(usable):
        print(f"{backend}: there is no {missing(backend)} here")
    for name, make in workloads.items():
        expected = run(make, calls) if dtype == "float64" else run_single(make, calls)
        cells = []
        for backend in usable:
            count, differences = _one(make, expected, calls, dtype=dtype, **BACKENDS[backend])
            compared += max(count, 0)
            differing += len(differences) if count >= 0 else 0
            failed += count < 0
            cells.append(f"{backend}: {'failed' if count < 0 else len(differences)}")
            details += [f"{name}, {backend}: {difference}" for difference in differences[:3]]
        total = sum(map(len, expected))
        print(f"{name:<46}{total:>8,} values compared; differ: {', '.join(cells)}", flush=True)
    for line in details:
        print(line)
    seconds = time.perf_counter() - started
    print(f"total: {compared:,} values compared, {differing:,} differ, {failed} runs failed", end="")
    print(f" ({seconds:.0f} s)\n")
    return 1 if differing or failed else 0


def _one(make: Factory, expected: list[Snapshot], calls: int, **how: Any) -> tuple[int, list[str]]:
    """Numbers compared and the differences; -1 and the error when the run fails."""
    try:
        return compare(expected, run(make, calls, cache=False, **how))
    except Exception as error:  # the table goes on, and says so
        return -1, [f"{type(error).__name__}: {str(error)[:400]}"]


if __name__ == "__main__":
    sys.exit(main())
