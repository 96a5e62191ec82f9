"""An engine whose scalars keep their history as an operation with inputs, and a network with a numerical flavour."""
import math
import random


class Function:
    def __init__(self, *inputs):
        self.inputs = inputs


class Add(Function):
    def forward(self):
        return self.inputs[0].data + self.inputs[1].data

    def backward(self, g):
        return g, g


class Mul(Function):
    def forward(self):
        return self.inputs[0].data * self.inputs[1].data

    def backward(self, g):
        return g * self.inputs[1].data, g * self.inputs[0].data


class Sigmoid(Function):
    def forward(self):
        self.out = 1.0 / (1.0 + math.exp(-self.inputs[0].data))
        return self.out

    def backward(self, g):
        return (g * self.out * (1.0 - self.out),)


class Scalar:
    def __init__(self, data, history=None):
        self.data = data
        self.derivative = 0.0
        self.history = history

    def __add__(self, b):
        return apply(Add, self, b)

    def __mul__(self, b):
        return apply(Mul, self, b)

    def sigmoid(self):
        return apply(Sigmoid, self)

    def backward(self):
        order, seen = [], set()

        def visit(s):
            if id(s) in seen:
                return
            seen.add(id(s))
            if s.history is not None:
                for i in s.history.inputs:
                    visit(i)
            order.append(s)

        visit(self)
        grads = {id(self): 1.0}
        for s in reversed(order):
            g = grads.get(id(s), 0.0)
            if s.history is None:
                s.derivative += g
                continue
            for i, d in zip(s.history.inputs, s.history.backward(g)):
                grads[id(i)] = grads.get(id(i), 0.0) + d


def apply(fn, *inputs):
    inputs = [i if isinstance(i, Scalar) else Scalar(i) for i in inputs]
    f = fn(*inputs)
    return Scalar(f.forward(), f)


random.seed(2)
H = 6
hidden = [([Scalar(random.uniform(-1, 1)), Scalar(random.uniform(-1, 1))], Scalar(0.0)) for _ in range(H)]
out = ([Scalar(random.uniform(-1, 1)) for _ in range(H)], Scalar(0.0))
params = [w for ws, b in hidden for w in ws + [b]] + out[0] + [out[1]]
data = [((random.random(), random.random()),) for _ in range(30)]
data = [(x, 1.0 if x[0] + x[1] > 1 else 0.0) for (x,) in data]
for epoch in range(1200):
    total = 0.0
    for x, y in data:
        hs = []
        for ws, b in hidden:
            hs.append((ws[0] * x[0] + ws[1] * x[1] + b).sigmoid())
        s = out[1]
        for w, h in zip(out[0], hs):
            s = s + w * h
        p = s.sigmoid()
        diff = p + (-y)
        loss = diff * diff
        for q in params:
            q.derivative = 0.0
        loss.backward()
        for q in params:
            q.data -= 0.5 * q.derivative
        total += loss.data
    if epoch % 200 == 0:
        print("Epoch", epoch, "loss", total)
