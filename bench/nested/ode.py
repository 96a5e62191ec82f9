"""An equation whose right side is a network, solved by steps `h = h + dt * f(h)` inside of the model."""

import random
import sys

from engine import Value, flat, linear, matrix

random.seed(7)
EPOCHS, SIZE = int(sys.argv[1]), 3
first, second = matrix(random, 8, SIZE), matrix(random, SIZE, 8)
weights = flat(first, second)
data = [[random.uniform(-1, 1) for _ in range(SIZE)] for _ in range(25)]


def slope(h):
    return linear([v.tanh() for v in linear(h, first)], second)


def solved(h, dt, steps):
    for _ in range(steps):
        moved = slope(h)
        for k in range(SIZE):
            h[k] = h[k] + dt * moved[k]
    return h


for epoch in range(EPOCHS):
    total = 0.0
    for start in data:
        end = solved([Value(v) for v in start], 0.2, 5)
        loss = Value(0.0)
        for v, w in zip(end, start[1:] + start[:1]):
            loss = loss + (v - w) * (v - w)
        loss.backward()
        for p in weights:
            p.data -= 0.02 * p.grad
            p.grad = 0.0
        total += loss.data
    if epoch % 10 == 0:
        print(epoch, total)
