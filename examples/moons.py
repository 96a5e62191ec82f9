"""Two moons, as in micrograd's demo: a batch of 100 points a step, hinge loss, L2 regularisation.

The loop over the batch is a Python loop; mgjit finds it again in the recording and makes it a C loop.

Run: python examples/moons.py
"""

import math
import random

import mgjit
from mgjit import nn


def moons(n, noise, seed):
    """n points on two interleaving half circles, with labels -1 and +1."""
    draw = random.Random(seed)
    points, labels = [], []
    for k in range(n):
        angle = math.pi * draw.random()
        upper = k % 2 == 0
        x = math.cos(angle) if upper else 1 - math.cos(angle)
        y = math.sin(angle) if upper else 0.5 - math.sin(angle)
        points.append([x + draw.gauss(0, noise), y + draw.gauss(0, noise)])
        labels.append(-1.0 if upper else 1.0)
    return points, labels


points, labels = moons(100, 0.1, seed=7)
model = nn.MLP(2, [16, 16, 1])


@mgjit.compile
def train_step(points, labels, lr):
    scores = [model(point) for point in points]
    losses = [(1 - label * score).relu() for score, label in zip(scores, labels)]
    loss = sum(losses) * (1 / len(losses)) + 1e-4 * sum(p * p for p in model.parameters())
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= lr * p.grad
    return loss, scores


STEPS = 400
for k in range(STEPS):
    loss, scores = train_step(points, labels, 1.0 - 0.9 * k / STEPS)
    if k % 80 == 0 or k == STEPS - 1:
        right = sum((score > 0) == (label > 0) for score, label in zip(scores, labels))
        print(f"step {k:3}  loss {loss:.4f}  accuracy {right / len(labels):.0%}")

print()
for row in range(16):
    y = 1.5 - row * 2.5 / 15
    print("".join("#" if model([-1.5 + column * 4 / 47, y]).data > 0 else "." for column in range(48)))
