"""Learn to train on a batch in a plain loop: micrograd's two moons, 100 points a step, hinge loss, L2 regularisation.

The loop over the batch is a Python loop; mgjit finds it again in the recording and makes it a C loop. At the end, the
frozen model paints the plane, and the picture goes to moons.svg.

Run: python examples/moons.py
"""

import math
import os
import random

import mgjit
from mgjit import nn

STEPS = int(os.environ.get("STEPS", "400"))


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


# %%
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


for k in range(STEPS):
    loss, scores = train_step(points, labels, 1.0 - 0.9 * k / STEPS)
    if k % 80 == 0 or k == STEPS - 1:
        right = sum((score > 0) == (label > 0) for score, label in zip(scores, labels))
        print(f"step {k:3}  loss {loss:.4f}  accuracy {right / len(labels):.0%}")


# %%
def picture(score, width=96, height=60):
    """The plane as SVG: the colour of each square is the score there, and the points lie on top."""
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{6 * width}">']
    for row in range(height):
        y = 1.75 - 2.75 * row / height
        line = [round(6 * math.tanh(score([4.4 * column / width - 1.7, y]))) for column in range(width)]
        starts = [column for column in range(width) if column == 0 or line[column] != line[column - 1]]
        for start, end in zip(starts, [*starts[1:], width]):
            s = line[start] / 6
            shade = f"rgb({int(215 + 36 * s)},{int(231 - 40 * abs(s))},{int(215 - 36 * s)})"
            parts.append(f'<rect x="{start}" y="{row}" width="{end - start + 0.5}" height="1.5" fill="{shade}"/>')
    for (x, y), label in zip(points, labels):
        place = f'cx="{(x + 1.7) * width / 4.4:.2f}" cy="{(1.75 - y) * height / 2.75:.2f}"'
        parts.append(f'<circle {place} r="0.8" fill="{"#c2410c" if label > 0 else "#1d4ed8"}"/>')
    return "\n".join([*parts, "</svg>"])


frozen = mgjit.freeze(model, points[0])
painting = picture(frozen)
with open("moons.svg", "w", encoding="utf-8") as file:
    file.write(painting)
print("moons.svg: the boundary between the moons")
