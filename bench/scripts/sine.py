"""A curve fitted with plain floats: 1-24-1 with tanh, gradients by hand, momentum, all in lists."""

import math
import os
import random

import mgjit

STEPS = int(os.environ.get("STEPS", "300"))
HIDDEN, BATCH = 24, 400
random.seed(5)
w1 = [random.uniform(-2, 2) for _ in range(HIDDEN)]
b1 = [random.uniform(-1, 1) for _ in range(HIDDEN)]
w2 = [random.uniform(-0.5, 0.5) for _ in range(HIDDEN)]
bias = [0.0]
momenta = [[0.0] * HIDDEN for _ in range(3)]


@mgjit.compile
def step(xs, ys, lr):
    g1, gb, g2, g0, loss = [0.0] * HIDDEN, [0.0] * HIDDEN, [0.0] * HIDDEN, 0.0, 0.0
    for x, y in zip(xs, ys):
        h = [math.tanh(w * x + b) for w, b in zip(w1, b1)]
        error = sum(w * v for w, v in zip(w2, h)) + bias[0] - y
        loss += error * error / len(xs)
        d = 2 * error / len(xs)
        g0 += d
        for j in range(HIDDEN):
            g2[j] += d * h[j]
            back = d * w2[j] * (1 - h[j] * h[j])
            g1[j] += back * x
            gb[j] += back
    for weights, gradients, momentum in zip((w1, b1, w2), (g1, gb, g2), momenta):
        for j in range(HIDDEN):
            momentum[j] = 0.9 * momentum[j] + gradients[j]
            weights[j] -= lr * momentum[j]
    bias[0] -= lr * g0
    return loss


for k in range(STEPS):
    xs = [random.uniform(-3, 3) for _ in range(BATCH)]
    ys = [math.sin(2 * x) + random.gauss(0, 0.05) for x in xs]
    loss = step(xs, ys, 0.03)
    if k % 60 == 0 or k == STEPS - 1:
        print(k, loss)
print(w1, b1, w2, bias)
