"""A recursive network over expressions: every sample is a tree of its own, hardly two steps are alike."""

import math
import os
import random

import mgjit

STEPS = int(os.environ.get("STEPS", "150"))
SIZE = 12
rng = random.Random(55)


class Value:
    def __init__(self, data, children=(), backs=()):
        self.data, self.grad, self.children, self.backs = data, 0.0, children, backs

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), (1.0, 1.0))

    def __sub__(self, other):
        return self + other * -1.0 if isinstance(other, Value) else self + -other

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def tanh(self):
        t = math.tanh(self.data)
        return Value(t, (self,), (1.0 - t**2,))

    def backward(self):
        topo, visited = [], set()

        def build(v):
            if v not in visited:
                visited.add(v)
                for c in v.children:
                    build(c)
                topo.append(v)

        build(self)
        self.grad = 1.0
        for v in reversed(topo):
            for c, b in zip(v.children, v.backs):
                c.grad += b * v.grad


def vector():
    return [Value(rng.gauss(0, 0.4)) for _ in range(SIZE)]


leaves = {kind: vector() for kind in "TF"}
operations = {kind: ([vector() for _ in range(SIZE)], [vector() for _ in range(SIZE)]) for kind in ("and", "or", "xor")}
readout = vector()
parameters = [p for v in leaves.values() for p in v] + readout
parameters += [p for pair in operations.values() for mat in pair for row in mat for p in row]


def encode(tree):
    if isinstance(tree, str):
        return leaves[tree]
    kind, left, right = tree
    a, b = encode(left), encode(right)
    wa, wb = operations[kind]
    encoded = []
    for ra, rb in zip(wa, wb):
        total = Value(0.0)
        for w, x in zip(ra + rb, a + b):
            total = total + w * x
        encoded.append(total.tanh())
    return encoded


@mgjit.compile
def step(tree, target, lr):
    score = Value(0.0)
    for w, x in zip(readout, encode(tree)):
        score = score + w * x
    error = score - target
    loss = error * error
    for p in parameters:
        p.grad = 0.0
    loss.backward()
    for p in parameters:
        p.data -= lr * p.grad
    return loss


def grown(depth):
    if depth == 0 or rng.random() < 0.15:
        return rng.choice("TF")
    return rng.choice(["and", "or", "xor"]), grown(depth - 1), grown(depth - 1)


def truth(tree):
    if isinstance(tree, str):
        return tree == "T"
    kind, left, right = tree
    a, b = truth(left), truth(right)
    return {"and": a and b, "or": a or b, "xor": a != b}[kind]


mean = 1.0
for k in range(STEPS):
    tree = grown(rng.choice([3, 4, 5]))
    loss = step(tree, 1.0 if truth(tree) else -1.0, 0.02)
    mean = 0.97 * mean + 0.03 * loss.data
    if k % 30 == 29 or k == STEPS - 1:
        print(k + 1, loss.data, mean)
print("checksum", sum(p.data for p in parameters))
