"""Several models in turn, trained by one function."""

import sys

from engine import MLP, digest

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 150
data = [([k / 10, 1 - k / 10], (k / 10) ** 2) for k in range(10)]


def train(model, rate, steps):
    losses = []
    for _ in range(steps):
        loss = sum((model(x)[0] - y) ** 2 for x, y in data)
        for p in model.parameters():
            p.grad = 0.0
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        losses.append(loss.data)
    return losses


for width in (4, 8):
    for rate in (0.01, 0.05):
        model = MLP([2, width, 1], width)
        found = train(model, rate, steps)
        print(width, rate, found[0], found[-1], digest(model.parameters()))
