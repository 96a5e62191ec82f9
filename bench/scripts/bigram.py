"""makemore's neural bigram: one matrix of logits, batches of letter pairs, all names judged in between."""

import math
import os
import random

import mgjit

STEPS = int(os.environ.get("STEPS", "120"))
BATCH = 8
rng = random.Random(2147483647)
names = ["".join(rng.choice("aeiou" if k % 2 else "lmnrstvz") for k in range(rng.randint(3, 7))) for _ in range(200)]
chars = [".", *sorted(set("".join(names)))]
index = {c: i for i, c in enumerate(chars)}
pairs = [(index[a], index[b]) for name in names for a, b in zip("." + name, name + ".")]


class Value:
    """micrograd's Value with its operands in a tuple."""

    def __init__(self, data, _children=(), _op=""):
        self.data = data
        self.grad = 0
        self._backward = lambda: None
        self._prev = tuple(_children)
        self._op = _op

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def __pow__(self, other):
        out = Value(self.data**other, (self,), f"**{other}")

        def _backward():
            self.grad += (other * self.data ** (other - 1)) * out.grad

        out._backward = _backward
        return out

    def exp(self):
        out = Value(math.exp(self.data), (self,), "exp")

        def _backward():
            self.grad += out.data * out.grad

        out._backward = _backward
        return out

    def log(self):
        out = Value(math.log(self.data), (self,), "log")

        def _backward():
            self.grad += (1 / self.data) * out.grad

        out._backward = _backward
        return out

    def backward(self):
        topo = []
        visited = set()

        def build_topo(v):
            if v not in visited:
                visited.add(v)
                for child in v._prev:
                    build_topo(child)
                topo.append(v)

        build_topo(self)
        self.grad = 1
        for v in reversed(topo):
            v._backward()

    def __neg__(self):
        return self * -1

    def __radd__(self, other):
        return self + other

    def __sub__(self, other):
        return self + (-other)

    def __rmul__(self, other):
        return self * other

    def __truediv__(self, other):
        return self * other**-1


W = [[Value(rng.gauss(0, 1)) for _ in chars] for _ in chars]


def one_hot(i):
    return [1.0 if i == k else 0.0 for k in range(len(chars))]


@mgjit.compile
def step(xs, ys, lr):
    losses = []
    for x, y in zip(xs, ys):
        logits = [sum(w[j] * xi for w, xi in zip(W, x)) for j in range(len(chars))]
        counts = [logit.exp() for logit in logits]
        probability = sum(c * yi for c, yi in zip(counts, y)) / sum(counts)
        losses.append(-probability.log())
    regularisation = 0.01 * sum(w**2 for row in W for w in row) / len(W) ** 2
    loss = sum(losses) / len(losses) + regularisation
    for row in W:
        for w in row:
            w.grad = 0
    loss.backward()
    for row in W:
        for w in row:
            w.data -= lr * w.grad
    return loss


def likelihood():
    """The mean negative log likelihood of all pairs, in plain floats."""
    total = 0.0
    for row, counts in zip(W, [[sum(1 for p in pairs if p == (i, j)) for j in range(len(W))] for i in range(len(W))]):
        normaliser = math.log(sum(math.exp(w.data) for w in row))
        total += sum(n * (normaliser - w.data) for n, w in zip(counts, row))
    return total / len(pairs)


for k in range(STEPS):
    batch = [pairs[rng.randrange(len(pairs))] for _ in range(BATCH)]
    loss = step([one_hot(a) for a, _ in batch], [one_hot(b) for _, b in batch], 10.0)
    if k % 40 == 39 or k == STEPS - 1:
        print(f"{k=} {loss.data=!r} {likelihood()=!r}")
for _ in range(5):
    i, out = 0, ""
    while len(out) < 10:
        i = rng.choices(range(len(chars)), weights=[math.exp(w.data) for w in W[i]])[0]
        if i == 0:
            break
        out += chars[i]
    print(out)
