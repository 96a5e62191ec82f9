"""Try to break the cache and the toolchain: python -m tests.faults.torture [--long] [names ...]

The short form is part of the normal test run (test_torture.py); the long one takes a quarter of an hour on an idle
machine.  What a scenario does is written at the top of its module and in its docstring; `harness.py` is what all of
them stand on.  Ends with a table of figures; the exit code is 0 when nothing was broken, 1 when something was.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from mgjit.base import settings

from . import concurrency, damage, directories, faults, features, harness, loading, processes, sweeping
from .harness import Failure, Skip, Torture

FAMILIES = (processes, faults, damage, features, directories, sweeping, loading, concurrency)

SCENARIOS: dict[str, Callable[[Torture], None]] = {
    name: scenario for family in FAMILIES for name, scenario in family.SCENARIOS.items()
}


def play(name: str, long: bool, seed: int, quiet: bool) -> dict[str, Any]:
    """Play one scenario; its result as a row of the table."""
    torture = Torture(name, long, seed, quiet)
    started = time.monotonic()
    row: dict[str, Any] = {"scenario": name, "result": "passed", "detail": ""}
    try:
        SCENARIOS[name](torture)
    except Skip as reason:
        row.update(result="skipped", detail=str(reason))
    except Failure as failure:
        row.update(result="FAILED", detail=str(failure))
    except Exception:
        row.update(result="FAILED", detail=traceback.format_exc())
    finally:
        torture.close()
    if torture.problems:
        row.update(result="FAILED", detail="\n".join([*torture.problems, row["detail"]]))
    return {**row, "seconds": round(time.monotonic() - started, 1), "figures": torture.figures}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.torture", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"scenarios: {', '.join(SCENARIOS)}; default: all")
    parser.add_argument("--long", action="store_true", help="everything, as often as it takes to believe it")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments, positions and lengths")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--quiet", action="store_true", help="no progress bars")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in SCENARIOS]
    if unknown:
        parser.error(f"no such scenario: {', '.join(unknown)}")
    if not hasattr(os, "fork"):
        print("skipped: this system has no fork")
        return 0
    os.environ[settings.BACKGROUND.name] = "0"
    tqdm.monitor_interval = 0  # no second thread: this process forks
    rows = []
    with tempfile.TemporaryDirectory(prefix="torture-compiler-") as directory:
        os.chmod(directory, 0o755)  # noqa: S103 - another user runs it as well
        harness.prepare_compilers(Path(directory))
        harness.import_everything()
        for name in options.names or SCENARIOS:
            rows.append(play(name, options.long, options.seed, options.quiet))
            print(_text(rows[-1]), flush=True)
    if options.json:
        interpreter = f"{sys.implementation.name} {sys.version.split()[0]}"
        options.json.write_text(json.dumps({"interpreter": interpreter, "long": options.long, "rows": rows}, indent=1))
    broken = [row["scenario"] for row in rows if row["result"] == "FAILED"]
    print(f"{len(rows)} scenarios, {len(broken)} broken{': ' if broken else ''}{', '.join(broken)}")
    return 1 if broken else 0


def _text(row: dict[str, Any]) -> str:
    """A row of the table, with everything found below it."""
    lines = [f"{row['scenario']:<24} {row['result']:<8} {row['seconds']:>7.1f} s"]
    lines += [f"    {value!s:>10}  {name}" for name, value in row["figures"].items()]
    lines += [f"    {line}" for line in row["detail"].splitlines()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
