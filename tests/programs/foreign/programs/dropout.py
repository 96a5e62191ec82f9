"""Dropout, noise on the inputs and a shuffled batch, all drawn inside the step; momentum in lists."""

import math
import random
from random import random as uniform

rng = random.Random(71)


class Scalar:
    __slots__ = ("value", "grad", "parents", "factors")

    def __init__(self, value, parents=(), factors=()):
        self.value, self.grad = value, 0.0
        self.parents, self.factors = parents, factors

    def __add__(self, other):
        other = other if isinstance(other, Scalar) else Scalar(other)
        return Scalar(self.value + other.value, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        other = other if isinstance(other, Scalar) else Scalar(other)
        return Scalar(self.value * other.value, (self, other), (other.value, self.value))

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other):
        return self + other * -1.0

    def tanh(self):
        t = math.tanh(self.value)
        return Scalar(t, (self,), (1.0 - t * t,))

    def backward(self):
        order, seen = [], set()

        def visit(node):
            if id(node) not in seen:
                seen.add(id(node))
                for parent in node.parents:
                    visit(parent)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for parent, factor in zip(node.parents, node.factors):
                parent.grad += factor * node.grad


class Dropout:
    def __init__(self, keep, draw=None):
        self.keep, self.draw = keep, draw or rng.random

    def __call__(self, xs):
        mask = [self.draw() < self.keep for _ in xs]
        return [x * m * (1.0 / self.keep) for x, m in zip(xs, mask)]


class Jitter:
    """Noise on the inputs, that grows and shrinks with a number of the step."""

    def __init__(self, generator):
        self.generator = generator

    def __call__(self, xs, amount):
        return [x + self.generator.gauss(0.0, amount) for x in xs]


def make():
    random.seed(72)
    rng.seed(73)
    hidden = [[Scalar(random.gauss(0.0, 0.5)) for _ in range(4)] for _ in range(6)]
    output = [Scalar(random.gauss(0.0, 0.5)) for _ in range(6)]
    parameters = [w for row in hidden for w in row] + output
    velocity = [0.0 for _ in parameters]
    dropout, jitter = Dropout(0.6), Jitter(rng)
    data = [([random.uniform(-1, 1) for _ in range(4)], random.uniform(-1, 1)) for _ in range(5)]

    def step(lr, amount):
        order = list(range(len(data)))
        random.shuffle(order)
        batch = [data[i] for i in order[:2]]
        loss = Scalar(0.0)
        for xs, y in batch:
            h = [sum(w * x for w, x in zip(row, jitter(xs, amount))).tanh() for row in hidden]
            h = dropout(h)
            prediction = sum(w * u for w, u in zip(output, h)) + (0.01 if uniform() < 0.5 else -0.01)
            loss = loss + (prediction - y) * (prediction - y)
        loss.backward()
        for i, p in enumerate(parameters):
            velocity[i] = 0.9 * velocity[i] - lr * p.grad
            p.value += velocity[i]
            p.grad = 0.0
        return loss.value, order

    calls = [(0.05 / (k + 1), 0.1 * k) for k in range(8)]
    return step, calls, lambda: ([p.value for p in parameters], velocity, random.getstate(), rng.getstate())
