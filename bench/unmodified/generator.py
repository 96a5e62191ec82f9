"""Batches come from a generator, with enumerate around it."""

import random
import sys

from engine import MLP, SGD, digest


def stream(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        xs = [[rng.gauss(0, 1), rng.gauss(0, 1)] for _ in range(5)]
        yield xs, [a - b for a, b in xs]


model = MLP([2, 10, 1], 8)
optimiser = SGD(model.parameters(), 0.02, 0.5)
for number, (xs, ys) in enumerate(stream(4, int(sys.argv[1]) if len(sys.argv) > 1 else 400)):
    loss = sum((model(x)[0] - y) ** 2 for x, y in zip(xs, ys))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if number % 40 == 39:
        print(number, loss.data)
print(digest(model.parameters()))
