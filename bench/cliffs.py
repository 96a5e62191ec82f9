"""Programs for which a step would be compiled again and again, or in vain: what they cost, beside undecorated ones.

    python bench/cliffs.py                     a table; on Linux pinned to one processor
    python bench/cliffs.py --only history      the rows whose names begin so
    python bench/cliffs.py --seconds 5         plain Python runs for so long in each row

The undecorated program runs for as long as asked for, and the decorated one makes the same calls, or as many as it can
in five times the time.  `first` is the ratio of their processor times a call over the first tenth of the calls, `rest`
that over the others; the last column says where `rest` is above 1.1 and 0.3 us a call.  What other processes do (they
compile) is not counted.  Each program has code of its own (afresh.py).
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mgjit
from bench.afresh import afresh

Decorator = Callable[[Any], Any]
#: Makes the calls of a program, one at each `next`.
Program = Callable[[Decorator], Iterator[Any]]


class Weight:
    """A parameter."""

    def __init__(self, data: float) -> None:
        self.data = data


class Model:
    """Some parameters."""

    def __init__(self, size: int = 40) -> None:
        self.weights = [Weight(0.1 * k) for k in range(size)]

    def error(self, x: Any) -> Any:
        """Of one row."""
        total = 0.1
        for w in self.weights:
            total = total + w.data * x
        return total


def train(model: Any, x: Any) -> Any:
    """One step of any model."""
    error = model.error(x)
    for w in model.weights:
        w.data -= 0.001 * error * x
    return error


def _inputs() -> Iterator[float]:
    while True:
        yield from (0.1 * k for k in range(10))


def replaced(each: int) -> Program:
    """One parameter is another object after so many calls."""

    def run(decorate: Decorator) -> Iterator[Any]:
        model = Model()
        step = decorate(lambda x: train(model, x))
        for k, x in enumerate(_inputs(), 1):
            yield step(x)
            if k % each == 0:
                model.weights[k // each % 4] = Weight(0.1)

    return run


def models(count: int) -> Program:
    """So many models take turns."""

    def run(decorate: Decorator) -> Iterator[Any]:
        known, step = [Model(40 + k % 2) for k in range(count)], decorate(train)
        for k, x in enumerate(_inputs()):
            yield step(known[k % count], x)

    return run


def lengths(count: int) -> Program:
    """Lists of so many lengths take turns."""

    def run(decorate: Decorator) -> Iterator[Any]:
        model, rows = Model(), [[0.1] * (3 + k) for k in range(count)]
        step = decorate(lambda xs: [train(model, x) for x in xs][-1])
        for k, _ in enumerate(_inputs()):
            yield step(rows[k % count])

    return run


def history(decorate: Decorator) -> Iterator[Any]:
    """A list grows that the step reads the length of."""
    model, losses = Model(), [0.0]
    step = decorate(lambda x: train(model, x / len(losses)))
    for x in _inputs():
        losses.append(step(x))
        yield losses[-1]


def rotated(decorate: Decorator) -> Iterator[Any]:
    """A deque is rotated."""
    model, rates = Model(), collections.deque([0.1, 0.2, 0.3])
    step = decorate(lambda x: train(model, x * rates[0]))
    for x in _inputs():
        yield step(x)
        rates.rotate(1)


def ordered(decorate: Decorator) -> Iterator[Any]:
    """Parameters are in another order each time."""
    model = Model()
    step = decorate(lambda x: train(model, x))
    for k, x in enumerate(_inputs()):
        yield step(x)
        model.weights.sort(key=lambda w: w.data, reverse=bool(k % 2))


def counted(decorate: Decorator) -> Iterator[Any]:
    """An argument is a Counter."""
    model = Model()
    step = decorate(lambda counts, x: train(model, x * counts["a"]))
    for k, x in enumerate(_inputs()):
        yield step(collections.Counter(a=k % 7, b=1), x)


def texts(decorate: Decorator) -> Iterator[Any]:
    """An argument is another text each time."""
    model = Model()
    step = decorate(lambda line, x: train(model, x * len(line)))
    for k, x in enumerate(_inputs()):
        yield step(f"line {k}", x)


def made_again(calls: int) -> Program:
    """A step is decorated again after so many calls."""

    def run(decorate: Decorator) -> Iterator[Any]:
        inputs = _inputs()
        while True:
            model = Model()

            def step(x: Any, model: Any = model) -> Any:
                return train(model, x)

            call = decorate(step)
            for _ in range(calls):
                yield call(next(inputs))

    return run


def objects(calls: int) -> Program:
    """A method of objects that live for so many calls."""

    def run(decorate: Decorator) -> Iterator[Any]:
        inputs = _inputs()

        class Own(Model):
            @decorate
            def step(self, x: Any) -> Any:
                return train(self, x)

        while True:
            model: Any = Own()
            for _ in range(calls):
                yield model.step(next(inputs))

    return run


def picked(decorate: Decorator) -> Iterator[Any]:
    """An argument is a list of thousands of numbers, of which two are used."""
    data, w = [0.001 * k for k in range(5000)], [0.1, 0.2]

    def step(data: Any, x: Any) -> Any:
        error = w[0] * data[3] + w[1] * x - data[4]
        w[0] -= 0.01 * error * data[3]
        w[1] -= 0.01 * error * x
        return error

    call = decorate(step)
    for x in _inputs():
        yield call(data, x)


def row_of_table(decorate: Decorator) -> Iterator[Any]:
    """A row of an argument is chosen by a number."""
    rows, w = [[0.001 * k, 0.002 * k] for k in range(2000)], [0.1, 0.2]

    def step(rows: Any, number: Any) -> Any:
        x, y = rows[number]
        error = w[0] * x + w[1] - y
        w[0] -= 0.0001 * error * x
        w[1] -= 0.0001 * error
        return error

    call = decorate(step)
    for k, _ in enumerate(_inputs()):
        yield call(rows, k % 2000)


def many_results(decorate: Decorator) -> Iterator[Any]:
    """A call returns hundreds of numbers, of which it has changed one."""
    w = [0.1] * 300

    def step(x: Any) -> Any:
        w[0] += 0.001 * x
        return list(w)

    call = decorate(step)
    for x in _inputs():
        yield call(x)


def q_learning(decorate: Decorator) -> Iterator[Any]:
    """One entry of a table is changed."""
    q = [[0.0] * 4 for _ in range(500)]

    def step(state: Any, action: Any, reward: Any, following: Any) -> Any:
        q[state][action] += 0.1 * (reward + 0.9 * max(q[following]) - q[state][action])

    call = decorate(step)
    for k, x in enumerate(_inputs()):
        yield call(k % 500, k % 4, x, (7 * k + 1) % 500)


def dicts(decorate: Decorator) -> Iterator[Any]:
    """Rows and weights are dicts."""
    w, rows = {"a": 0.1, "b": 0.2, "bias": 0.0}, [{"a": 0.1 * k, "b": 0.2, "y": 0.3} for k in range(10)]

    def step(row: Any) -> Any:
        error = w["a"] * row["a"] + w["b"] * row["b"] + w["bias"] - row["y"]
        for name in ("a", "b"):
            w[name] -= 0.01 * error * row[name]
        w["bias"] -= 0.01 * error
        return {"loss": error * error, "error": error}

    call = decorate(step)
    for k, _ in enumerate(_inputs()):
        yield call(rows[k % 10])


#: Calls between two looks at the clock; the decorated program has so many times the time of the plain one.
_AT_ONCE, _MOST = 50, 5.0
PROGRAMS: dict[str, Program] = {
    "replaced at each call": replaced(1), "replaced after 100 calls": replaced(100),
    "replaced after 5,000 calls": replaced(5000), "models in turn, 2": models(2), "models in turn, 5": models(5),
    "lengths in turn, 2": lengths(2), "history grows": history, "deque rotates": rotated,
    "order of parameters": ordered, "Counter": counted, "texts": texts, "made again after 5 calls": made_again(5),
    "made again after 300 calls": made_again(300), "objects of 1 call": objects(1), "objects of 30 calls": objects(30),
    "two of 5,000 numbers": picked, "a row of 2,000": row_of_table, "300 results": many_results,
    "Q-learning": q_learning, "rows are dicts": dicts,
}  # fmt: skip


def calls_in(program: Iterator[Any], seconds: float, most: int) -> tuple[int, float]:
    """How many calls are made in some processor time, and at most; and how long they took."""
    calls, taken, started = 0, 0.0, process_time()
    while calls < most and taken < seconds:
        for _ in range(_AT_ONCE):
            next(program)
        calls, taken = calls + _AT_ONCE, process_time() - started
    return calls, taken


def measured(name: str, options: dict[str, Any], wanted: float) -> tuple[float, float, float, int]:
    """Microseconds of a plain call; ratios of the first tenth of the calls and of the others; how many there were."""
    plain = afresh(__file__).PROGRAMS[name](lambda function: function)
    decorated = afresh(__file__).PROGRAMS[name](mgjit.compile(**options))
    calls_in(plain, 0.01 * wanted, sys.maxsize)  # until its code is specialised
    ratios: list[float] = []
    counts: list[int] = []
    for part in (0.1 * wanted, 0.9 * wanted):
        plain_calls, plain_seconds = calls_in(plain, part, sys.maxsize)
        calls, seconds = calls_in(decorated, _MOST * part, plain_calls)
        each = plain_seconds / plain_calls
        ratios.append(seconds / calls / each)
        counts.append(calls)
    return each * 1e6, *ratios, sum(counts)  # type: ignore[return-value]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose names begin so")
    parser.add_argument("--seconds", type=float, default=1.0, help="of plain Python, in each row")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print("| program | background | plain us | first | rest | calls | |")
    print("|---|---|---:|---:|---:|---:|---|")
    for name in PROGRAMS:
        for background in (True, False):
            if name.startswith(chosen.only):
                each, first, rest, calls = measured(name, {"background": background}, chosen.seconds)
                told = "above" if rest * each > 1.1 * each + 0.3 else ""
                row = f"| {name} | {background} | {each:.2f} | {first:.2f} | {rest:.2f} | {calls} | {told} |"
                print(row, flush=True)


if __name__ == "__main__":
    main()
