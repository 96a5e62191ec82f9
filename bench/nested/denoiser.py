"""A small diffusion model on plain floats; sampling takes `x = x - a * noise` again and again."""

import math
import random
import sys

random.seed(10)
STEPS, TIMES, HIDDEN = int(sys.argv[1]), 20, 16
A = [[random.gauss(0, 0.5) for _ in range(3)] for _ in range(HIDDEN)]
B = [[random.gauss(0, 0.5) for _ in range(HIDDEN)] for _ in range(2)]


def predicted(x, t):
    inputs = [x[0], x[1], t / TIMES]
    hidden = [math.tanh(sum(w * v for w, v in zip(row, inputs))) for row in A]
    return inputs, hidden, [sum(w * h for w, h in zip(row, hidden)) for row in B]


def sample(count):
    found = []
    for _ in range(count):
        x = [random.gauss(0, 1), random.gauss(0, 1)]
        for t in range(TIMES, 0, -1):
            _, _, noise = predicted(x, t)
            for k in range(2):
                x[k] = x[k] - 0.1 * noise[k]
        found.append(x)
    return sum(math.hypot(*x) for x in found) / count


total = 0.0
for step in range(STEPS):
    angle, t = random.uniform(0, 6.28), random.randint(1, TIMES)
    noise = [random.gauss(0, 1), random.gauss(0, 1)]
    share = t / TIMES
    x = [math.cos(angle) * (1 - share) + noise[0] * share, math.sin(angle) * (1 - share) + noise[1] * share]
    inputs, hidden, out = predicted(x, t)
    errors = [o - n for o, n in zip(out, noise)]
    total += errors[0] ** 2 + errors[1] ** 2
    for k in range(HIDDEN):
        d = (errors[0] * B[0][k] + errors[1] * B[1][k]) * (1 - hidden[k] ** 2)
        for j in range(2):
            B[j][k] -= 0.01 * errors[j] * hidden[k]
        for j in range(3):
            A[k][j] -= 0.01 * d * inputs[j]
    if step % 5000 == 4999:
        print(step, total / 5000, sample(50))
        total = 0.0
