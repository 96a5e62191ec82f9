"""Gated recurrent layers in classes that keep their state."""

import random
import sys

from engine import Value, flat, linear, matrix

random.seed(6)
STEPS, WIDTH = int(sys.argv[1]), 6


class Layer:
    def __init__(self):
        self.z, self.r, self.n = (matrix(random, WIDTH, 2 * WIDTH) for _ in range(3))
        self.state = []

    def reset(self):
        self.state = [Value(0.0) for _ in range(WIDTH)]

    def __call__(self, x):
        both = x + self.state
        z = [v.sigmoid() for v in linear(both, self.z)]
        r = [v.sigmoid() for v in linear(both, self.r)]
        n = [v.tanh() for v in linear(x + [a * b for a, b in zip(r, self.state)], self.n)]
        self.state = [h + a * (b - h) for h, a, b in zip(self.state, z, n)]
        return self.state

    def parameters(self):
        return flat(self.z, self.r, self.n)


class Model:
    def __init__(self):
        self.layers, self.head = [Layer(), Layer()], matrix(random, 1, WIDTH)

    def __call__(self, xs):
        for layer in self.layers:
            layer.reset()
        total = Value(0.0)
        for now, then in zip(xs, xs[1:]):
            x = [Value(now)] * WIDTH
            for layer in self.layers:
                x = layer(x)
            error = linear(x, self.head)[0] - then
            total = total + error * error
        return total * (1.0 / len(xs))

    def parameters(self):
        return flat(self.head) + [p for layer in self.layers for p in layer.parameters()]


model = Model()
for step in range(STEPS):
    k = random.randrange(20)
    loss = model([(k * j % 7) / 7.0 for j in range(6)])
    for p in model.parameters():
        p.grad = 0.0
    loss.backward()
    for p in model.parameters():
        p.data -= 0.05 * p.grad
    if step % 100 == 0:
        print(step, loss.data)
