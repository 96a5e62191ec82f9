"""All workloads, by mgjit, by C written by hand and by every peer that is installed, side by side on one core.

    python bench/compare.py --make-environments DIR          once: a virtual environment for each peer
    python bench/compare.py --environments DIR [--path MNIST_DIR] [--names names.txt] [--pypy pypy/bin/python]

1. Every peer runs in a process of its own (`bench/peers/serve.py`), with the interpreter of its environment in DIR,
   else the one given by `--python-of NAME=PATH`, else this one.  All stay on one core, and only one works at a time.
2. For each workload the same weights and calls go to all peers, and the losses of the first steps are compared: those
   of mgjit, of the undecorated step and of strict C exactly, those of the others within a tolerance.  What differs is
   left out, with the reason.
3. Then each is timed in turn, a few hundredths of a second each, and again from the start, `--repeats` times; the
   medians are reported, or the least times (`--least`) on a machine that does other work as well.
4. The results go to `bench/RESULTS.md`, `.json`, and with matplotlib a picture beside them.  With `--keep`, workloads
   that this run does not measure stay as the `.json` has them, each with the machine it was measured on.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pickle
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import first_results, workloads  # noqa: E402 - found through the line above
from bench.peers.common import Problem  # noqa: E402
from bench.peers.process import Peer, PeerError  # noqa: E402
from bench.plot import plot  # noqa: E402
from bench.workloads import WORKLOADS, Sources, Workload  # noqa: E402

#: Peers in the order of the table, with what pip installs for each.
PEERS: dict[str, tuple[str, ...]] = {
    "mgjit": (),
    "c": (),
    "numpy": ("numpy",),
    "numba": ("numba", "numpy"),
    "jax": ("jax", "numpy"),
    "torch": ("torch", "numpy"),
    "pytensor": ("pytensor", "numba", "numpy"),
    "casadi": ("casadi", "numpy"),
    "drjit": ("drjit", "numpy"),
    "micrograd": ("micrograd",),
}

#: On PyPy: the file of the peer, and the workloads that are small enough.
PYPY_PEERS = ("mgjit", "micrograd")
PYPY_WORKLOADS = ("W1", "W2", "W3", "W6")
PYPY_WARM_UP = 3.0  # seconds of steps before the clock, for its own compiler

EXACT = ("mgjit, gradients kept", "mgjit, Python backend", "mgjit .loop", "undecorated", "C by hand", "C by hand, loop")
COMPARED = 3  # losses
TOLERANCE = {"float64": 1e-9, "float32": 1e-3}

WARM_UP = 0.5  # the same for all others
SETTLED = 0.8  # of the least time before: a slice that takes longer shows that forms get no quicker
SLICE = 0.03  # seconds that one entry runs before the next one's turn
OPENING_LIMIT = 180.0  # seconds for building all forms of one peer


@dataclass
class Entry:
    """A form of a peer on one workload; one that is kept from an earlier run has no peer."""

    label: str
    form: str
    peer: Peer | None
    round_to: int
    first: float
    count: int = 1
    seconds: list[float] = field(default_factory=list)
    summary: Callable[[Sequence[float]], float] = statistics.median

    @property
    def time(self) -> float:
        """Seconds a step: the median, or the least."""
        return self.summary(self.seconds)

    def take(self) -> float:
        """Run `count` steps: seconds a step."""
        assert self.peer is not None
        seconds: float = self.peer.ask(300.0, do="time", form=self.form, count=self.count)["seconds"]
        return seconds


@dataclass
class Result:
    """What was measured on one workload, and on which machine."""

    workload: Workload
    entries: list[Entry] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    machine: list[str] = field(default_factory=list)

    def seconds(self, label: str) -> float | None:
        """A step of an entry, if it is there."""
        return next((entry.time for entry in self.entries if entry.label == label), None)


class Comparison:
    """All peers and the workloads they are asked for."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.sources = Sources(options.path, options.names)
        self.folder = folder
        self.core = options.core
        if self.core is None and hasattr(os, "sched_getaffinity"):
            self.core = max(os.sched_getaffinity(0))
        self.peers: dict[str, Peer] = {}
        self.versions: dict[str, str] = {}
        self.absent: dict[str, str] = {}

    # ---- peers -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start every peer and ask for its version; those that do not start are left out by name."""
        for name in self.options.peers:
            self._start(name, name, interpreter_of(name, self.options))
        for name in PYPY_PEERS if self.options.pypy else ():
            self._start(f"pypy {name}", name, self.options.pypy)

    def _start(self, label: str, name: str, python: str) -> None:
        try:
            peer = Peer(name, python, self.core, self.folder / f"{label}.log")
            self.versions[label] = peer.ask(120.0, do="version")["version"]
            self.peers[label] = peer
        except (PeerError, OSError) as reason:
            self.absent[label] = str(reason)
            print(f"{label}: left out: {reason}", flush=True)

    def end(self) -> None:
        """End all processes."""
        for peer in self.peers.values():
            peer.end()

    # ---- one workload ------------------------------------------------------------------------------------

    def run(self, workload: Workload) -> Result:
        """Open, compare, time."""
        result = Result(workload, machine=machine(self))
        problem = self.folder / f"{workload.name}.pickle"
        problem.write_bytes(pickle.dumps(self._problem(workload)))
        expected: list[float] = []
        for label in list(self.peers):
            if label.startswith("pypy ") and workload.name not in PYPY_WORKLOADS:
                continue
            self._open(label, problem, result, expected)
        for entry in result.entries:
            self._calibrate(entry)
        for _ in range(self.options.repeats):
            for entry in list(result.entries):
                self._time(entry, result)
        for peer in self.peers.values():
            peer.ask(60.0, do="close")
        return result

    def _problem(self, workload: Workload) -> Problem:
        instance = workload.make(self.sources)
        return Problem(
            workload.name,
            [p.data for p in instance.parameters],
            instance.calls,
            workload.options["dtype"] == "float32",
            *(str(path.resolve()) if path else None for path in (self.sources.mnist, self.sources.names)),
        )

    def _open(self, label: str, problem: Path, result: Result, expected: list[float]) -> None:
        started = time.perf_counter()
        try:
            opened = self.peers[label].ask(OPENING_LIMIT, do="open", problem=str(problem), compared=COMPARED)
        except PeerError as reason:
            result.skipped[label] = str(reason)
            self._restart(label)
            return
        prefix = "PyPy: " if label.startswith("pypy ") else ""
        for form, reason in opened["skipped"].items():
            result.skipped[prefix + form] = reason
        for form, losses in opened["forms"].items():
            expected.extend(losses if not expected else [])  # mgjit is opened first
            wrong = difference(form, result.workload, expected, losses)
            if wrong:
                result.skipped[prefix + form] = f"its losses differ: {wrong}"
                continue
            round_to, first = opened["round_to"][form], opened["seconds"][form]
            entry = Entry(prefix + form, form, self.peers[label], round_to, first)
            entry.summary = min if self.options.least else statistics.median
            result.entries.append(entry)
        print(f"  {label}: opened in {time.perf_counter() - started:.1f} s", flush=True)

    def _restart(self, label: str) -> None:
        """A peer that was ended gets a new process for the next workload."""
        if self.peers[label].running:
            return
        name = label.rpartition(" ")[2]
        python = self.options.pypy if label.startswith("pypy ") else interpreter_of(name, self.options)
        del self.peers[label]
        self._start(label, name, python)

    def _calibrate(self, entry: Entry) -> None:
        """How many steps fill a slice, by the least time: in any one slice, code may be compiled or verified.

        The clock waits until a slice is no shorter than those before it, and as many steps have run as the warm-up
        takes at the least time.  What the first slices took says nothing: a round of W6 compiles each length.
        """
        warm_up = PYPY_WARM_UP if entry.label.startswith("PyPy") else WARM_UP
        steps, least, has_settled, entry.count = 0, math.inf, False, entry.round_to
        while not has_settled or steps * least < warm_up:
            seconds = entry.take()
            steps, has_settled, least = steps + entry.count, seconds > SETTLED * least, min(least, seconds)
            wanted = max(1, math.ceil(SLICE / max(least, 1e-9)))
            if wanted > 2 * entry.count:  # else keep it: some forms are compiled for a count
                entry.count = math.ceil(wanted / entry.round_to) * entry.round_to

    def _time(self, entry: Entry, result: Result) -> None:
        if entry.seconds and entry.time * entry.count > 0.5 and len(entry.seconds) >= 3:
            return  # the slow ones: three times is enough
        try:
            entry.seconds.append(entry.take())
        except PeerError as reason:
            result.entries.remove(entry)
            result.skipped[entry.label] = str(reason)


def interpreter_of(name: str, options: argparse.Namespace) -> str:
    """The Python that runs a peer."""
    given: str | None = options.python_of.get(name)
    if given:
        return given
    if options.environments and PEERS[name]:
        for place in ("bin/python", "Scripts/python.exe"):
            path = options.environments / name / place
            if path.exists():
                return str(path)
    return sys.executable


def difference(form: str, workload: Workload, expected: Sequence[float], losses: Sequence[float]) -> str:
    """What is wrong with the losses; empty when nothing is."""
    exact = form in EXACT and workload.options["mode"] == "strict"
    tolerance = 0.0 if exact else TOLERANCE[workload.options["dtype"]]
    for k, (a, b) in enumerate(zip(expected, losses), 1):
        if not abs(a - b) <= tolerance * abs(a):
            return f"loss {k} is {b!r} instead of {a!r}"
    return ""


# ---- environments ----------------------------------------------------------------------------------------


def make_environments(folder: Path, names: Sequence[str]) -> None:
    """A virtual environment for each peer, made with this interpreter."""
    for name in names:
        if not PEERS[name]:
            continue
        place = folder / name
        print(f"{place}: {' '.join(PEERS[name])}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        python = next(p for p in (place / "bin/python", place / "Scripts/python.exe") if p.exists())
        done = subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PEERS[name]], check=False)
        if done.returncode:
            print(f"{name} could not be installed and will be skipped", flush=True)


# ---- the report ------------------------------------------------------------------------------------------


def report(comparison: Comparison, results: Sequence[Result], start: Sequence[str], picture: str) -> str:
    """The page.  One machine is named at its top, several are named with what they measured."""
    is_one = all(result.machine == results[0].machine for result in results)
    lines = [
        "# Results",
        "",
        "Made by `python bench/compare.py`; [what is compared, and how](README.md).",
        "",
    ]
    if is_one:
        lines += [*(f"- {line}" for line in results[0].machine), ""]
    lines += [
        f"µs a step, {'the least' if comparison.options.least else 'medians'}.",
        "`/ mgjit` and `/ C`: as multiples of what mgjit and the C written by hand need.",
        "`first step`: with tracing and compiling.",
        "",
    ]
    if picture:
        lines += [f"![µs a step, logarithmic]({picture})", ""]
    for result in results:
        lines += section(result, result.machine if not is_one else ())
    lines += python_backend(results)
    if start:
        lines += ["## Start", "", *start]
    if comparison.absent:
        lines += ["## Left out", "", *(f"- {name}: {reason}" for name, reason in comparison.absent.items()), ""]
    return "\n".join(lines).rstrip() + "\n"


def machine(comparison: Comparison) -> list[str]:
    """Processor, system, versions."""
    processor = platform.processor() or platform.machine()
    try:
        information = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        processor = next(line.partition(":")[2].strip() for line in information.splitlines() if "model name" in line)
    except (OSError, StopIteration):
        pass
    pinned = "one core" if comparison.core is not None else "not pinned to a core"
    pinned += f", `{comparison.options.cflags}`" if comparison.options.cflags else ""
    data = ["MNIST" if comparison.sources.mnist else "made-up images"]
    data.append("names from a file" if comparison.sources.names else "made-up names")
    return [
        f"{processor}, {platform.system()} {platform.machine()}, {pinned}; {', '.join(data)}",
        "; ".join(comparison.versions.values()),
    ]


def section(result: Result, named: Sequence[str] = ()) -> list[str]:
    """One workload's table, behind what is `named` of its machine."""
    workload = result.workload
    numbers = workloads.number_type(workload)
    kind = f"{numbers}, {workload.options['mode']}"
    if numbers != workload.options["dtype"]:
        kind += f" (C and peers: {workload.options['dtype']}, which this version of mgjit does not have)"
    lines = [f"## {workload.name}: {workload.title}", "", f"{kind}. Target: {workload.target}", ""]
    lines += [*(f"- {line}" for line in named), ""] if named else []
    base, by_hand = result.seconds("mgjit"), result.seconds("C by hand")
    sample = workload.samples > 1
    lines += [f"| | µs a step |{' µs a sample |' if sample else ''} / mgjit | / C | first step, s |"]
    lines += ["|---|---|---|---|---|" + ("---|" if sample else "")]
    for entry in sorted(result.entries, key=lambda entry: entry.time):
        each = entry.time * 1e6
        cells = [entry.label, number(each)]
        if sample:
            cells.append(number(each / workload.samples))
        cells += [ratio(entry.time, base), ratio(entry.time, by_hand), f"{entry.first:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *(f"- {label}: {reason}" for label, reason in sorted(result.skipped.items())), ""]
    return lines


def number(value: float) -> str:
    """About three digits."""
    return (
        f"{value:,.0f}"
        if value >= 1000
        else f"{value:.3g}"
        if value >= 100
        else f"{value:.2f}"
        if value >= 1
        else f"{value:.4f}"
    )


def ratio(value: float, base: float | None) -> str:
    """A quotient, if there is something to divide by."""
    return number(value / base) if base else ""


def python_backend(results: Sequence[Result]) -> list[str]:
    """How many times micrograd's speed the Python backend has."""
    rows = []
    for result in results:
        for prefix, name in (("", "CPython"), ("PyPy: ", "PyPy")):
            ours, theirs = (result.seconds(prefix + form) for form in ("mgjit, Python backend", "micrograd"))
            if ours and theirs:
                rows.append(f"| {result.workload.name} | {name} | {number(theirs / ours)} |")
    if not rows:
        return []
    return [
        "## The Python backend, without any C compiler",
        "",
        "| | interpreter | times micrograd |",
        "|---|---|---|",
        *rows,
        "",
    ]


def raw(comparison: Comparison, results: Sequence[Result], start: Sequence[str]) -> dict[str, Any]:
    """Everything, for programs, and for `kept`."""
    return {
        "absent": comparison.absent,
        "is_least": comparison.options.least,
        "start": list(start),
        "workloads": {
            result.workload.name: {
                "machine": result.machine,
                "seconds": {entry.label: entry.seconds for entry in result.entries},
                "first": {entry.label: entry.first for entry in result.entries},
                "skipped": result.skipped,
            }
            for result in results
        },
    }


def kept(output: Path, least: bool) -> tuple[dict[str, Result], list[str]]:
    """Results of earlier runs by workload, and their lines about starts."""
    path = output.with_suffix(".json")
    if not path.exists():
        return {}, []
    found = json.loads(path.read_text("utf-8"))
    results = {}
    for name, had in found["workloads"].items():
        result = results[name] = Result(WORKLOADS[name], skipped=had["skipped"], machine=had["machine"])
        for label, seconds in had["seconds"].items():
            summary = min if least else statistics.median
            entry = Entry(label, label, None, 1, had["first"][label], seconds=seconds, summary=summary)
            result.entries.append(entry)
    return results, found["start"]


# ---- the command -----------------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", type=Path, metavar="DIR", help="folder with MNIST IDX files; else made-up images")
    parser.add_argument("--names", type=Path, metavar="FILE", help="names, one a line; else made-up names")
    parser.add_argument("--workloads", nargs="*", choices=list(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--repeats", type=int, default=9, help="how often each is timed (default 9)")
    parser.add_argument("--cflags", metavar="FLAGS", help="further flags for what mgjit compiles and for the C by hand")
    parser.add_argument("--least", action="store_true", help="report the least times instead of medians")
    parser.add_argument("--core", type=int, help="the core to stay on; else the last one allowed")
    parser.add_argument("--environments", type=Path, metavar="DIR", help="made by --make-environments")
    parser.add_argument("--python-of", action="append", default=[], metavar="NAME=PATH", help="interpreter of one peer")
    parser.add_argument("--pypy", metavar="PATH", help="a PyPy with mgjit's requirements and micrograd")
    parser.add_argument("--no-start-up", action="store_true", help="leave out cold and warm starts")
    parser.add_argument("--keep", action="store_true", help="keep what was measured before and is not measured now")
    parser.add_argument("--output", type=Path, default=ROOT / "bench" / "RESULTS.md")
    parser.add_argument("--make-environments", type=Path, metavar="DIR", help="install the peers into DIR, and end")
    options = parser.parse_args()
    options.python_of = dict(pair.split("=", 1) for pair in options.python_of)
    unknown = set(options.python_of) - set(PEERS)
    if unknown:
        parser.error(f"--python-of knows no peer {', '.join(sorted(unknown))}")
    if "mgjit" not in options.peers:
        options.peers.insert(0, "mgjit")  # what all others are compared with
    options.peers.sort(key=list(PEERS).index)
    return options


def main() -> None:
    """Measure and write."""
    options = parse()
    if options.make_environments:
        make_environments(options.make_environments, options.peers)
        return
    os.environ.pop("MGJIT_DISABLE", None)
    if options.cflags:
        os.environ["MGJIT_CFLAGS"] = options.cflags  # `references.py` reads it, too
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        os.environ["MGJIT_CACHE_DIR"] = str(Path(place) / "cache")
        comparison = Comparison(options, Path(place))
        found, start = kept(options.output, options.least) if options.keep else ({}, [])
        try:
            comparison.start()
            for name in options.workloads:
                print(f"{name}: {WORKLOADS[name].title}", flush=True)
                found[name] = comparison.run(WORKLOADS[name])
                print("\n".join(section(found[name])[4:]), flush=True)
        finally:
            comparison.end()
        if not options.no_start_up:
            started_up = first_results.arguments([*first_results.data_of(options), "--repeat", "1"])
            start = first_results.report(started_up)[0]
    results = [found[name] for name in WORKLOADS if name in found]
    picture = plot(options.output, [(r.workload.name, {e.label: e.time * 1e6 for e in r.entries}) for r in results])
    options.output.write_text(report(comparison, results, start, picture), encoding="utf-8")
    measured = json.dumps(raw(comparison, results, start), indent=1)
    options.output.with_suffix(".json").write_text(measured, encoding="utf-8")
    print(f"{options.output}, after {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
