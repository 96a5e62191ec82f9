"""A transformer over mgjit.Value that copies sequences: batches of four, whose sequences grow as training goes on."""

import os
import random

import mgjit
from mgjit import Value

STEPS = int(os.environ.get("STEPS", "100"))
SYMBOLS, WIDTH, BATCH = 8, 8, 4
rng = random.Random(12)


def matrix(rows, columns):
    return [[Value(rng.gauss(0, 0.2)) for _ in range(columns)] for _ in range(rows)]


tokens, places, head = matrix(SYMBOLS + 1, WIDTH), matrix(12, WIDTH), matrix(SYMBOLS, WIDTH)
query, key, value, wide, narrow = (matrix(*size) for size in ([(WIDTH, WIDTH)] * 3 + [(16, WIDTH), (WIDTH, 16)]))
parameters = [p for mat in (tokens, places, head, query, key, value, wide, narrow) for row in mat for p in row]
m, v = mgjit.zeros(len(parameters)), mgjit.zeros(len(parameters))


def times(mat, x):
    return [mgjit.dot(row, x) for row in mat]


def plus(x, y):
    return [a + b for a, b in zip(x, y)]


def sequence_loss(sequence):
    """The second half of the sequence repeats the first one, after a separator."""
    keys, values, loss = [], [], 0
    middle = len(sequence) // 2
    for t in range(len(sequence) - 1):
        x = plus(mgjit.take(tokens, sequence[t]), places[t])
        keys.append(times(key, x))
        values.append(times(value, x))
        q = times(query, x)
        weights = [mgjit.exp(mgjit.dot(q, k) * WIDTH**-0.5) for k in keys]
        total = sum(weights)
        x = plus(x, [sum(w * u[j] for w, u in zip(weights, values)) / total for j in range(WIDTH)])
        x = plus(x, times(narrow, [h.relu() for h in times(wide, x)]))
        if t >= middle:
            scores = times(head, x)
            loss = (
                loss
                + mgjit.log(sum(mgjit.exp(s) for s in scores))
                - mgjit.dot(scores, mgjit.one_hot(sequence[t + 1], SYMBOLS))
            )
    return loss / (len(sequence) - 1 - middle)


@mgjit.compile
def step(batch, rate, correction):
    loss = sum(sequence_loss(sequence) for sequence in batch) / len(batch)
    for p in parameters:
        p.grad = 0.0
    loss.backward()
    for i, p in enumerate(parameters):
        m[i] = 0.9 * m[i] + 0.1 * p.grad
        v[i] = 0.99 * v[i] + 0.01 * p.grad**2
        p.data -= rate * m[i] / (mgjit.sqrt(v[i] * correction) + 1e-8)
    return loss


def copying(length):
    half = [rng.randrange(SYMBOLS) for _ in range(length)]
    return [*half, SYMBOLS, *half]


for k in range(STEPS):
    length = 2 + 3 * k // STEPS
    batch = [copying(length) for _ in range(BATCH)]
    loss = step(batch, 0.01 / (1 - 0.9 ** (k + 1)), 1 / (1 - 0.99 ** (k + 1)))
    if k % 20 == 0 or k == STEPS - 1:
        print(f"{k}: {length} symbols, {loss.data!r}")
print("checksum", sum(p.data for p in parameters))
