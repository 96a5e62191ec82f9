"""Scripts that know nothing of mgjit, from process start to process end: CPython, PyPy, `mgjit run` cold and warm.

    python -m bench.unmodified                                    the scripts of bench/unmodified
    python -m bench.unmodified --only module_loop ragged --scale 3
    python -m bench.unmodified --microgpt microgpt.py names.txt   the published microgpt script as well
    python -m bench.unmodified --pypy pypy3 --clock processor

1. The modules of mgjit are compiled before, as `pip install` does.  Each way is a process of its own, in a folder of
   its own; cold has an empty disk cache, warm the one that cold has left.  No line of a script is changed.
2. What it prints, its exit code and its files are compared with those of CPython.  PyPy computes `x ** 2` as `x * x`,
   and classes with operands in sets have another order in each process: numbers of those are compared in six digits.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.processes import Finished, environment, folder, timed

SCRIPTS = Path(__file__).resolve().parent / "unmodified"
#: How many iterations or epochs take a few seconds in CPython.
SIZES = {
    "module_loop": 600, "trainer_class": 600, "main_nested": 500, "ragged": 1500, "early_stopping": 800,
    "schedule": 4800, "evaluation": 8000, "generator": 4000, "progress_bar": 1500, "several_models": 600,
    "reinforce": 3000, "sampler": 7500, "arguments": 1500, "plain_floats": 40000, "network_by_hand": 9000,
    "while_loop": 4000, "accumulation": 1500, "adam": 1500, "dropout": 1500, "divides_by_zero": 8000,
    "overflows": 4000, "several_modules": 3000, "no_training": 1500, "refused": 1500, "micrograd_demo": 100,
    "styles": 1200,
}  # fmt: skip
UNORDERED = frozenset({"micrograd_demo"})
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


@dataclass
class Way:
    """Runs of one kind.

    Attributes:
        seconds: by the clock that was asked for. problems: what was not as in CPython.
        explained: what `--explain` says.
    """

    seconds: float = float("nan")
    problems: list[str] = field(default_factory=list)
    explained: str = ""


def run(script: Path, words: Sequence[str], options: argparse.Namespace) -> dict[str, Way]:
    """A script in all ways."""
    found: dict[str, Way] = {}
    with folder() as place:
        wanted: tuple[Finished, dict[str, bytes]] | None = None
        for way in ("CPython", "PyPy", "cold", "warm"):
            if way == "PyPy" and not options.pypy:
                continue
            if way == "warm":
                time.sleep(options.pause)
            where = place / way
            where.mkdir()
            if options.microgpt and script == options.microgpt[0]:
                shutil.copy(options.microgpt[1], where / "input.txt")
            command = {"CPython": [sys.executable], "PyPy": [options.pypy]}.get(way)
            done = timed(
                [*(command or [sys.executable, "-m", "mgjit", "run", "--explain"]), str(script), *words],
                environment(place / "cache"), options.limit, where,
            )  # fmt: skip
            files = {path.name: path.read_bytes() for path in where.iterdir() if path.is_file()}
            found[way] = Way(done.wall if options.clock == "wall" else done.processor)
            if wanted is None:
                wanted = done, files
            else:
                rounded = way == "PyPy" or script.stem in UNORDERED
                found[way].problems = differences(wanted, (done, files), rounded)
                found[way].explained = done.err if way != "PyPy" else ""
    return found


def differences(
    wanted: tuple[Finished, dict[str, bytes]], found: tuple[Finished, dict[str, bytes]], rounded: bool
) -> list[str]:
    """What differs between two runs, in words."""
    (first, files), (other, others) = wanted, found
    texts = [run.out for run in (first, other)]
    if rounded:
        texts = [_NUMBER.sub(lambda number: f"{float(number[0]):.6g}", text) for text in texts]
    problems = []
    if texts[0] != texts[1]:
        pairs = zip([*texts[0].splitlines(), "(end)"], [*texts[1].splitlines(), "(end)"])
        line, mine = next(((a, b) for a, b in pairs if a != b), ("", ""))
        problems.append(f"prints {mine[:80]!r} instead of {line[:80]!r}")
    if first.code != other.code:
        problems.append(f"exit code {other.code} instead of {first.code}")
    if not other.err.startswith(first.err) and not rounded:
        problems.append("another traceback")
    if files != others and not rounded:
        problems.append("other files")
    return problems


def row(name: str, ways: dict[str, Way]) -> str:
    """One line of the table."""
    plain = ways["CPython"].seconds
    times = [f"{ways[way].seconds:.2f}" if way in ways else "" for way in ("CPython", "PyPy", "cold", "warm")]
    ratios = [f"{plain / ways[way].seconds:.2f}" for way in ("cold", "warm")]
    equal = "NO" if ways["cold"].problems or ways["warm"].problems else "yes"
    calls = sum(int(n.replace(",", "")) for n in re.findall(r"([\d,]+) compiled calls", ways["warm"].explained))
    return f"| {name} | {' | '.join([*times, *ratios])} | {calls:,} | {equal} |"


def main(words: Sequence[str] | None = None) -> int:
    """Run all scripts in all ways, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="some of the scripts")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on how long they train (default 1)")
    parser.add_argument("--microgpt", nargs=2, type=Path, metavar=("SCRIPT", "NAMES"), help="run this script, too")
    parser.add_argument("--pypy", default=shutil.which("pypy3"), help="a PyPy to run them as well")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall", help="which seconds the table has")
    parser.add_argument("--limit", type=float, default=1800.0, metavar="S", help="seconds that a process may take")
    parser.add_argument("--pause", type=float, default=3.0, metavar="S", help="seconds between cold and warm")
    options = parser.parse_args(words)
    chosen = [(SCRIPTS / f"{name}.py", [str(int(size * options.scale))]) for name, size in SIZES.items()]
    chosen = [(script, sizes) for script, sizes in chosen if not options.only or script.stem in options.only]
    if options.microgpt:
        options.microgpt = [path.resolve() for path in options.microgpt]
        chosen.append((options.microgpt[0], []))
    print(
        "| script | CPython s | PyPy s | cold s | warm s | CPython / cold | CPython / warm | compiled calls | equal |"
    )
    print("|---|" + "---:|" * 7 + "---|", flush=True)
    problems = []
    for script, sizes in chosen:
        ways = run(script, sizes, options)
        print(row(script.stem, ways), flush=True)
        problems += [f"{script.stem}, {way}: {text}" for way, found in ways.items() for text in found.problems]
    print("\n".join(["", *problems]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
