"""A generator and a discriminator for points on a circle: two steps that share networks and take turns."""

import math
import os
import random

import mgjit
from mgjit import nn

STEPS = int(os.environ.get("STEPS", "100"))
BATCH = 8
random.seed(2)
generator = nn.MLP(2, [12, 2], seed=3)
discriminator = nn.MLP(2, [16, 16, 1], seed=4)


def softplus(x):
    return mgjit.log(1 + mgjit.exp(x))


def noise():
    return [random.gauss(0, 1), random.gauss(0, 1)]


@mgjit.compile
def discriminate(real, lr):
    fakes = [[x.data for x in generator(noise())] for _ in range(BATCH)]
    loss = sum(softplus(-discriminator(point)) for point in real) + sum(softplus(discriminator(f)) for f in fakes)
    loss = loss / (2 * BATCH)
    discriminator.zero_grad()
    loss.backward()
    for p in discriminator.parameters():
        p.data -= lr * p.grad
    return loss


@mgjit.compile
def generate(lr):
    loss = sum(softplus(-discriminator(generator(noise()))) for _ in range(BATCH)) / BATCH
    generator.zero_grad()
    discriminator.zero_grad()
    loss.backward()
    for p in generator.parameters():
        p.data -= lr * p.grad
    return loss


def real_points():
    angles = [random.uniform(0, 2 * math.pi) for _ in range(BATCH)]
    return [[math.cos(a), math.sin(a)] for a in angles]


for k in range(STEPS):
    for _ in range(2):
        found = discriminate(real_points(), 0.1)
    fooled = generate(0.05)
    if k % 20 == 19 or k == STEPS - 1:
        radii = [math.hypot(*(x.data for x in generator([z, -z]))) for z in (0.3, 1.0, -0.5)]
        print(k + 1, "discriminator", found.data, "generator", fooled.data, "radii", radii)
print("checksum", sum(p.data for p in generator.parameters()), sum(p.data for p in discriminator.parameters()))
