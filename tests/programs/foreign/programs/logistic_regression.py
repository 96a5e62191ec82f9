"""Logistic regression on lists of floats, with the gradient written by hand."""

import math
import random

weights = [0.0] * 8
bias = 0.0
seen = 0


def sigmoid(z):
    return 1.0 / (1.0 + math.exp(-z)) if z >= 0 else math.exp(z) / (1.0 + math.exp(z))


def predict(x):
    return sigmoid(sum(w * xi for w, xi in zip(weights, x)) + bias)


def update(batch, labels, rate, l2=1e-3):
    global bias, seen
    gradient = [l2 * w for w in weights]
    bias_gradient = 0.0
    loss = 0.0
    correct = 0
    for x, y in zip(batch, labels):
        p = predict(x)
        loss -= math.log(p if y == 1 else 1.0 - p)
        correct += 1 if (p > 0.5) == (y == 1) else 0
        error = p - y
        for j, xj in enumerate(x):
            gradient[j] += error * xj / len(batch)
        bias_gradient += error / len(batch)
    for j in range(len(weights)):
        weights[j] -= rate * gradient[j]
    bias -= rate * bias_gradient
    seen += len(batch)
    return loss / len(batch), correct


def make():
    rng = random.Random(61)
    calls = [
        ([[rng.gauss(0, 1) for _ in range(8)] for _ in range(10)], [rng.randrange(2) for _ in range(10)], 0.5)
        for _ in range(5)
    ]
    return update, calls, lambda: (weights, bias, seen)
