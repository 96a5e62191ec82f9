"""Reverse mode autodiff with a global tape, fitting a small MLP to y = sin(x)."""
import math
import random


class Tape:
    nodes = []

    @classmethod
    def clear(cls):
        cls.nodes = []


class Var:
    __slots__ = ("v", "g", "parents")

    def __init__(self, v, parents=()):
        self.v = v
        self.g = 0.0
        self.parents = parents
        Tape.nodes.append(self)

    def __add__(self, o):
        return Var(self.v + o.v, ((self, 1.0), (o, 1.0)))

    def __mul__(self, o):
        return Var(self.v * o.v, ((self, o.v), (o, self.v)))

    def tanh(self):
        t = math.tanh(self.v)
        return Var(t, ((self, 1 - t * t),))


class Parameter:
    def __init__(self, v):
        self.v = v


def backprop(out):
    out.g = 1.0
    for node in reversed(Tape.nodes):
        for parent, local in node.parents:
            parent.g += node.g * local


random.seed(10)
H = 8
p = [Parameter(random.gauss(0, 0.8)) for _ in range(3 * H + 1)]


def model(params, x):
    out = params[3 * H]
    for i in range(H):
        out = out + params[2 * H + i] * (params[i] * x + params[H + i]).tanh()
    return out


xs = [i / 10 for i in range(-30, 31, 5)]
for step in range(9000):
    Tape.clear()
    params = [Var(q.v) for q in p]
    loss = Var(0.0)
    for x in xs:
        d = model(params, Var(x)) + Var(-math.sin(x))
        loss = loss + d * d
    backprop(loss)
    for q, var in zip(p, params):
        q.v -= 0.01 * var.g / len(xs)
    if step % 1000 == 0:
        print("step", step, "loss", "%.6f" % (loss.v / len(xs)))
