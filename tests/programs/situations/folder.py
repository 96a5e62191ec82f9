"""Run every program of a folder, plain and compiled, and print what becomes of each.

    python -m tests.programs.situations.folder FOLDER [--python PATH ...] [--only WORD] [--limit 600]

1. A program is a file.  Plain is with MGJIT_DISABLE=1; what does not import mgjit runs by `python` and by `mgjit run`.
   Both have the same seeds.  `c` goes to debuggers.
2. What they print must be equal, line by line, up to where a line speaks of time, statistics or warnings; so must the
   way they end be, and no line may say WRONG or FAILED.  Lines that differ between two plain runs, of which the clock
   or another thread decides, are not compared, and the outcome says so.
3. Each step that is plain Python has one warning: "as plain", "plain with one warning" (or one for each of N steps),
   "differs", or "plain Python fails" on this interpreter, where there is nothing to compare with.

Exits with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
#: Seeds what a program may have left to chance, and runs it; or runs it as `mgjit run` does.
_CHILD = """
import random, runpy, sys, warnings
sys.argv = sys.argv[1:]
random.seed(1)
if "numpy" in open(sys.argv[0], encoding="utf-8").read():
    import numpy
    numpy.random.seed(1)
warnings.simplefilter("always")
if ".stats" in open(sys.argv[0], encoding="utf-8").read():
    from mgjit.runtime.stats import Stats
    Stats.__str__ = lambda stats: "Stats()"  # which has several lines, of what differs by intention
runpy.run_path(sys.argv[0], run_name="__main__")
"""
#: From where on a line tells what differs between plain Python and mgjit by intention.
_OWN = re.compile(
    r"(\bplain_calls\b|\bStats\(|\bstats\.|\bwarnings:|\btraces\b|^s \d|\bus per call|, \(seconds|[\d.]+ s\b).*"
)
_PLAIN = re.compile(r"([\w.<>]+) runs as plain Python: (.*)")


class Run(NamedTuple):
    """What a process has printed, and how it ended."""

    printed: str
    errors: str
    code: int

    @property
    def lines(self) -> list[str]:
        """What is compared."""
        return [_OWN.sub("", line).rstrip() for line in self.printed.splitlines()]

    def warned(self) -> list[str]:
        """Of each warning of a plain step, its text."""
        return [" ".join(found) for found in _PLAIN.findall(self.errors + self.printed)]


def play(program: Path, python: str, is_plain: bool, limit: float) -> Run:
    """Run a program once."""
    text = program.read_text(encoding="utf-8")
    way = ["-c", _CHILD, str(program)]
    if not re.search(r"^\s*(import|from) .*\bmgjit\b", text, re.MULTILINE):
        way = [str(program)] if is_plain else ["-m", "mgjit", "run", str(program)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    # a program that starts others compares by itself what they print
    environment["MGJIT_DISABLE"] = str(int(is_plain and "subprocess" not in text))
    try:
        done = subprocess.run(
            [python, *way],
            input="c\n" * 2000,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return Run("", "", 124)
    return Run(done.stdout, done.stderr, done.returncode)


def outcome(program: Path, python: str, limit: float) -> str:
    """What becomes of a program."""
    plain, got = (play(program, python, is_plain, limit) for is_plain in (True, False))
    if re.search(r"\b(WRONG|FAILED)\b", got.printed) or got.code == 124:
        return f"differs: {[*got.lines, got.code][-3:]}"
    if plain.code and plain.code == got.code:
        return f"plain Python fails: {(plain.errors.splitlines() or [''])[-1][:100]}"
    note = ""
    if (plain.lines, plain.code) != (got.lines, got.code):
        again = play(program, python, True, limit)
        steady = [k for k, pair in enumerate(zip(plain.lines, again.lines)) if pair[0] == pair[1]]
        if again.lines == plain.lines or [got.lines[k : k + 1] for k in steady] != [
            plain.lines[k : k + 1] for k in steady
        ]:
            both = (f"{one!r} instead of {other!r}" for one, other in zip(got.lines, plain.lines) if one != other)
            return f"differs: {next(both, (got.code, got.errors[-300:]))}"
        note = ", but for what the clock decides"
    warned = got.warned()
    if len(set(warned)) < len(warned):
        return f"differs: warned twice of {Counter(warned).most_common(1)}"
    if not warned:
        return f"as plain{note}"
    return (
        f"plain with one warning{note}"
        if len(warned) == 1
        else f"plain with one warning for each of {len(warned)}{note}"
    )


def main() -> None:
    """Play the programs of a folder on some interpreters."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", nargs="+", default=[sys.executable])
    parser.add_argument("--only", default="", help="part of the name of a program")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one run")
    options = parser.parse_args()
    found: Counter[str] = Counter()
    for python in options.python:
        counts: Counter[str] = Counter()
        for program in sorted(options.folder.resolve().glob("*.py")):
            if options.only in program.name:
                what = outcome(program, python, options.limit)
                counts[re.split(r"[:,]| for each", what)[0]] += 1
                print(f"{program.name:44}{what}", flush=True)
        print(f"{python}: " + ", ".join(f"{count} {what}" for what, count in counts.most_common()), flush=True)
        found += counts
    sys.exit(bool(found["differs"]))


if __name__ == "__main__":
    main()
