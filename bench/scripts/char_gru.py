"""A GRU that reads a text in windows of six letters; its state is carried from window to window as plain numbers."""

import math
import os

import mgjit

STEPS = int(os.environ.get("STEPS", "120"))
TEXT = "the quick brown fox jumps over the lazy dog while the slow green turtle sleeps under the old tree "
SIZE, WINDOW = 6, 6
chars = sorted(set(TEXT))


class Var:
    """A value on a tape: every operation is appended to it, and backward() walks it from the end."""

    tape = []  # noqa: RUF012 - as such classes are written

    def __init__(self, value, parents=()):
        self.value = value
        self.grad = 0.0
        self.parents = parents
        if parents:
            Var.tape.append(self)

    def __add__(self, other):
        if not isinstance(other, Var):
            return Var(self.value + other, ((self, 1.0),))
        return Var(self.value + other.value, ((self, 1.0), (other, 1.0)))

    def __sub__(self, other):
        if not isinstance(other, Var):
            return Var(self.value - other, ((self, 1.0),))
        return Var(self.value - other.value, ((self, 1.0), (other, -1.0)))

    def __rsub__(self, other):
        return Var(other - self.value, ((self, -1.0),))

    def __mul__(self, other):
        if not isinstance(other, Var):
            return Var(self.value * other, ((self, other),))
        return Var(self.value * other.value, ((self, other.value), (other, self.value)))

    __radd__, __rmul__ = __add__, __mul__

    def sigmoid(self):
        s = 1.0 / (1.0 + math.exp(-self.value))
        return Var(s, ((self, s * (1.0 - s)),))

    def tanh(self):
        t = math.tanh(self.value)
        return Var(t, ((self, 1.0 - t * t),))

    def exp(self):
        e = math.exp(self.value)
        return Var(e, ((self, e),))

    def log(self):
        return Var(math.log(self.value), ((self, 1.0 / self.value),))

    def backward(self):
        self.grad = 1.0
        for node in reversed(Var.tape):
            for parent, factor in node.parents:
                parent.grad += factor * node.grad
        Var.tape.clear()


class Noise:
    """A linear congruential generator: the same numbers everywhere."""

    def __init__(self):
        self.state = 12345

    def __call__(self):
        self.state = (1103515245 * self.state + 12345) % 2**31
        return self.state / 2**30 - 1.0


noise = Noise()


def weights(rows, columns):
    return [[Var(0.4 * noise()) for _ in range(columns)] for _ in range(rows)]


class GRU:
    def __init__(self, inputs, size):
        self.gates = {name: (weights(size, inputs), weights(size, size)) for name in ("z", "r", "n")}

    def __call__(self, x, h):
        def mixed(name, h):
            w, u = self.gates[name]
            return [
                sum((wi * xi for wi, xi in zip(wr, x)), Var(0.0)) + sum((ui * hi for ui, hi in zip(ur, h)), Var(0.0))
                for wr, ur in zip(w, u)
            ]

        z = [a.sigmoid() for a in mixed("z", h)]
        r = [a.sigmoid() for a in mixed("r", h)]
        n = [a.tanh() for a in mixed("n", [ri * hi for ri, hi in zip(r, h)])]
        return [zi * hi + (1.0 - zi) * ni for zi, hi, ni in zip(z, h, n)]

    def parameters(self):
        return [p for pair in self.gates.values() for mat in pair for row in mat for p in row]


cell = GRU(len(chars), SIZE)
readout = weights(len(chars), SIZE)
params = cell.parameters() + [p for row in readout for p in row]


@mgjit.compile
def window_step(inputs, targets, state, lr):
    h = [Var(s) for s in state]
    loss = Var(0.0)
    for x, target in zip(inputs, targets):
        h = cell(x, h)
        logits = [sum((w * hi for w, hi in zip(row, h)), Var(0.0)) for row in readout]
        picked = sum((logit * t for logit, t in zip(logits, target)), Var(0.0))
        loss = loss + sum((logit.exp() for logit in logits), Var(0.0)).log() - picked
    for p in params:
        p.grad = 0.0
    loss.backward()
    for p in params:
        p.value -= lr * p.grad
    return loss.value / len(inputs), [hi.value for hi in h]


def one_hot(c):
    return [float(c == other) for other in chars]


state = [0.0] * SIZE
mean = 0.0
for k in range(STEPS):
    begin = k * WINDOW % (len(TEXT) - WINDOW)
    if begin < WINDOW:
        state = [0.0] * SIZE
    piece = TEXT[begin : begin + WINDOW + 1]
    loss, state = window_step([one_hot(c) for c in piece[:-1]], [one_hot(c) for c in piece[1:]], state, 0.05)
    mean = 0.95 * mean + 0.05 * loss
    if k % 30 == 29 or k == STEPS - 1:
        print("window", k + 1, "loss", repr(loss), "mean", repr(mean))
print("state", state)
print("checksum", sum(p.value for p in params))
