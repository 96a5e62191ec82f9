"""Names of random lengths: batches of four in one step, and an epoch of them in `.loop`.

    python bench/ragged.py batches --number 300   a GRU language model over a class of its own, four names a step
    python bench/ragged.py epochs --number 1000   a recurrent network over mgjit.Value, one name a step

`batches` runs as many steps in plain Python and compiled, each in a process of its own, and prints the seconds of
both, those that processors were busy with them, how many steps were compiled and how many traces there were, and
whether the losses are the same bits.  `epochs` prints microseconds of a step, once all lengths have kernels: in
separate calls, and in one loop; the least of several rounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgjit  # noqa: E402 - found through the line above

LETTERS, ROUNDS = 27, 7


class Node:
    """A number in an autograd graph, as in the published microgpt."""

    __slots__ = ("children", "data", "grad", "local_grads")

    def __init__(self, data: float, children: tuple[Node, ...] = (), local_grads: tuple[float, ...] = ()) -> None:
        self.data, self.grad, self.children, self.local_grads = data, 0.0, children, local_grads

    def __add__(self, other: Any) -> Node:
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data + other.data, (self, other), (1, 1))

    def __mul__(self, other: Any) -> Node:
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data * other.data, (self, other), (other.data, self.data))

    def __pow__(self, power: float) -> Node:
        return Node(self.data**power, (self,), (power * self.data ** (power - 1),))

    def exp(self) -> Node:
        return Node(math.exp(self.data), (self,), (math.exp(self.data),))

    def log(self) -> Node:
        return Node(math.log(self.data), (self,), (1 / self.data,))

    def tanh(self) -> Node:
        t = math.tanh(self.data)
        return Node(t, (self,), (1 - t * t,))

    def __radd__(self, other: Any) -> Node:
        return self + other

    def __rmul__(self, other: Any) -> Node:
        return self * other

    def __neg__(self) -> Node:
        return self * -1

    def __sub__(self, other: Any) -> Node:
        return self + (-other)

    def __rsub__(self, other: Any) -> Node:
        return other + (-self)

    def __truediv__(self, other: Any) -> Node:
        return self * other**-1

    def __rtruediv__(self, other: Any) -> Node:
        return other * self**-1

    def backward(self) -> None:
        order: list[Node] = []
        visited = set()

        def visit(node: Node) -> None:
            if node not in visited:
                visited.add(node)
                for child in node.children:
                    visit(child)
                order.append(node)

        visit(self)
        self.grad = 1
        for node in reversed(order):
            for child, local_grad in zip(node.children, node.local_grads):
                child.grad += local_grad * node.grad


def gru_step(width: int) -> Callable[[list[list[int]], float], float]:
    """A step of gradient descent over the names of a batch, each a list of letters."""
    draw = random.Random(1)

    def matrix(rows: int, columns: int) -> list[list[Node]]:
        return [[Node(draw.gauss(0.0, 0.3)) for _ in range(columns)] for _ in range(rows)]

    table, out = matrix(LETTERS, width), matrix(LETTERS, width)
    update, reset, candidate = (matrix(width, 2 * width) for _ in range(3))
    parameters = [p for rows in (table, update, reset, candidate, out) for row in rows for p in row]

    def linear(x: list[Any], w: list[list[Node]]) -> list[Any]:
        return [sum(wi * xi for wi, xi in zip(row, x)) for row in w]

    def sigmoid(x: Any) -> Any:
        return 1.0 / (1.0 + (-x).exp())

    def cell(x: list[Node], h: list[Any]) -> list[Any]:
        z = [sigmoid(v) for v in linear(x + h, update)]
        r = [sigmoid(v) for v in linear(x + h, reset)]
        n = [v.tanh() for v in linear(x + [a * b for a, b in zip(r, h)], candidate)]
        return [a * b + (1.0 - a) * c for a, b, c in zip(z, h, n)]

    def loss_of(name: list[int]) -> Any:
        h: list[Any] = [Node(0.0) for _ in range(width)]
        losses = []
        for letter, following in zip(name, name[1:]):
            h = cell(table[letter], h)
            exps = [v.exp() for v in linear(h, out)]
            total = sum(exps)
            probabilities = [e / total for e in exps]
            losses.append(-probabilities[following].log())
        return sum(losses) * (1.0 / len(losses))

    def step(batch: list[list[int]], rate: float) -> float:
        loss = sum(loss_of(name) for name in batch) * (1.0 / len(batch))
        loss.backward()
        for p in parameters:
            p.data -= rate * p.grad
            p.grad = 0.0
        return loss.data  # type: ignore[no-any-return]

    return step


def names(number: int, seed: int) -> list[list[int]]:
    """Random ones of three to fourteen letters, with 0 at both ends."""
    draw = random.Random(seed)
    lengths = [min(14, max(3, round(draw.gauss(6.0, 2.0)))) for _ in range(number)]
    return [[0, *(draw.randrange(1, LETTERS) for _ in range(length)), 0] for length in lengths]


def batches(number: int, width: int, is_plain: bool) -> dict[str, Any]:
    """The losses of so many batches, and what they cost."""
    sys.setrecursionlimit(100_000)
    step: Any = gru_step(width)
    if not is_plain:
        step = mgjit.compile(step)
    ragged = names(4 * number, 3)
    started = time.perf_counter()
    losses = [step(ragged[4 * k : 4 * k + 4], 0.1).hex() for k in range(number)]
    seconds, busy = time.perf_counter() - started, os.times()
    found = {"losses": losses, "seconds": seconds, "busy": busy.user + busy.system}
    if not is_plain:
        stats = step.stats
        units = [one for both in stats.units.values() for one in both]
        found.update(traces=stats.traces, calls=stats.calls, plain=stats.waiting_calls + stats.plain_calls)
        found.update(unit_traces=sum(one.traces for one in units), unit_calls=[one.calls for one in units])
    return found


def epochs(number: int) -> None:
    """Print how long a step takes in separate calls and in a loop."""
    draw = random.Random(2)
    w = [mgjit.Value(draw.uniform(-0.5, 0.5)) for _ in range(30)]

    @mgjit.compile(background=False, verify="never")
    def step(xs: list[float], rate: float) -> Any:
        h = [w[27] * 1.0, w[28] * 1.0, w[29] * 1.0]
        for x in xs:
            h = [(w[j] * x + sum(w[3 + 3 * j + k] * h[k] for k in range(3))).tanh() for j in range(3)]
        loss = (h[0] - h[1] * h[2]) ** 2
        loss.backward()
        for p in w:
            p.data -= rate * p.grad
            p.grad = 0.0
        return loss

    rows = [[letter / LETTERS for letter in name] for name in names(number, 5)]
    for row in rows:
        step(row, 0.01)
    calls = loop = math.inf
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for row in rows:
            step(row, 0.01)
        between = time.perf_counter()
        step.loop(rows, 0.01)
        calls, loop = min(calls, between - started), min(loop, time.perf_counter() - between)
    each = 1e6 / number
    print(
        f"{number} names of {step.stats.traces} lengths: {calls * each:.1f} us a call, {loop * each:.1f} us in a loop"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("batches", "epochs"))
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--width", type=int, default=4, help="of the hidden state of the GRU")
    parser.add_argument("--way", choices=("plain", "compiled"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.what == "epochs":
        epochs(options.number)
        return
    if options.way:
        print(json.dumps(batches(options.number, options.width, options.way == "plain")))
        return
    found = {}
    for way in ("plain", "compiled"):
        command = [sys.executable, __file__, "batches", "--way", way]
        command += ["--number", str(options.number), "--width", str(options.width)]
        found[way] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    plain, compiled = found["plain"], found["compiled"]
    for way, one in found.items():
        print(f"{way:8}: {one['seconds']:6.1f} s, processor {one['busy']:6.1f} s")
    print(
        f"{compiled['calls']} compiled steps, {compiled['plain']} plain ones, {compiled['traces']} traces; "
        f"{compiled['unit_calls']} calls of what is compiled by itself, {compiled['unit_traces']} traces; "
        f"losses are {'the same' if plain['losses'] == compiled['losses'] else 'NOT THE SAME'}"
    )


if __name__ == "__main__":
    main()
