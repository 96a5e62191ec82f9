"""The public microgpt script, unmodified except for a decorator around the body of its training loop.

    python bench/microgpt.py microgpt.py names.txt                    1,000 steps, CPython and PyPy beside
    python bench/microgpt.py microgpt.py names.txt --steps 50 --ways cold warm
    python bench/microgpt.py microgpt.py names.txt --limit 120 --picture bench/MICROGPT.svg

`microgpt.py` is the script as it was published, which is not part of this project.  Five lines make a step of its loop:

    import mgjit
    @mgjit.compile
    def train_step(step, tokens):
        (what was the body of the loop, from `n = ...` on)
        return loss
    ... and in the loop: loss = train_step(step, tokens)

and five more a function that samples with a compiled forward pass.  Losses, parameters, moments and sampled names are
compared bit for bit with those of the undecorated script.

1. Each way is a process of its own, timed from its start to its end, and after each step.
2. A process that takes longer than `--limit` seconds is ended, and compared as far as it has come.
3. Beside the first way: the smallest ratio of steps done, at any moment from 10 seconds on.
4. With matplotlib, the steps done over time become a picture.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.plot import curves  # noqa: E402 - found through the line above
from bench.processes import environment, folder, timed  # noqa: E402

LOOP = "for step in range(num_steps):\n"
BODY, SHOWN = "    n = min(block_size", '    print(f"step'
SAMPLING = "temperature = 0.5"
CALL = (
    "        logits = gpt(token_id, pos_id, keys, values)\n        probs = softmax([l / temperature for l in logits])\n"
)
STEP = "import mgjit\n@mgjit.compile\ndef train_step(step, tokens):\n{body}    return loss\n"
FORWARD = """@mgjit.compile
def probabilities(tokens):
    keys, values = [[] for _ in range(n_layer)], [[] for _ in range(n_layer)]
    for pos_id, token_id in enumerate(tokens): logits = gpt(token_id, pos_id, keys, values)
    return softmax([l / temperature for l in logits])
"""
#: What tells the numbers of a run, in every variant.
NOTE = "    _note(loss.data, globals())\n"
#: Seconds after the cold run, in which is built what it has not waited for.
PAUSE = 5.0
WAYS = {"CPython": "plain", "PyPy": "plain", "cold": "compiled", "warm": "compiled"}


def compiled(source: str) -> str:
    """The script with a compiled step and a compiled forward pass."""
    before, loop, after = source.partition(LOOP)
    start, end = after.index(BODY), after.index(SHOWN)
    body = after[start:end]
    source = (
        before + STEP.format(body=body) + loop + after[:start] + "    loss = train_step(step, tokens)\n" + after[end:]
    )
    sampling = source.index("\n", source.index(SAMPLING)) + 1
    source = source[:sampling] + FORWARD + source[sampling:]
    shown = "tokens = [BOS] + [uchars.index(ch) for ch in sample]"
    return source.replace(CALL, f"        {shown}\n        probs = probabilities(tokens)\n")


def prepared(script: Path, way: str, steps: int) -> str:
    """The text of a variant that tells its numbers."""
    source = script.read_text().replace("num_steps = 1000", f"num_steps = {steps}")
    source = compiled(source) if way == "compiled" else source
    lines = source.splitlines(keepends=True)
    return "".join(NOTE if line.startswith(SHOWN) else line for line in lines)


#: Runs a variant; writes a line after each step (loss, seconds since the start of the process, traces), one at the end.
CHILD = """
import hashlib, json, sys, time
path, target, started = sys.argv[1], sys.argv[2], float(sys.argv[3])
told = open(target, "w", buffering=1)
def _note(loss, names):
    step = names.get("train_step")
    traces = step.stats.traces if step is not None else 0
    told.write(json.dumps([loss.hex(), time.time() - started, traces]) + "\\n")
names = {"_note": _note, "__name__": "__main__"}
sys.setrecursionlimit(100000)
text = open(path).read()
exec(compile(text, path, "exec"), names)
state = [p.data for p in names["params"]] + list(names["m"]) + list(names["v"]) + [p.grad for p in names["params"]]
told.write(json.dumps(hashlib.sha256(",".join(float(x).hex() for x in state).encode()).hexdigest()) + "\\n")
"""


@dataclass(frozen=True)
class Run:
    """What a process has done.

    Attributes:
        losses, seconds, traces: after each step: the loss, the time since the process was started, what was traced.
        state: a digest of parameters, moments and gradients. sampled: the names. Both are empty if it was ended.
        wall, processor: seconds of the whole process.
    """

    losses: list[str]
    seconds: list[float]
    traces: list[int]
    state: str
    sampled: str
    wall: float
    processor: float

    def steps_at(self, moment: float) -> int:
        """How many steps were done then."""
        return bisect_right(self.seconds, moment)

    def differs(self, other: Run) -> bool:
        """Whether a number is another one, of those that both have come to."""
        common = min(len(self.losses), len(other.losses))
        ended = not (self.state and other.state)
        same_end = ended or (self.state, self.sampled) == (other.state, other.sampled)
        return self.losses[:common] != other.losses[:common] or not same_end


def run(way: str, arguments: argparse.Namespace, cache: Path) -> Run:
    """One variant in its own process."""
    with folder() as place:
        script, child, target = (place / name for name in ("microgpt.py", "child.py", "told.txt"))
        script.write_text(prepared(arguments.script, WAYS[way], arguments.steps))
        child.write_text(CHILD)
        shutil.copy(arguments.names, place / "input.txt")
        python = arguments.pypy if way == "PyPy" else sys.executable
        settings = environment(cache)  # may compile modules, which is not measured
        command = [python, str(child), str(script), str(target), str(time.time())]
        done = timed(command, settings, arguments.limit, place)
        if done.code:
            raise SystemExit(f"{way}: {done.err[-3000:]}")
        lines = [json.loads(line) for line in target.read_text().splitlines(keepends=True) if line.endswith("\n")]
    state = lines.pop() if done.code == 0 else ""
    sampled = done.out[done.out.index("--- inference") :] if done.code == 0 else ""
    losses, seconds, traces = ([line[column] for line in lines] for column in range(3))
    return Run(losses, seconds, traces, state, sampled, done.wall, done.processor)


def steady(found: Run) -> float:
    """The median time of a step that was not traced, in seconds; nan if there is none."""
    ends, traces = [0.0, *found.seconds], [0, *found.traces]
    pairs = zip(zip(ends, ends[1:]), zip(traces, traces[1:]))
    times = [after - before for (before, after), (traced, now) in pairs if traced == now]
    return statistics.median(times) if times else float("nan")


def least_ratio(found: Run, first: Run, begin: float = 10.0) -> float:
    """The smallest ratio of steps done to those of another run, at any moment from `begin` on until either ends."""
    end = min(found.seconds[-1], first.seconds[-1]) if found.seconds and first.seconds else 0.0
    moments = [begin, *(second for second in first.seconds if begin < second <= end)] if end >= begin else []
    return min((found.steps_at(moment) / max(1, first.steps_at(moment)) for moment in moments), default=float("nan"))


def described(way: str, found: Run, against: str, first: Run) -> str:
    """One line about a run."""
    done = len(found.losses)
    end = "process" if found.state else "ended after"
    equal = "DIFFERS" if found.differs(first) else f"equal to {against}"
    return (
        f"{way:8} {done:5} steps, {end} {found.wall:8.2f} s, processor {found.processor:8.2f} s, "
        f"{steady(found) * 1e6:10,.1f} us a step once traced ({max(found.traces, default=0)} traces), "
        f"from 10 s on at least {least_ratio(found, first):5.2f} x the steps of {against}, {equal}"
    )


def main(words: Sequence[str] | None = None) -> int:
    """Run all ways, print a line for each, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", type=Path, help="the published microgpt.py")
    parser.add_argument("names", type=Path, help="a text file with a name a line")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--pypy", default=shutil.which("pypy3"), help="a PyPy to compare with")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--limit", type=float, default=3600.0, metavar="S", help="seconds that a process may take")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="where to draw steps over time, such as x.svg")
    arguments = parser.parse_args(words)
    if arguments.pypy is None:
        arguments.ways = [way for way in arguments.ways if way != "PyPy"]
    found: dict[str, Run] = {}
    with folder() as cache:
        for way in arguments.ways:
            time.sleep(PAUSE if way == "warm" and "cold" in found else 0.0)
            found[way] = run(way, arguments, cache)
            against = arguments.ways[0]
            print(described(way, found[way], against, found[against]), flush=True)
    if arguments.picture:
        lines = {way: [(0.0, 0), *zip(each.seconds, range(1, len(each.seconds) + 1))] for way, each in found.items()}
        print(
            curves(arguments.picture, lines, ("seconds since the process was started", "steps done")) or "no matplotlib"
        )
    strict = [way for way in found if way != "PyPy"]  # PyPy computes x ** 2 as x * x
    return 1 if any(found[way].differs(found[strict[0]]) for way in strict) else 0


if __name__ == "__main__":
    sys.exit(main())
