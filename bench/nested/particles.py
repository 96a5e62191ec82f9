"""A particle filter: nothing in it trains, though `x = x + dt * v` looks like that."""

import math
import random
import sys

random.seed(8)
TIMES, COUNT = int(sys.argv[1]), 150


def moved(x, v, dt):
    for _ in range(3):
        v = v - dt * 0.5 * math.sin(x)
        x = x + dt * v
    return x, v


def likelihood(x, seen):
    return math.exp(-0.5 * ((x - seen) / 0.3) ** 2) + 1e-12


particles = [(random.gauss(1, 0.3), random.gauss(0, 0.3)) for _ in range(COUNT)]
truth = (1.0, 0.0)
error = 0.0
for time in range(TIMES):
    truth = moved(*truth, 0.05)
    seen = truth[0] + random.gauss(0, 0.3)
    weights = []
    for k in range(COUNT):
        x, v = moved(*particles[k], 0.05)
        particles[k] = x + random.gauss(0, 0.02), v
        weights.append(likelihood(x, seen))
    total = sum(weights)
    mean = 0.0
    for (x, _), w in zip(particles, weights):
        mean += x * w / total
    error += (mean - truth[0]) ** 2
    particles = random.choices(particles, weights, k=COUNT)
    if time % 500 == 0:
        print(time, mean, error)
