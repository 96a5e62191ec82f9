"""Two moons over mgjit.nn: mini-batches drawn at random, accuracy on other points between the steps."""

import math
import os
import random

import mgjit
from mgjit import nn

STEPS = int(os.environ.get("STEPS", "200"))
BATCH = 16
random.seed(1)


def moon(k):
    angle = math.pi * random.random()
    x, y = math.cos(angle), math.sin(angle)
    if k % 2:
        x, y = 1 - x, 0.5 - y
    return [x + random.gauss(0, 0.1), y + random.gauss(0, 0.1)], 1.0 if k % 2 else -1.0


train, test = [moon(k) for k in range(400)], [moon(k) for k in range(40)]
model = nn.MLP(2, [16, 16, 1], seed=4)


@mgjit.compile
def step(points, labels, lr):
    scores = [model(point) for point in points]
    loss = sum((1 - label * score).relu() for score, label in zip(scores, labels)) / len(points)
    loss = loss + 1e-4 * sum(p * p for p in model.parameters())
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= lr * p.grad
    return loss


@mgjit.compile
def predict(point):
    return model(point)


for k in range(STEPS):
    batch = random.sample(train, BATCH)
    loss = step([point for point, _ in batch], [label for _, label in batch], 0.5 * (1 - k / STEPS))
    if k % 50 == 49 or k == STEPS - 1:
        right = sum((predict(point).data > 0) == (label > 0) for point, label in test)
        print(f"step {k + 1}: loss {loss.data!r}, {right} of {len(test)} right")
print("checksum", sum(p.data for p in model.parameters()))
