"""Workloads of other shapes than a perceptron: time, windows, tables, batches, irregular graphs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import mgjit
from mgjit import nn
from tests.workload import CALLS, Instance, descend, numbers, points, reset, values, workload


@workload("prediction without backward")
def prediction() -> Instance:
    model = nn.MLP(4, [9, 3], seed=14)
    draw = random.Random(53)

    def step(x: Any) -> Any:
        scores = model(x)
        best = scores[0]
        for s in scores[1:]:
            best = mgjit.maximum(best, s)
        return scores, best, mgjit.where(scores[0] > scores[1], 1.0, -1.0)

    return Instance(step, [(numbers(draw, 4),) for _ in range(CALLS)], model.parameters())


@workload("recurrent, 10 time steps, tanh")
def recurrent() -> Instance:
    draw = random.Random(59)
    n = 6
    into, bias, out = values(draw, n), values(draw, n, 0.1), values(draw, n)
    back = [values(draw, n, 0.5) for _ in range(n)]
    parameters = [*into, *bias, *out, *(w for row in back for w in row)]

    def step(xs: Any, target: Any, lr: Any) -> Any:
        h: list[Any] = [0.0] * n
        for x in xs:
            h = [mgjit.tanh(into[i] * x + sum(w * v for w, v in zip(back[i], h)) + bias[i]) for i in range(n)]
        loss = (sum(w * v for w, v in zip(out, h)) - target) ** 2
        reset(parameters)
        loss.backward()
        descend(parameters, lr)
        return loss, h

    calls = [(numbers(draw, 10), draw.random(), 0.1) for _ in range(CALLS)]
    return Instance(step, calls, parameters)


@workload("1-D convolution, shared weights")
def convolution() -> Instance:
    draw = random.Random(61)
    filters = [values(draw, 5, 0.5) for _ in range(3)]
    biases = values(draw, 3, 0.1)
    dense = [values(draw, 16, 0.3) for _ in range(3)]
    parameters = [w for row in [*filters, biases, *dense] for w in row]

    def step(signal: Any, target: Any, lr: Any) -> Any:
        maps = [
            [
                (sum(w * signal[i + k] for k, w in enumerate(kernel)) + bias).relu()
                for i in range(len(signal) - len(kernel) + 1)
            ]
            for kernel, bias in zip(filters, biases)
        ]
        score = sum(w * v for weights, row in zip(dense, maps) for w, v in zip(weights, row))
        loss = (score - target) ** 2
        reset(parameters)
        loss.backward()
        descend(parameters, lr)
        return loss

    return Instance(step, [(numbers(draw, 20), draw.random(), 0.01) for _ in range(CALLS)], parameters)


@workload("embedding look-up by run-time ids")
def embedding() -> Instance:
    draw = random.Random(67)
    table = [values(draw, 4) for _ in range(11)]
    out = nn.Layer(4, 11, nonlin=False)
    parameters = [w for row in table for w in row] + out.parameters()

    def step(tokens: Any, following: Any, lr: Any) -> Any:
        loss: Any = 0.0
        for token, target in zip(tokens, following):
            scores = out([mgjit.tanh(v) for v in mgjit.take(table, token)])
            exps = [mgjit.exp(s) for s in scores]
            loss = loss - mgjit.log(sum(y * e for y, e in zip(mgjit.one_hot(target, 11), exps)) / sum(exps))
        loss = loss / len(tokens)
        reset(parameters)
        loss.backward()
        descend(parameters, lr)
        return loss

    calls = []
    for _ in range(CALLS):
        ids = [draw.randrange(11) for _ in range(6)]
        calls.append((ids[:-1], ids[1:], 0.2))
    return Instance(step, calls, parameters)


@workload("batch norm")
def batch_norm() -> Instance:
    draw = random.Random(71)
    first = nn.Layer(3, 4, nonlin=False)
    gamma, beta = [mgjit.Value(1.0) for _ in range(4)], [mgjit.Value(0.0) for _ in range(4)]
    last = nn.Neuron(4, nonlin=False)
    parameters = [*first.parameters(), *gamma, *beta, *last.parameters()]
    running = mgjit.zeros(8)

    def step(xs: Any, ys: Any, lr: Any) -> Any:
        rows = [first(x) for x in xs]
        columns = []
        for j in range(4):
            column = [row[j] for row in rows]
            mean = sum(column) / len(column)
            variance = sum((c - mean) ** 2 for c in column) / len(column)
            running[j] = 0.9 * running[j] + 0.1 * mean.data
            running[4 + j] = 0.9 * running[4 + j] + 0.1 * variance.data
            scale = (variance + 1e-5) ** -0.5
            columns.append([gamma[j] * ((c - mean) * scale) + beta[j] for c in column])
        loss = sum((last([c[i].relu() for c in columns]) - y) ** 2 for i, y in enumerate(ys)) / len(ys)
        reset(parameters)
        loss.backward()
        descend(parameters, lr)
        return loss

    calls = [(*points(draw, 8, 3), 0.05) for _ in range(CALLS)]
    return Instance(step, calls, parameters, [running])


@workload("causal attention over a short sequence")
def attention() -> Instance:
    draw = random.Random(73)
    n = 4
    query, key, value = ([values(draw, n, 0.7) for _ in range(n)] for _ in range(3))
    out = values(draw, n)
    parameters = [*(w for matrix in (query, key, value) for row in matrix for w in row), *out]

    def times(matrix: Any, vector: Any) -> Any:
        return [mgjit.dot(row, vector) for row in matrix]

    def step(xs: Any, ys: Any, lr: Any) -> Any:
        keys, contents = [], []
        loss: Any = 0.0
        for x, y in zip(xs, ys):
            keys.append(times(key, x))
            contents.append(times(value, x))
            q = times(query, x)
            scores = [mgjit.dot(q, k) / n**0.5 for k in keys]
            top = scores[0].data
            for s in scores[1:]:
                top = mgjit.maximum(top, s.data)
            exps = [mgjit.exp(s - top) for s in scores]
            total = sum(exps)
            mixed = [sum(e / total * c[j] for e, c in zip(exps, contents)) for j in range(n)]
            loss = loss + (mgjit.dot(out, mixed) - y) ** 2
        reset(parameters)
        loss.backward()
        descend(parameters, lr)
        return loss

    calls = [([numbers(draw, n) for _ in range(6)], numbers(draw, 6), 0.05) for _ in range(CALLS)]
    return Instance(step, calls, parameters)


#: name: (function, whether it takes a second operand)
OPERATIONS: dict[str, tuple[Callable[..., Any], bool]] = {
    "add": (lambda a, b: a + b, True),
    "subtract": (lambda a, b: a - b, True),
    "multiply": (lambda a, b: a * b, True),
    "divide": (lambda a, b: a / (b * b + 0.5), True),
    "constant first": (lambda a: 0.75 - a, False),
    "square": (lambda a: a**2, False),
    "tanh": (mgjit.tanh, False),
    "relu": (mgjit.relu, False),
    "exp": (lambda a: mgjit.exp(mgjit.minimum(a, 1.0)), False),
    "log": (lambda a: mgjit.log(abs(a) + 0.1), False),
    "sqrt": (lambda a: mgjit.sqrt(a * a + 0.01), False),
    "absolute": (abs, False),
    "negate": (lambda a: -a, False),
    "maximum": (mgjit.maximum, True),
    "minimum": (mgjit.minimum, True),
    "where": (lambda a, b: mgjit.where(a < b, a * 0.5, b), True),
}


@workload("irregular graph of 800 operations")
def irregular() -> Instance:
    draw = random.Random(79)
    parameters = values(draw, 30)
    inputs = 10
    plan: list[tuple[Callable[..., Any], list[int]]] = []
    known = [p.data for p in parameters] + [0.5] * inputs
    while len(plan) < 800:
        name = draw.choice(list(OPERATIONS))
        function, binary = OPERATIONS[name]
        # Half of the operands are recent, so that the graph is deep as well as wide.
        ids = [
            draw.randrange(len(known)) if draw.random() < 0.5 else draw.randrange(len(known) - 30, len(known))
            for _ in range(1 + binary)
        ]
        result = function(*(known[i] for i in ids))
        if abs(result) > 4.0:
            name, ids = "tanh", ids[:1]
            result = math.tanh(known[ids[0]])
        known.append(result)
        plan.append((OPERATIONS[name][0], ids))

    def step(xs: Any, lr: Any) -> Any:
        nodes = [*parameters, *xs]
        for function, ids in plan:
            nodes.append(function(*[nodes[i] for i in ids]))
        loss = sum(mgjit.tanh(node) for node in nodes[-100:])
        reset(parameters)
        loss.backward()
        descend(parameters, lr)
        return loss, nodes[-1]

    return Instance(step, [(numbers(draw, inputs), 1e-3) for _ in range(CALLS)], parameters)


@workload("infinite and nan inputs")
def not_finite() -> Instance:
    model = nn.MLP(3, [4, 2], seed=15)
    odd = [0.5, -1e308, 1e308, 5e-324, -0.0, 1e200, math.inf, -math.inf, math.nan]

    def step(x: Any, lr: Any) -> Any:
        scores = model(x)
        loss = sum(mgjit.log(abs(s)) + mgjit.exp(s * 1e-3) + mgjit.tanh(s) for s in scores)
        loss = loss + sum(mgjit.sqrt(s) + 1 / s for s in scores)
        model.zero_grad()
        loss.backward()
        grads = [p.grad for p in model.parameters()]
        for p in model.parameters():
            p.data -= lr * mgjit.where(abs(p.grad) < 1e3, p.grad, 0.0)
        return loss, grads, [s.relu() for s in scores], mgjit.maximum(*scores), mgjit.minimum(*scores)

    calls = [([odd[k % 9], odd[(k // 2) % 9], 0.25], 1e-3) for k in range(CALLS)]
    return Instance(step, calls, model.parameters(), one_pass=False)
