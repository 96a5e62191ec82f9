"""Skip-gram word vectors with negative sampling: tables of floats that words index, gradients by hand."""

import math
import random

random.seed(71)
WORDS, SIZE = 12, 6
vectors = [[random.uniform(-0.5, 0.5) for _ in range(SIZE)] for _ in range(WORDS)]
contexts = [[0.0] * SIZE for _ in range(WORDS)]


def step(word, context, negatives, rate):
    center = vectors[word]
    gradient = [0.0] * SIZE
    loss = 0.0
    for other, label in [(context, 1.0)] + [(n, 0.0) for n in negatives]:
        target = contexts[other]
        p = 1.0 / (1.0 + math.exp(-sum(a * b for a, b in zip(center, target))))
        loss -= math.log(p) if label else math.log(1.0 - p)
        error = p - label
        for k in range(SIZE):
            gradient[k] += error * target[k]
            contexts[other][k] -= rate * error * center[k]
    for k in range(SIZE):
        vectors[word][k] -= rate * gradient[k]
    return loss


def make():
    rng = random.Random(72)
    calls = [
        (rng.randrange(WORDS), rng.randrange(WORDS), [rng.randrange(WORDS) for _ in range(3)], 0.3) for _ in range(6)
    ]
    return step, calls, lambda: (vectors, contexts)
