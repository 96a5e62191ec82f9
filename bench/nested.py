"""Scripts with loops inside of their models under `mgjit run`, beside plain Python: none may end later than that.

    python -m bench.nested                                  the scripts of bench/nested, each 10 s or so in CPython
    python -m bench.nested --only mixture --scale 0.2       shorter
    python -m bench.nested --runs 5 --clock wall            the decisions in five runs, each with an empty cache

Each way is a process of its own, from start to end, in turn; no line of a script is changed.  What it prints is
compared with what CPython prints.  A decision is what becomes of a loop: compiled, tried and given up, or left alone;
those of all runs have to be the same.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.processes import Finished, environment, folder, timed

SCRIPTS = Path(__file__).resolve().parent / "nested"
#: How many steps or epochs take about ten seconds in CPython.
SIZES = {
    "state_space": 800, "attention": 450, "mixture": 700, "beam_search": 3200, "lstm_by_hand": 750,
    "layers_of_gru": 1000, "ode": 550, "particles": 30_000, "tagger": 20_000, "denoiser": 350_000,
}  # fmt: skip
#: A script never ends later than this much more than plain Python: a part of its time, and seconds.
PART, SECONDS = 0.03, 0.3


def decisions(explained: str) -> list[str]:
    """What has become of each loop, in one word: compiled, given up, or alone."""
    found = []
    for place, calls in re.findall(r"(\w+\.py:\d+): (?:runs|lines)([^\n]*)", explained):
        number = re.search(r"([\d,]+) compiled calls", calls)
        word = "alone" if number is None else "given up" if number[1] == "0" else "compiled"
        found.append(f"{place} {word}")
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; returns how many scripts are late, or differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual number of steps")
    parser.add_argument("--runs", type=int, default=1, help="how often each script is run by mgjit")
    parser.add_argument("--clock", choices=("processor", "wall"), default="processor")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for each process")
    options = parser.parse_args(words)
    bad = 0
    print(
        "| script | plain | run, at most | run / plain | output | decisions |", "|---|---:|---:|---:|---|---|", sep="\n"
    )
    for name in options.only:
        command = [str(SCRIPTS / f"{name}.py"), str(max(1, round(SIZES[name] * options.scale)))]
        runs: list[Finished] = []
        with folder() as place:
            plain = timed([sys.executable, *command], environment(place / "0"), options.limit)
            for k in range(options.runs):
                way = [sys.executable, "-m", "mgjit", "run", "--explain", *command]
                runs.append(timed(way, environment(place / str(k)), options.limit))
        seconds = [run.wall if options.clock == "wall" else run.processor for run in runs]
        plainly = plain.wall if options.clock == "wall" else plain.processor
        told = [decisions(run.err) for run in runs]
        same = all((run.out, run.code) == (plain.out, plain.code) for run in runs)
        agree = all(one == told[0] for one in told)
        bad += not same or not agree or max(seconds) > (1.0 + PART) * plainly + SECONDS
        print(
            f"| {name} | {plainly:.2f} | {max(seconds):.2f} | {max(seconds) / plainly:.2f} | "
            f"{'equal' if same else 'DIFFERENT'} | {', '.join(told[0]) if agree else told} |",
            flush=True,
        )
    return bad


if __name__ == "__main__":
    sys.exit(main())
