"""Seconds until results 1, 3, 10 and 100 of a step in a fresh process: cold, warm, interpreted, and jax if installed.

    python bench/first_results.py                        all steps, three rounds, medians
    python bench/first_results.py --only image --path MNIST_DIR --clock processor

1. Each measurement is a process of its own.  It imports mgjit, makes the workload, and reads the clocks after each
   result that counts: wall, and processor with what the process has started and waited for.  The import is not in it.
2. Interpreted is the undecorated step in the same process start (MGJIT_DISABLE=1).  Cold is with an empty disk cache,
   warm the next process, `--pause` seconds later.  All take turns, `--repeat` times.
3. The interpreted step stops after `--limit` seconds; its later numbers are proportional to those before (~).  Others
   stop after ten times as long, and have no later numbers.
4. Of microgpt, each result is the first one of another length.  The step of W4 is compiled as in compare.py (float32,
   fast), all others with the options that `mgjit.compile` has by default.

Exits with 1 if results of a strict step differ from the interpreted ones, never because of a time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.processes import environment, folder, timed  # noqa: E402 - found through the line above

BLOCK = 16
MARKS = (1, 3, 10, 100)
TITLES = {
    "image": "784-50-10, one image",
    "moons": "moons 2-16-16-1, batch 100",
    "batch": "784-50-10, batch 128 (float32, fast)",
    "microgpt": f"microgpt, {BLOCK} lengths",
}
WORKLOADS = {"image": "W3", "moons": "W2", "batch": "W4", "microgpt": "W6"}
WAYS = ("interpreted", "cold", "warm", "jax")
CLOCKS = ("wall", "processor")

#: What a child has found: "wall" and "processor" by mark, "results", and how the first one was built.
Found = dict[str, Any]


# ---- in the child ------------------------------------------------------------------------------------------


def child(what: str, way: str, sources: Any, limit: float) -> Found:
    """Call a step until the last mark, or as long as the limit allows."""
    started = time.perf_counter()
    step, calls, described = by_jax(what, sources) if way == "jax" else by_mgjit(what, sources)
    found: Found = {"import": time.perf_counter() - started, "wall": {}, "processor": {}, "results": []}
    last = min(MARKS[-1], len(calls)) if what == "microgpt" else MARKS[-1]
    marks = sorted({min(mark, last) for mark in MARKS})
    begun, used = time.perf_counter(), processor()
    for number in range(1, last + 1):
        result = step(*calls[(number - 1) % len(calls)])
        wall = time.perf_counter() - begun
        found["results"].append(float(getattr(result, "data", result)).hex())
        if number in marks:
            found["wall"][number], found["processor"][number] = wall, processor() - used
        if wall > limit:
            break
    if not found["wall"]:
        found["wall"][number], found["processor"][number] = wall, processor() - used
    return {**found, **described()}


def processor() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def instance_of(what: str, sources: Any) -> tuple[Any, dict[str, Any]]:
    """A workload of compare.py with the calls that are made here, and the options of its step."""
    from bench import workloads

    if what == "microgpt":
        instance = workloads.microgpt(sources, calls=BLOCK)
        words = [workloads.spelled(workloads.LETTERS[:length]) for length in range(BLOCK)]
        instance.calls = [(word, *call[1:]) for word, call in zip(words, instance.calls)]
        return instance, {}
    workload = workloads.WORKLOADS[WORKLOADS[what]]
    return workload.make(sources), workload.options if what == "batch" else {}


#: A step, the arguments of its calls, and what can be said afterwards of how it was built.
Ready = tuple[Callable[..., Any], Sequence[Any], Callable[[], Found]]


def by_mgjit(what: str, sources: Any) -> Ready:
    """The step, decorated; undecorated in effect with MGJIT_DISABLE=1."""
    import mgjit
    from mgjit.compiler.toolchain import process

    instance, options = instance_of(what, sources)
    step = mgjit.compile(warn_after=100, **options)(instance.step)

    def described() -> Found:
        stats = step.stats
        return {
            "traced": stats.traces, "compiler runs": process.compiler_runs, "trace": stats.trace_seconds,
            "passes": stats.roll_seconds, "compiler": stats.compile_seconds, "cache": stats.cache,
        }  # fmt: skip

    return step, instance.calls, described


def by_jax(what: str, sources: Any) -> Ready:
    """The same step over arrays, as compare.py has it."""
    from bench.peers import with_jax
    from bench.peers.common import Problem

    name = WORKLOADS[what]
    instance, _ = instance_of(what, sources)
    form = with_jax.forms(Problem(name, [p.data for p in instance.parameters], list(instance.calls), name == "W4"))[
        "jax jit"
    ]()
    return lambda *_: form.losses(1)[0], instance.calls, dict


# ---- in the parent -----------------------------------------------------------------------------------------


def measured(what: str, ways: Sequence[str], options: argparse.Namespace) -> dict[str, list[Found]]:
    """All runs of a workload, by way, in turns."""
    found: dict[str, list[Found]] = {way: [] for way in ways}
    for _ in range(options.repeat):
        with folder() as cache:
            for way in ways:
                time.sleep(options.pause if way == "warm" else 0.0)
                found[way].append(run_child(what, way, cache, options))
    return found


def run_child(what: str, way: str, cache: Path, options: argparse.Namespace) -> Found:
    """What a process has found."""
    settings = {"MGJIT_DISABLE": "1"} if way == "interpreted" else {}
    limit = options.limit if way == "interpreted" else 10 * options.limit
    argv = [options.python, __file__, "--child", what, way, "--limit", str(limit), *data_of(options)]
    done = timed(argv, environment(cache, **settings), 2 * limit + 60.0)
    if done.code != 0:
        raise SystemExit(f"{TITLES[what]}, {way}: {done.err[-2000:] or 'not done after the limit'}")
    answer: Found = json.loads(done.out.splitlines()[-1])
    for clock in CLOCKS:
        answer[clock] = {int(mark): seconds for mark, seconds in answer[clock].items()}
    return answer


def data_of(options: argparse.Namespace) -> list[str]:
    """The options that say where data is."""
    pairs = ((name, getattr(options, name)) for name in ("path", "names"))
    return [text for name, value in pairs if value for text in (f"--{name}", str(value))]


def seconds_until(mark: int, runs: Sequence[Found], clock: str) -> tuple[float, bool]:
    """The median of the seconds until a result, and whether it was measured; else proportional to the last measured."""
    measured_ones = [run[clock][mark] for run in runs if mark in run[clock]]
    if len(measured_ones) == len(runs):
        return statistics.median(measured_ones), True
    return statistics.median(run[clock][max(run[clock])] / max(run[clock]) * mark for run in runs), False


def marks_of(what: str) -> tuple[int, ...]:
    """Which results of a workload count."""
    return (*MARKS[:-1], BLOCK) if what == "microgpt" else MARKS


def table(what: str, found: dict[str, list[Found]], clock: str) -> list[str]:
    """A table of Markdown: a line for each way, with what it costs beside the interpreted step."""
    marks = marks_of(what)
    lines = [f"| {TITLES[what]}, {clock} s | " + " | ".join(f"result {mark}" for mark in marks) + " |"]
    lines.append("|---|" + "---:|" * len(marks))
    for way, runs in found.items():
        cells = []
        for mark in marks:
            (seconds, is_measured), (plain, _) = (seconds_until(mark, r, clock) for r in (runs, found["interpreted"]))
            if way == "interpreted":
                cells.append(f"{'' if is_measured else '~'}{seconds:.3f}")
            else:
                cells.append(f"{seconds:.3f} ({seconds / plain:.2f} x)" if is_measured else "")
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return lines


def building(found: dict[str, list[Found]]) -> list[str]:
    """What the last structure has cost that was built, for cold and warm."""
    lines = []
    for way in ("cold", "warm"):
        runs = found[way]
        parts = [f"{part} {statistics.median(r[part] for r in runs):.3f} s" for part in ("trace", "passes", "compiler")]
        counts = [f"{part} {runs[-1][part]}" for part in ("traced", "compiler runs", "cache")]
        lines.append(f"{way}, the last that was built: {', '.join(parts + counts)}")
    return lines


def differing(what: str, found: dict[str, list[Found]]) -> list[str]:
    """The ways of a strict step whose results are not the interpreted ones, bit for bit."""
    wanted = found["interpreted"][0]["results"]
    runs = [(way, run["results"]) for way in ("interpreted", "cold", "warm") for run in found[way]]
    wrong = {way for way, results in runs if any(a != b for a, b in zip(results, wanted))}
    return [] if what == "batch" else [f"{TITLES[what]}, {way}: results differ" for way in sorted(wrong)]


def report(options: argparse.Namespace) -> tuple[list[str], list[str], dict[str, Any]]:
    """All tables as lines of Markdown, what was wrong, and all numbers."""
    lines, problems, raw = [], [], {}
    ways = [way for way in WAYS if way != "jax" or has_jax(options.python)]
    for what in options.only:
        found = raw[what] = measured(what, ways, options)
        for clock in options.clock:
            lines += [*table(what, found, clock), ""]
        lines += [*building(found), ""]
        problems += differing(what, found)
    return lines, problems, raw


def has_jax(python: str) -> bool:
    """Whether an interpreter has jax."""
    return timed([python, "-c", "import jax"], dict(os.environ), 60.0).code == 0


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TITLES, default=list(TITLES), help="some of the steps")
    parser.add_argument("--path", type=Path, metavar="DIR", help="folder with MNIST IDX files")
    parser.add_argument("--names", type=Path, metavar="FILE", help="names, one a line")
    parser.add_argument("--python", default=sys.executable, help="the interpreter, such as a PyPy with mgjit's needs")
    parser.add_argument("--repeat", type=int, default=3, help="processes of each kind (default 3)")
    parser.add_argument(
        "--limit", type=float, default=30.0, metavar="S", help="seconds that interpreted results may take (30)"
    )
    parser.add_argument("--pause", type=float, default=5.0, metavar="S", help="seconds between cold and warm (5)")
    parser.add_argument("--clock", nargs="+", choices=CLOCKS, default=list(CLOCKS), help="which seconds are printed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to a file as well")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.repeat < 1:
        parser.error("--repeat is 1 at least")
    return options


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print, or be a child."""
    options = arguments(words)
    if options.child:
        from bench import workloads

        sources = workloads.Sources(options.path, options.names)
        print(json.dumps(child(*options.child, sources, options.limit)))
        return 0
    lines, problems, raw = report(options)
    print("\n".join([*lines, *problems]))
    if options.json:
        options.json.write_text(json.dumps(raw, indent=1), encoding="utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
