"""Mixture of experts: a soft gate, and the better of the first two experts for each sample (top-1)."""

import functools
import math
import random


class N:
    """A number with a gradient; operators come from one table."""

    def __init__(self, v, deps=()):
        self.v = v
        self.g = 0.0
        self.deps = deps  # pairs of (operand, partial derivative)

    def exp(self):
        e = math.exp(self.v)
        return N(e, ((self, e),))

    def relu(self):
        positive = self.v > 0.0
        return N(self.v if positive else 0.0, ((self, 1.0 if positive else 0.0),))


def number(x):
    return x if isinstance(x, N) else N(x)


OPERATORS = {
    "__add__": lambda a, b: N(a.v + b.v, ((a, 1.0), (b, 1.0))),
    "__sub__": lambda a, b: N(a.v - b.v, ((a, 1.0), (b, -1.0))),
    "__mul__": lambda a, b: N(a.v * b.v, ((a, b.v), (b, a.v))),
    "__truediv__": lambda a, b: N(a.v / b.v, ((a, 1.0 / b.v), (b, -a.v / (b.v * b.v)))),
}
for name, operator in OPERATORS.items():
    setattr(N, name, lambda self, other, operator=operator: operator(self, number(other)))
    setattr(N, name.replace("__", "__r", 1), lambda self, other, operator=operator: operator(number(other), self))


def gradients(output):
    ordered, done = [], set()

    def visit(node):
        if id(node) in done:
            return
        done.add(id(node))
        for operand, _ in node.deps:
            visit(operand)
        ordered.append(node)

    visit(output)
    output.g = 1.0
    for node in reversed(ordered):
        for operand, partial in node.deps:
            operand.g += partial * node.g


def dense(weights, x):
    return [functools.reduce(lambda total, pair: total + pair[0] * pair[1], zip(row, x), row[-1]) for row in weights]


def softmax(xs):
    top = max(x.v for x in xs)
    exps = [(x - top).exp() for x in xs]
    total = functools.reduce(lambda a, b: a + b, exps)
    return [e / total for e in exps]


def expert(weights, x):
    return dense(weights["out"], [h.relu() for h in dense(weights["in"], x)])[0]


def train(model, learning_rate, x, y):
    gates = softmax(dense(model["gate"], x))
    outputs = [expert(weights, x) for weights in model["experts"]]
    soft = functools.reduce(lambda a, b: a + b, [g * o for g, o in zip(gates, outputs)])
    first_wins = gates[0].v > gates[1].v
    top = outputs[0].v if first_wins else outputs[1].v
    loss = (soft - y) * (soft - y)
    gradients(loss)
    for p in model["all"]:
        p.g, p.v = 0.0, p.v - learning_rate * p.g
    model["steps"] += 1
    model["usage"][0] += 1.0 if first_wins else 0.0
    model["usage"][1] += 0.0 if first_wins else 1.0
    return {"loss": loss.v, "top": top, "gates": [g.v for g in gates]}


def make():
    rng = random.Random(13)

    def matrix(rows, columns):
        return [[N(rng.uniform(-0.8, 0.8)) for _ in range(columns + 1)] for _ in range(rows)]

    model = {"gate": matrix(3, 2), "experts": [{"in": matrix(4, 2), "out": matrix(1, 4)} for _ in range(3)]}
    matrices = [model["gate"], *(m for weights in model["experts"] for m in weights.values())]
    model["all"] = [p for m in matrices for row in m for p in row]
    model["steps"] = 0
    model["usage"] = [0.0, 0.0]
    calls = [([rng.uniform(-1, 1), rng.uniform(-1, 1)], rng.uniform(-1, 1)) for _ in range(6)]
    step = functools.partial(train, model, 0.05)
    return step, calls, lambda: ([(p.v, p.g) for p in model["all"]], model["steps"], model["usage"])
