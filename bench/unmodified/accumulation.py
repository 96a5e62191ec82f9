"""Gradients of several samples are added up before each update."""

import random
import sys

from engine import MLP, digest

rng = random.Random(8)
model = MLP([2, 8, 1], 12)
params = model.parameters()
for step in range(int(sys.argv[1]) if len(sys.argv) > 1 else 120):
    batch = [([rng.random(), rng.random()], rng.random()) for _ in range(6)]
    total = 0.0
    for x, y in batch:
        loss = (model(x)[0] - y) ** 2 * (1 / 6)
        loss.backward()
        total += loss.data
    for p in params:
        p.data -= 0.1 * p.grad
        p.grad = 0.0
    if step % 10 == 0:
        print(step, total)
print(digest(params))
