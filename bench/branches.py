"""Steps that branch on their numbers: share of calls that are compiled, and speed over plain Python.

    python bench/branches.py            all of them, as a table
    python bench/branches.py --calls 200

Each of the 60 runs 1,000 calls in which both ways are taken, beside its undecorated self; all that it returns and keeps
is compared bit for bit after each call.  Then both are timed alternately, and the median of their ratios is shown, with
the median of all steps at the end.  From `line_search` on they ask for numbers on their way, so that each call takes
one path of several; what others do is in branching.py.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mgjit
from bench.branching import MORE
from mgjit.runtime import vectorcall

#: Rounds of timed calls, and calls in each.
ROUNDS, CALLS = 15, 40
#: Weights of the model, and inputs of a call.
SIZE = 128


class Parameter:
    def __init__(self, data: float) -> None:
        self.data, self.grad, self.m = data, 0.0, 0.0


class Model:
    """A linear model, and what training keeps around it."""

    def __init__(self) -> None:
        draw = random.Random(1)
        self.parameters = [Parameter(draw.uniform(-0.5, 0.5)) for _ in range(SIZE)]
        self.rows = [[draw.uniform(-1.0, 1.0) for _ in range(16)] for _ in range(4)]
        self.best, self.worse, self.skipped, self.rate, self.scale = 9.0, 0, 0, 0.1, 8.0
        self.table, self.counts = {"sum": 0.0, "n": 0}, [0] * 4
        self.value, self.state = mgjit.Value(0.5), mgjit.State([0.0, 0.0])

    def gradients(self, xs: list[float]) -> float:
        error = sum(p.data * x for p, x in zip(self.parameters, xs)) - xs[0]
        for p, x in zip(self.parameters, xs):
            p.grad = error * x * 0.1
        return error * error

    def update(self) -> None:
        for p in self.parameters:
            p.data -= self.rate * p.grad

    def seen(self) -> str:
        numbers = [(p.data, p.grad, p.m) for p in self.parameters]
        kept = self.best, self.worse, self.skipped, self.rate, self.scale, self.table, self.counts
        return repr((numbers, self.rows, kept, self.value.data, self.value.grad, *self.state))


def clip_by_norm(model: Model, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    norm = math.sqrt(sum(p.grad * p.grad for p in model.parameters))
    if norm > 1.0:
        for p in model.parameters:
            p.grad *= 1.0 / norm
    model.update()
    return loss


def clip_each(model: Model, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    for p in model.parameters:
        if p.grad > 0.2:
            p.grad = 0.2
        elif p.grad < -0.2:
            p.grad = -0.2
    model.update()
    return loss


def skip_update(model: Model, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    if loss < 1.0:
        model.update()
    else:
        model.skipped += 1
    return loss


def two_rates(model: Model, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    if loss > 0.5:
        for p in model.parameters:
            p.data -= 0.01 * p.grad
    else:
        for p in model.parameters:
            p.data -= 0.1 * p.grad
    return loss


def best_so_far(model: Model, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    model.update()
    if loss < model.best:
        model.best = loss
        model.worse = 0
    else:
        model.worse += 1
    return model.best


def keep_best_weights(model: Model, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    model.update()
    if loss < model.best:
        model.best = loss
        for p in model.parameters:
            p.m = p.data
    return loss


def decay_on_plateau(model: Model, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    model.update()
    if loss < model.best:
        model.best, model.worse = loss, 0
        return loss
    model.worse += 1
    if model.worse > 5:
        model.rate *= 0.9
        model.worse = 0
    return loss


def loss_scaling(model: Model, xs: list[float]) -> Any:
    loss = model.gradients(xs) * model.scale
    if loss > 4.0:
        model.scale *= 0.5
        return loss
    for p in model.parameters:
        p.data -= model.rate * p.grad / (model.scale + 0.1)
    model.scale = model.scale * 1.01
    return loss


def sign_momentum(model: Model, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    for p in model.parameters:
        if p.grad * p.m < 0.0:
            p.m = 0.0
            continue
        p.m = 0.9 * p.m + p.grad
        p.data -= 0.01 * p.m
    return loss


def resilient(model: Model, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    for p in model.parameters:
        if p.grad > 0.0:
            p.data -= 0.01
        elif p.grad < 0.0:
            p.data += 0.01
        p.m = p.grad
    return loss


def perceptron(model: Model, xs: list[float]) -> Any:
    score = sum(p.data * x for p, x in zip(model.parameters, xs))
    label = 1 if xs[0] > 0.0 else -1
    if score * label <= 0.0:
        for p, x in zip(model.parameters, xs):
            p.data += label * x
        model.skipped += 1
    return score


def hinge(model: Model, xs: list[float]) -> Any:
    margin = xs[1] * sum(p.data * x for p, x in zip(model.parameters, xs))
    if margin < 1.0:
        for p, x in zip(model.parameters, xs):
            p.data = p.data * 0.99 + 0.1 * xs[1] * x
    else:
        for p in model.parameters:
            p.data *= 0.99
    return margin


def huber(model: Model, xs: list[float]) -> Any:
    error = sum(p.data * x for p, x in zip(model.parameters, xs)) - xs[0]
    if abs(error) > 0.5:
        slope = 0.5 if error > 0.0 else -0.5
        model.skipped += 1
    else:
        slope = error
    for p, x in zip(model.parameters, xs):
        p.data -= 0.1 * slope * x
    return slope


def shrink(model: Model, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    model.update()
    for p in model.parameters:
        if p.data > 0.01:
            p.data -= 0.01
        elif p.data < -0.01:
            p.data += 0.01
        else:
            p.data = 0.0
    return loss


def winner(model: Model, xs: list[float]) -> Any:
    best, where = 9e9, 0
    for k, row in enumerate(model.rows):
        distance = sum((a - b) ** 2 for a, b in zip(row, xs))
        if distance < best:
            best, where = distance, k
    for k, row in enumerate(model.rows):
        if k == where:
            model.counts[k] += 1
            for i in range(len(row)):
                row[i] += 0.1 * (xs[i] - row[i])
    return where


def statistics_of_outliers(model: Model, xs: list[float]) -> Any:
    for x in xs:
        if abs(x) > 0.8:
            continue
        model.table["sum"] += x
        model.table["n"] += 1
    return model.table["sum"]


def bandit(model: Model, xs: list[float]) -> Any:
    arm = 0 if model.rows[0][0] > model.rows[1][0] else 1
    reward = xs[0] if arm == 0 else xs[1]
    if arm == 0:
        model.counts[0] += 1
        model.rows[0][0] += (reward - model.rows[0][0]) / model.counts[0]
    else:
        model.counts[1] += 1
        model.rows[1][0] += (reward - model.rows[1][0]) / model.counts[1]
    return arm


def q_learning(model: Model, xs: list[float]) -> Any:
    q = model.rows[0]
    target = xs[0] + 0.9 * max(q[0], q[1])
    if xs[1] > 0.0:
        q[2] += 0.1 * (target - q[2])
        if q[2] > 1.0:
            q[2] = 1.0
    else:
        q[3] += 0.1 * (target - q[3])
    return target


def annealed_walk(model: Model, xs: list[float]) -> Any:
    found = model.rows[0][0] + 0.1 * xs[0]
    gain = (model.rows[0][0] - 0.3) ** 2 - (found - 0.3) ** 2
    if gain > 0.0 or xs[1] < math.exp(gain / model.scale) - 1.0:
        model.rows[0][0] = found
        model.skipped += 1
    model.scale *= 0.999
    return gain


def engine_clip(model: Model, xs: list[float]) -> Any:
    value = model.value
    loss = (value * xs[0] - xs[1]) ** 2
    value.grad = 0.0
    loss.backward()
    if value.grad > 0.5:
        value.grad = 0.5
    if loss.data < 1.0:
        value.data -= 0.1 * value.grad
        model.state[0] = 0.9 * model.state[0] + value.grad
    else:
        model.state[1] += 1.0
    return loss.data


def leaky_neuron(model: Model, xs: list[float]) -> Any:
    spikes = 0
    for k, x in enumerate(xs[:16]):
        model.rows[0][k] = 0.9 * model.rows[0][k] + x
        if model.rows[0][k] > 1.0:
            model.rows[0][k] = 0.0
            spikes += 1
    return spikes


def gated(model: Model, xs: list[float]) -> Any:
    total = sum(xs)
    if total > 0.0:
        if xs[0] > 0.0:
            model.table["sum"] = total
        else:
            model.table["sum"] *= 0.5
    elif xs[1] > 0.0:
        model.best = min(model.best, total)
    return model.table["sum"]


# ---- steps that ask for numbers on their way: each call takes one path of several ------------------------------


def line_search(model: Model, xs: list[float]) -> Any:
    loss, rate = model.gradients(xs), 1.0
    while rate > 1e-3:
        moved = sum((p.data - rate * p.grad) * x for p, x in zip(model.parameters, xs)) - xs[0]
        if moved * moved < loss:
            break
        rate *= 0.5
    for p in model.parameters:
        p.data -= rate * p.grad
    return loss, rate


def until_it_fits(model: Model, xs: list[float]) -> Any:
    steps = 0
    while model.gradients(xs) > 1.0 and steps < 5:
        model.update()
        steps += 1
    return steps


def sampled_action(model: Model, xs: list[float]) -> Any:
    scores = [sum(p.data * x for p, x in zip(model.parameters[32 * k : 32 * k + 32], xs)) for k in range(4)]
    top = max(scores)
    weights = [math.exp(s - top) for s in scores]
    u, action = random.random() * sum(weights), 3
    for k, weight in enumerate(weights):
        u -= weight
        if u < 0.0:
            action = k
            break
    for p, x in zip(model.parameters[32 * action : 32 * action + 32], xs):
        p.data += 0.01 * xs[0] * x
    return action


def greedy_action(model: Model, xs: list[float]) -> Any:
    scores = [sum(p.data * x for p, x in zip(model.parameters[32 * k : 32 * k + 32], xs)) for k in range(4)]
    action = max(range(4), key=lambda k: scores[k])
    model.counts[action] += 1
    for p, x in zip(model.parameters[32 * action : 32 * action + 32], xs):
        p.data += 0.01 * (xs[1] - scores[action]) * x
    return action


def epsilon_greedy(model: Model, xs: list[float]) -> Any:
    scores = [sum(p.data * x for p, x in zip(model.parameters[32 * k : 32 * k + 32], xs)) for k in range(4)]
    if random.random() < 0.1:
        action = random.randrange(4)
    else:
        action = scores.index(max(scores))
    for p, x in zip(model.parameters[32 * action : 32 * action + 32], xs):
        p.data += 0.01 * (xs[1] - scores[action]) * x
    return action


def nearest_centre(model: Model, xs: list[float]) -> Any:
    distances = [sum((w - x) ** 2 for w, x in zip(row, xs)) for row in model.rows]
    nearest = sorted(range(4), key=lambda k: distances[k])[0]
    row = model.rows[nearest]
    for k in range(16):
        row[k] += 0.05 * (xs[k] - row[k])
    return nearest, distances[nearest]


def label_in_row(model: Model, xs: list[float]) -> Any:
    label = int(abs(xs[0]) * 4.0) % 4
    scores = [sum(w * x for w, x in zip(row, xs)) for row in model.rows]
    total = sum(math.exp(s) for s in scores)
    for k, row in enumerate(model.rows):
        error = math.exp(scores[k]) / total - (k == label)
        for j in range(16):
            row[j] -= 0.1 * error * xs[j]
    return -math.log(math.exp(scores[label]) / total)


def early_return(model: Model, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    for p in model.parameters[:8]:
        if abs(p.grad) > 0.3:
            return "too steep", loss
    model.update()
    return "moved", loss


def tree_walk(model: Model, xs: list[float]) -> Any:
    node = 0
    for depth in range(3):
        score = sum(w * x for w, x in zip(model.rows[depth], xs))
        node = 2 * node + 1 if score < 0.0 else 2 * node + 2
    error = model.parameters[node].data - xs[0]
    model.parameters[node].data -= 0.1 * error
    return node, error


def handled(model: Model, xs: list[float]) -> Any:
    loss = model.gradients(xs)
    try:
        if loss > 4.0:
            raise OverflowError("the loss is too large")
        model.update()
    except OverflowError:
        for p in model.parameters:
            p.data *= 0.9
    return loss


STEPS: list[Callable[[Model, list[float]], Any]] = [
    clip_by_norm, clip_each, skip_update, two_rates, best_so_far, keep_best_weights, decay_on_plateau, loss_scaling,
    sign_momentum, resilient, perceptron, hinge, huber, shrink, winner, statistics_of_outliers, bandit, q_learning,
    annealed_walk, engine_clip, leaky_neuron, gated, line_search, until_it_fits, sampled_action, greedy_action,
    epsilon_greedy, nearest_centre, label_in_row, early_return, tree_walk, handled, *MORE,
]  # fmt: skip


def measured(function: Callable[[Model, list[float]], Any], calls: int, options: Any) -> tuple[str, float]:
    """One row of the table, and the speed-up."""
    draw = random.Random(2)
    rows = [[draw.uniform(-1.0, 1.0) for _ in range(SIZE)] for _ in range(calls)]
    mine, theirs = Model(), Model()

    def plain(xs: list[float]) -> Any:
        return function(theirs, xs)

    def made(xs: list[float]) -> Any:
        return function(mine, xs)

    step = mgjit.compile(made, background=False, verify="never", **options)
    equal = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for xs in rows:
            state = random.getstate()
            found, after = step(xs), random.getstate()
            random.setstate(state)
            equal = repr(found) == repr(plain(xs)) and mine.seen() == theirs.seen() and equal
            equal = equal and random.getstate() == after
        share = 100.0 * step.stats.calls / (step.stats.calls + step.stats.plain_calls + step.stats.waiting_calls)
        ratios, times = [], []
        for k in range(ROUNDS):
            some = rows[k % 5 :: 7][:CALLS]
            seconds = [sum(timed(one, xs) for xs in some) / len(some) for one in (plain, step)]
            ratios.append(seconds[0] / seconds[1])
            times.append(seconds)
    median = [statistics.median(column) * 1e6 for column in zip(*times)]
    speedup = statistics.median(ratios)
    row = f"| {function.__name__} | {'yes' if equal else 'NO'} | {share:.0f} % | {median[0]:.1f} | {median[1]:.2f} "
    return f"{row}| {speedup:.1f} x |", speedup


def timed(call: Callable[[list[float]], Any], xs: list[float]) -> float:
    started = perf_counter()
    call(xs)
    return perf_counter() - started


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000, help="compared calls of each step")
    parser.add_argument("--compiler", help="as of mgjit.compile")
    parser.add_argument("--only", default="", help="the steps whose names contain this")
    parser.add_argument("--backend", default="auto", help="as of mgjit.compile")
    given = parser.parse_args()
    vectorcall.extension.obtain()  # as after many calls
    print("| step | equal | compiled | plain us | mgjit us | speed-up |\n|---|---|---:|---:|---:|---:|")
    speedups = []
    for each in STEPS:
        if given.only not in each.__name__:
            continue
        row, speedup = measured(each, given.calls, {"backend": given.backend, "compiler": given.compiler})
        print(row, flush=True)
        speedups.append(speedup)
    slower = sum(speedup < 0.95 for speedup in speedups)
    print(f"{len(speedups)} steps, median {statistics.median(speedups):.1f} x, {slower} below 0.95")
