"""A learning-rate schedule with warm-up and a cosine."""

import math
import sys

from engine import MLP, digest

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300


def rate_at(step):
    if step < 20:
        return 0.05 * (step + 1) / 20
    return 0.025 * (1 + math.cos(math.pi * step / steps))


model = MLP([2, 8, 1], 3)
samples = [([math.sin(k), math.cos(k)], math.sin(2 * k)) for k in range(10)]
for step in range(steps):
    rate = rate_at(step)
    total = 0
    for x, y in samples:
        difference = model(x)[0] - y
        total = difference * difference + total
    model.zero_grad()
    total.backward()
    for p in model.parameters():
        p.data -= rate * p.grad
    if step % 25 == 0 or step == steps - 1:
        print(f"{step} rate {rate:.6f} loss {total.data:.12f}")
print(digest(model.parameters()))
