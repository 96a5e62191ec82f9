"""Scripts in the manner of what people publish, unmodified, from process start to end: plain, run cold, run warm.

    python bench/people.py                         those of bench/people
    python bench/people.py --only perceptron --pypy pypy3
    python bench/people.py --other path/to/mgjit   another copy of mgjit, for a comparison

1. Each way is a process of its own in an empty folder: plain Python, `python -m mgjit run --explain` with an empty disk
   cache, the same with what that has left, and PyPy where one is named.
2. Output and exit code are compared with those of plain Python; PyPy's numbers in six digits.
3. A line for each script has its processor seconds, ratios (plain / run: more is better) and what `--explain` says; the
   last line has medians. Those of compilers count as well; on an idle machine they run beside the script (`--wall`).

Exits with 1 if a script prints something else, never because of a time.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.processes import Finished, environment, folder, timed  # noqa: E402 - found through the line above

SCRIPTS = Path(__file__).parent / "people"
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


def run(script: Path, options: argparse.Namespace) -> dict[str, Finished]:
    """A script in all ways."""
    found: dict[str, Finished] = {}
    ours = [sys.executable, "-m", "mgjit", "run", "--explain"]
    ways = {"plain": [sys.executable], "cold": ours, "warm": ours}
    if options.pypy:
        ways["PyPy"] = [options.pypy]
    with folder() as place:
        for way, command in ways.items():
            settings = environment(place / "cache", PYTHONPATH=str(options.other))
            time.sleep(options.pause if way == "warm" else 0.0)
            found[way] = timed([*command, str(script)], settings, options.limit, place)
    return found


def problems(found: dict[str, Finished]) -> list[str]:
    """What differs from plain Python, in words."""
    wanted = found["plain"]
    told = [f"plain: exit code {wanted.code}"] if wanted.code else []
    for way, other in found.items():
        texts = [wanted.out, other.out]
        if way == "PyPy":  # which computes `x ** 2` as `x * x`
            texts = [_NUMBER.sub(lambda number: f"{float(number[0]):.6g}", text) for text in texts]
        if texts[0] != texts[1] or wanted.code != other.code:
            told.append(f"{way}: another output, or exit code {other.code}: {other.err[-300:]}")
    return told


def explained(run: Finished) -> str:
    """What `--explain` says, in short: the loop with the most compiled calls, or the last reason for none."""
    calls = re.findall(r":(\d+): .*?([\d,]+) compiled call", run.err)
    best = max(calls, key=lambda pair: int(pair[1].replace(",", "")), default=("", "0"))
    if best[1] != "0":
        return f"line {best[0]}: {best[1]} compiled calls"
    lines = [line.strip() for line in run.err.splitlines() if line.strip()]
    return re.sub(r"^\S*/(\w+\.py)", r"\1", lines[-1])[:100] if lines else ""


def main(words: Sequence[str] | None = None) -> int:
    """Run all scripts in all ways, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", type=Path, help="scripts of your own instead")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="some of the scripts")
    parser.add_argument("--pypy", metavar="PATH", help="a PyPy to run them as well")
    parser.add_argument("--other", type=Path, default=ROOT, metavar="FOLDER", help="where mgjit is (default: here)")
    parser.add_argument("--wall", action="store_true", help="seconds from start to end instead of processor seconds")
    parser.add_argument("--limit", type=float, default=600.0, metavar="S", help="seconds that a process may take")
    parser.add_argument("--pause", type=float, default=1.0, metavar="S", help="seconds between cold and warm")
    options = parser.parse_args(words)
    scripts = options.scripts or sorted(SCRIPTS.glob("*.py"))
    told: list[str] = []
    ratios: dict[str, list[float]] = {}
    print("| script | plain s | cold | warm | PyPy | what `--explain` says |\n|---|---:|---:|---:|---:|---|")
    for script in (one.resolve() for one in scripts if not options.only or one.stem in options.only):
        found = run(script, options)
        seconds = {way: one.wall if options.wall else one.processor for way, one in found.items()}
        plain, texts = seconds["plain"], list[str]()
        for way in ("cold", "warm", "PyPy"):
            if way in found:
                ratios.setdefault(way, []).append(plain / seconds[way])
            texts.append(f"{plain / seconds[way]:.2f}" if way in found else "")
        print(f"| {script.stem} | {plain:.2f} | {' | '.join(texts)} | {explained(found['warm'])} |", flush=True)
        told += [f"{script.stem}, {text}" for text in problems(found)]
    medians = [f"{statistics.median(ratios[way]):.2f}" if way in ratios else "" for way in ("cold", "warm", "PyPy")]
    print(f"| median | | {' | '.join(medians)} | |")
    print("\n".join(["", *told]))
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
