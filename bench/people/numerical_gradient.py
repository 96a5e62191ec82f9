"""Gradients by finite differences, for a model with a handful of parameters."""
import math
import random

random.seed(13)
data = [(x / 10, 2.0 * math.exp(-0.5 * x / 10) * math.sin(1.5 * x / 10) + random.gauss(0, 0.02)) for x in range(60)]


def model(p, x):
    return p[0] * math.exp(p[1] * x) * math.sin(p[2] * x)


def loss(p):
    return sum((model(p, x) - y) ** 2 for x, y in data) / len(data)


def estimate_gradient(f, v, h=0.0001):
    return [(f([vj + (h if j == i else 0) for j, vj in enumerate(v)]) - f(v)) / h for i in range(len(v))]


p = [1.0, -0.3, 1.3]
for step in range(45000):
    g = estimate_gradient(loss, p)
    p = [pi - 0.02 * gi for pi, gi in zip(p, g)]
    if step % 10000 == 0:
        print(step, loss(p), p)
print(p)
