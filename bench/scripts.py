"""Complete scripts from process start to process end: as plain Python, with an empty disk cache, with a full one.

    python bench/scripts.py                                   all twenty of bench/scripts
    python bench/scripts.py --only trees --python pypy3       one of them, on another interpreter
    python bench/scripts.py my_script.py --limit 600          a script of your own

1. Each run is a process of its own.  Plain is MGJIT_DISABLE=1; cold and warm follow one another on a disk cache of
   their own, after `--pause` seconds in which is built what a short script has not waited for.  With `--repeat` the
   three take turns, and medians are reported.
2. Everything that a script prints is compared with what its plain run has printed, character by character.  The scripts
   print numbers in full, and at the end something that all of their numbers have a part in.
3. A run that takes longer than `--limit` seconds is ended, and counted with the time it has had.

Exits with 1 if a script has failed or printed something else, never because of a time.  `STEPS=3` in the environment
makes every script a short one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.processes import Finished, environment, folder, timed  # noqa: E402 - found through the line above

SCRIPTS = Path(__file__).parent / "scripts"
WAYS = ("plain", "cold", "warm")

#: Those in which the arguments of a step have more than one structure.
VARYING = {
    "char_gpt", "char_rnn", "denoising", "gpt_batches", "reinforce", "skip_gram", "tagger", "text_classifier", "trees",
}  # fmt: skip

#: Runs a script as `__main__`, and then writes how many steps it has made and what became of its compiled ones.
CHILD = """
import json, sys
__file__, told = sys.argv[1:]
with open(__file__, encoding="utf-8") as file:
    exec(compile(file.read(), __file__, "exec"))
stats = [each.stats for each in list(globals().values()) if type(each).__name__ == "CompiledStep"]
with open(told, "w") as file:
    json.dump({"steps": globals().get("STEPS", 0), "traced": sum(s.traces for s in stats),
               "plain_calls": sum(s.plain_calls + s.waiting_calls for s in stats),
               "mismatches": [text for s in stats for text in s.mismatches]}, file)
"""


@dataclass
class Way:
    """The runs of a script in one way.

    Attributes:
        wall, processor: seconds of each run.
        problems: what was not as it should be, in words.
        steps, traced, plain_calls: of the last run: training steps, structures traced, calls made by plain Python.
        warnings: what the last run has written to stderr.
    """

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    steps: int = 0
    traced: int = 0
    plain_calls: int = 0
    warnings: str = ""

    def seconds(self, clock: str) -> float:
        """The median by a clock: "wall" or "processor"."""
        return statistics.median(getattr(self, clock))


def measured(script: Path, options: argparse.Namespace) -> dict[str, Way]:
    """A script in all ways, in turns."""
    ways = {way: Way() for way in WAYS}
    for _ in range(options.repeat):
        with folder() as place:
            wanted = None
            for name, way in ways.items():
                time.sleep(options.pause if name == "warm" else 0.0)
                told = place / "told.json"
                run = run_once(script, name, place, told, options)
                note(way, run, told)
                if run.code == 0 and wanted is not None and run.out != wanted:
                    way.problems.append(first_difference(wanted, run.out))
                if name == "plain" and run.code == 0:
                    wanted = run.out
    return ways


def run_once(script: Path, way: str, place: Path, told: Path, options: argparse.Namespace) -> Finished:
    """One process."""
    settings = {"MGJIT_DISABLE": "1"} if way == "plain" else {}
    told.unlink(missing_ok=True)
    argv = [options.python, "-c", CHILD, str(script.resolve()), str(told)]
    return timed(argv, environment(place / "cache", **settings), options.limit, place)


def note(way: Way, run: Finished, told: Path) -> None:
    """Add a run to the others of its way."""
    way.wall.append(run.wall)
    way.processor.append(run.processor)
    way.warnings = run.err.strip()
    if run.code is None:
        way.problems.append(f"not done after {run.wall:.0f} s")
    elif run.code != 0:
        way.problems.append(f"failed: {way.warnings.splitlines()[-1] if way.warnings else run.code}")
    else:
        numbers = json.loads(told.read_text())
        way.steps, way.traced, way.plain_calls = numbers["steps"], numbers["traced"], numbers["plain_calls"]
        way.problems += numbers["mismatches"]


def first_difference(wanted: str, found: str) -> str:
    """The first line that is not as it should be."""
    pairs = zip([*wanted.splitlines(), "(end)"], [*found.splitlines(), "(end)"])
    line, other = next(((a, b) for a, b in pairs if a != b), ("", ""))
    return f"printed {other[:100]!r} instead of {line[:100]!r}"


HEADER = (
    "| script | shapes | steps | traced | plain calls | plain s | cold s | warm s | plain / cold | plain / warm "
    "| equal |"
)


def row(name: str, ways: dict[str, Way], clock: str) -> str:
    """One line of the table."""
    plain, cold, warm = (ways[way].seconds(clock) for way in WAYS)
    compiled = ways["cold"]
    equal = "NO" if any(way.problems for way in ways.values()) else "yes"
    return (
        f"| {name} | {shapes(name)} | {ways['plain'].steps} | {compiled.traced} | {compiled.plain_calls} | {plain:.2f} "
        f"| {cold:.2f} | {warm:.2f} | {plain / cold:.2f} | {plain / warm:.2f} | {equal} |"
    )


def shapes(name: str) -> str:
    """Whether the structure of a script's arguments changes."""
    if not (SCRIPTS / f"{name}.py").exists():
        return ""
    return "varying" if name in VARYING else "fixed"


def medians(found: dict[str, dict[str, Way]], clock: str) -> list[str]:
    """For fixed and for varying shapes: the median ratios, and the smallest."""
    lines = []
    for kind in ("fixed", "varying"):
        chosen = [ways for name, ways in found.items() if shapes(name) == kind]
        for way in ("cold", "warm") if chosen else ():
            ratios = [ways["plain"].seconds(clock) / ways[way].seconds(clock) for ways in chosen]
            lines.append(f"{kind}, {way}: plain / {way} {statistics.median(ratios):.2f}, at least {min(ratios):.2f}")
    return lines


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", type=Path, help="scripts of your own instead of bench/scripts")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=(), help="some of bench/scripts")
    parser.add_argument("--python", default=sys.executable, help="the interpreter, such as a PyPy with mgjit's needs")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each way (default 1)")
    parser.add_argument("--limit", type=float, default=300.0, metavar="S", help="seconds that a run may take (300)")
    parser.add_argument("--pause", type=float, default=5.0, metavar="S", help="seconds between cold and warm (5)")
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall", help="which seconds the table has")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to a file as well")
    options = parser.parse_args(words)
    available = {path.stem: path for path in sorted(SCRIPTS.glob("*.py"))}
    unknown = set(options.only) - set(available)
    if unknown:
        parser.error(f"--only {' '.join(sorted(unknown))}: bench/scripts has {', '.join(available)}")
    options.scripts = options.scripts or [available[name] for name in options.only or available]
    return options


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print and say whether all were equal."""
    options = arguments(words)
    print(f"{HEADER}\n|---|---|" + "---:|" * 8 + "---|", flush=True)
    found: dict[str, dict[str, Way]] = {}
    for script in options.scripts:
        ways = found[script.stem] = measured(script, options)
        print(row(script.stem, ways, options.clock), flush=True)
    print("\n" + "\n".join(medians(found, options.clock)))
    problems = [
        f"{name}, {kind}: {text}" for name, ways in found.items() for kind in WAYS for text in ways[kind].problems
    ]
    warnings = [f"{name}: {text}" for name, ways in found.items() for text in ways["cold"].warnings.splitlines()]
    print("\n".join(["", *problems, *dict.fromkeys(warnings)]))
    if options.json:
        raw = {name: {kind: asdict(way) for kind, way in ways.items()} for name, ways in found.items()}
        options.json.write_text(json.dumps(raw, indent=1), encoding="utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
