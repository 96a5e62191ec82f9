"""What a trace costs by part, in milliseconds and in interpreted steps.

    python bench/traces.py                               all
    python bench/traces.py --rounds 9 --only char_gpt tape

Each is traced again and again in one process; of every part the quickest round counts.  All times are processor time of
one thread, which shared machines disturb least; compare ratios, and runs that were made alternately.

    step        the undecorated step
    trace       one of its traces, from the survey to the finished trace, and how many steps that is
    user        the step's own code, on traced numbers: making nodes, calling methods
    arithmetic  of traced numbers: as many records as the trace has outside of backward, at the price of one, which is
                measured with additions
    backward    of an autograd class, taken symbolically: its own code, and what is made of what it does
    survey      what the step can reach, and which role each number has
    memory      putting traced numbers into the user's objects, recording what was assigned, putting all back
    rewriting   of the functions
    aftermath   the rest: other checks, finishing the trace
"""

from __future__ import annotations

import argparse
import gc
import math
import random
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgjit  # noqa: E402 - found through the line above
from bench import overhead  # noqa: E402
from bench.overhead import Clock, Made  # noqa: E402
from mgjit.tracing.autograd.symbolic import SymbolicBackward  # noqa: E402

PARTS = ("user", "arithmetic", "backward", "survey", "memory", "rewriting", "aftermath")

# ---- two more classes of other people's ---------------------------------------------------------------------------


class Closed:
    """Nodes with closures, as in micrograd."""

    def __init__(self, data: Any, parents: Any = ()) -> None:
        self.data, self.grad, self.parents = data, 0.0, set(parents)
        self.push: Callable[[], None] = lambda: None

    def __add__(self, other: Any) -> Closed:
        other = other if isinstance(other, Closed) else Closed(other)
        out = Closed(self.data + other.data, (self, other))

        def push() -> None:
            self.grad += out.grad
            other.grad += out.grad

        out.push = push
        return out

    def __mul__(self, other: Any) -> Closed:
        other = other if isinstance(other, Closed) else Closed(other)
        out = Closed(self.data * other.data, (self, other))

        def push() -> None:
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out.push = push
        return out

    __radd__, __rmul__ = __add__, __mul__

    def tanh(self) -> Closed:
        t = math.tanh(self.data)
        out = Closed(t, (self,))

        def push() -> None:
            self.grad += (1.0 - t * t) * out.grad

        out.push = push
        return out

    def backward(self) -> None:
        order: list[Closed] = []
        seen: set[Closed] = set()

        def visit(node: Closed) -> None:
            if node not in seen:
                seen.add(node)
                for parent in node.parents:
                    visit(parent)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            node.push()


class Taped:
    """Nodes on a tape, each with its parents and the derivatives by them."""

    tape: list[Taped] = []  # noqa: RUF012 - as such classes are written

    def __init__(self, data: Any, links: Any = ()) -> None:
        self.data, self.grad, self.links = data, 0.0, links
        if links:
            Taped.tape.append(self)

    def __add__(self, other: Any) -> Taped:
        if not isinstance(other, Taped):
            return Taped(self.data + other, [(self, 1.0)])
        return Taped(self.data + other.data, [(self, 1.0), (other, 1.0)])

    def __mul__(self, other: Any) -> Taped:
        if not isinstance(other, Taped):
            return Taped(self.data * other, [(self, other)])
        return Taped(self.data * other.data, [(self, other.data), (other, self.data)])

    __radd__, __rmul__ = __add__, __mul__

    def tanh(self) -> Taped:
        t = math.tanh(self.data)
        return Taped(t, [(self, 1.0 - t * t)])

    def backward(self) -> None:
        self.grad = 1.0
        for node in reversed(Taped.tape):
            for parent, factor in node.links:
                parent.grad += factor * node.grad
        Taped.tape.clear()


def of_class(kind: Any) -> Made:
    """A small network over nodes of a class, and a batch."""
    draw = random.Random(3)
    sizes = (8, 12, 12, 1)
    layers = [
        [[kind(draw.uniform(-1, 1)) for _ in range(inputs + 1)] for _ in range(outputs)]
        for inputs, outputs in zip(sizes, sizes[1:])
    ]
    parameters = [p for layer in layers for row in layer for p in row]

    def model(xs: list[Any]) -> Any:
        for number, layer in enumerate(layers):
            xs = [sum((w * x for w, x in zip(row, xs)), row[-1]) for row in layer]
            xs = xs if number == len(layers) - 1 else [x.tanh() for x in xs]
        return xs[0]

    def step(rows: list[list[float]], targets: list[float], lr: float) -> float:
        total = kind(0.0)
        for row, target in zip(rows, targets):
            error = model(row) + -target
            total = total + error * error
        for p in parameters:
            p.grad = 0.0
        total.backward()
        for p in parameters:
            p.data -= lr * p.grad
        return total.data  # type: ignore[no-any-return]

    def arguments() -> tuple[Any, ...]:
        rows = [[draw.uniform(-1, 1) for _ in range(sizes[0])] for _ in range(12)]
        return rows, [draw.uniform(-1, 1) for _ in rows], 0.01

    return step, arguments(), arguments()


OWN: dict[str, Any] = {"closures": Closed, "tape": Taped}
NAMES = ("W3", "W6", "char_gpt", *OWN, "char_gru", "char_rnn", "sine")


def made(name: str) -> Made:
    """The step of that name, and arguments."""
    if name in OWN:
        return of_class(OWN[name])
    return overhead.of_workload(name) if name in overhead.workloads.WORKLOADS else overhead.of_script(name)


# ---- the parts ------------------------------------------------------------------------------------------------------


def price_of_a_record() -> float:
    """The seconds that an addition of traced numbers takes: a long step and an empty one, without those of the loop."""

    def seconds(function: Any) -> float:
        step: Any = mgjit.compile(function, background=False)
        found: list[float] = []
        for _ in range(5):
            clock = Clock()
            with clock.watching():
                overhead._trace(step, (0.5, 0.25))
            found.append(clock.seconds["run"])
        return min(found)

    return max(seconds(_additions) - seconds(_none), 0.0) / _ADDITIONS


_ADDITIONS = 20_000


def _additions(x: Any, y: Any) -> Any:
    for _ in range(_ADDITIONS):
        x = x + y
    return x


def _none(x: Any, y: Any) -> Any:
    z = y
    for _ in range(_ADDITIONS):
        z = x
    return z


def measured(name: str, rounds: int) -> dict[str, float]:
    """The least time of each part."""
    function, _, arguments = made(name)
    step: Any = mgjit.compile(function, background=False)
    overhead._trace(step, arguments)
    least: dict[str, float] = {}

    def note(part: str, seconds: float) -> None:
        least[part] = min(seconds, least.get(part, seconds))

    in_backward: list[int] = []
    record = SymbolicBackward.record
    for number in range(rounds):
        gc.collect()
        note("trace", overhead._trace(step, arguments)[0])
        clock = Clock()
        with clock.watching():
            whole, records = overhead._trace(step, arguments)
        if not number:

            def counted(self: Any, flow: Any, first: int) -> None:
                record(self, flow, first)
                in_backward.append(len(self._recorder.op) - first)

            with overhead.mock.patch.object(SymbolicBackward, "record", counted):
                overhead._trace(step, arguments)
        seconds = clock.seconds
        for part in ("survey", "memory", "rewriting", "backward"):
            note(part, seconds[part])
        note("run", seconds["run"])
        note("aftermath", whole - sum(seconds[part] for part in ("run", "survey", "memory", "rewriting")))
        started = process_time()
        function(*arguments)
        note("step", process_time() - started)
    least["arithmetic"] = price_of_a_record() * (records - sum(in_backward))
    least["user"] = max(least["run"] - least["backward"] - least["arithmetic"], 0.0)
    return {**least, "records": records}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="how often each is traced")
    parser.add_argument("--only", nargs="+", default=NAMES, metavar="NAME", help=f"of {', '.join(NAMES)}, or a script")
    options = parser.parse_args()
    print("| step | records | step ms | trace ms | trace / step |", " | ".join(PARTS), "|")
    print("|---|" + "---:|" * (4 + len(PARTS)))
    for name in options.only:
        found = measured(name, options.rounds)
        parts = " | ".join(f"{1e3 * found[part]:.1f}" for part in PARTS)
        times = f"{1e3 * found['step']:.1f} | {1e3 * found['trace']:.1f} | {found['trace'] / found['step']:.1f}"
        print(f"| {name} | {found['records']:,.0f} | {times} | {parts} |", flush=True)


if __name__ == "__main__":
    main()
