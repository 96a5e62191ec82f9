"""The public microgpt script, unmodified under `mgjit run`, and with a decorator around the body of its training loop.

    python bench/microgpt.py microgpt.py names.txt                    1,000 steps, CPython and PyPy beside
    python bench/microgpt.py microgpt.py names.txt --steps 50 --ways cold warm
    python bench/microgpt.py microgpt.py names.txt --limit 120 --picture bench/MICROGPT.svg

`microgpt.py` is the script as it was published, which is not part of this project.  `cold` and `warm` are `python -m
mgjit run microgpt.py`, with nothing in the disk cache and after such a run.  `decorated` and `decorated-warm` have five
lines more, which make a step of its loop:

    import mgjit
    @mgjit.compile
    def train_step(step, tokens):
        (what was the body of the loop, from `n = ...` on)
        return loss
    ... and in the loop: loss = train_step(step, tokens)

and five more for a function that samples with a compiled forward pass.  In all ways, it prints losses with all their
digits, and at its end a digest of parameters, moments and gradients; what is printed is compared.

1. Each way is a process of its own, timed from its start to its end, and whenever it prints a step.
2. A process that takes longer than `--limit` seconds is ended, and compared as far as it has come.
3. Beside the first way: the smallest ratio of steps done, at any moment from 10 seconds on.
4. With matplotlib, the steps done over time become a picture.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import threading
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.plot import curves  # noqa: E402 - found through the line above
from bench.processes import end_group, environment, folder, waited_for  # noqa: E402

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
#: The loss as it is printed, and with all its digits; and what is printed at the end.
LOSS, EXACTLY = "{loss.data:.4f}", "{loss.data!r}"
DIGEST = """
import hashlib
numbers = [*(p.data for p in params), *m, *v, *(p.grad for p in params)]
print("state", hashlib.sha256(",".join(float(x).hex() for x in numbers).encode()).hexdigest())
"""
#: Seconds after a cold run, in which is built what it has not waited for.
PAUSE = 5.0
#: What comes before the name of the script, after that of Python.
RUN = ("-m", "mgjit", "run")
WAYS: dict[str, Sequence[str]] = {
    "CPython": (), "PyPy": (), "cold": RUN, "warm": RUN, "decorated": (), "decorated-warm": (),
}  # fmt: skip


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
    source = compiled(source) if way.startswith("decorated") else source
    return source.replace(LOSS, EXACTLY) + DIGEST


@dataclass(frozen=True)
class Run:
    """What a process has done.

    Attributes:
        steps: what it has printed of each step. seconds: when, since the process was started.
        rest: what else it has printed; empty if it was ended.
        wall, processor: seconds of the whole process.
    """

    steps: list[str]
    seconds: list[float]
    rest: list[str]
    wall: float
    processor: float

    def steps_at(self, moment: float) -> int:
        """How many steps were done then."""
        return bisect_right(self.seconds, moment)

    def differs(self, other: Run) -> bool:
        """Whether something that both have printed is not the same."""
        common = min(len(self.steps), len(other.steps))
        has_ended = bool(self.rest and other.rest)
        return self.steps[:common] != other.steps[:common] or (has_ended and self.rest != other.rest)


def run(way: str, arguments: argparse.Namespace, cache: Path) -> Run:
    """One variant in its own process."""
    with folder() as place:
        (place / "microgpt.py").write_text(prepared(arguments.script, way, arguments.steps))
        shutil.copy(arguments.names, place / "input.txt")
        python = arguments.pypy if way == "PyPy" else sys.executable
        # The environment may compile modules, which is not measured.
        settings = environment(cache / way.split("-")[0] if "decorated" in way else cache, PYTHONUNBUFFERED="1")
        before, started = waited_for(), time.time()
        with open(place / "errors.txt", "w+") as errors:
            process = subprocess.Popen(
                [python, *WAYS[way], "microgpt.py"], env=settings, cwd=place, text=True, stdout=subprocess.PIPE,
                stderr=errors, start_new_session=True,
            )  # fmt: skip
            limit = threading.Timer(arguments.limit, end_group, [process])
            limit.start()
            lines = [(time.time() - started, line) for line in process.stdout or ()]
            code = process.wait()
            limit.cancel()
            if code > 0:
                errors.seek(0)
                raise SystemExit(f"{way}: {errors.read()[-3000:]}")
        wall, processor = time.time() - started, waited_for() - before
    steps = [(seconds, line) for seconds, line in lines if line.startswith("step")]
    rest = [] if code else [line for _, line in lines if not line.startswith("step")]
    return Run([line for _, line in steps], [seconds for seconds, _ in steps], rest, wall, processor)


def steady(found: Run) -> float:
    """The median time of a step of the second half, in seconds; nan if there is none."""
    times = [after - before for before, after in zip(found.seconds, found.seconds[1:])]
    return statistics.median(times[len(times) // 2 :]) if times else float("nan")


def least_ratio(found: Run, first: Run, begin: float = 10.0) -> float:
    """The smallest ratio of steps done to those of another run, at any moment from `begin` on until either ends."""
    end = min(found.seconds[-1], first.seconds[-1]) if found.seconds and first.seconds else 0.0
    moments = [begin, *(second for second in first.seconds if begin < second <= end)] if end >= begin else []
    return min((found.steps_at(moment) / max(1, first.steps_at(moment)) for moment in moments), default=float("nan"))


def described(way: str, found: Run, against: str, first: Run) -> str:
    """One line about a run."""
    end = "process" if found.rest else "ended after"
    equal = "DIFFERS" if found.differs(first) else f"equal to {against}"
    return (
        f"{way:14} {len(found.steps):5} steps, {end} {found.wall:8.2f} s, processor {found.processor:8.2f} s, "
        f"{steady(found) * 1e6:10,.1f} us a step in the second half, "
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
            time.sleep(PAUSE if way.endswith("warm") and found else 0.0)
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
