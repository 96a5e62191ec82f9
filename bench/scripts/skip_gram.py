"""Word vectors with negative sampling, by hand: sentences of different lengths, two tables of lists, plain floats."""

import math
import os
import random

import mgjit

STEPS = int(os.environ.get("STEPS", "300"))
SIZE, NEGATIVE = 20, 4
rng = random.Random(6)

subjects, verbs, objects = ["cat", "dog", "king", "queen"], ["sees", "likes", "chases"], ["mouse", "bone", "crown"]
adjectives = ["old", "quick", "proud", "lazy"]
vocabulary = [*subjects, *verbs, *objects, *adjectives]
number = {word: k for k, word in enumerate(vocabulary)}


def sentence():
    words = [*rng.sample(adjectives, rng.randrange(3)), rng.choice(subjects), rng.choice(verbs)]
    words += [*rng.sample(adjectives, rng.randrange(2)), rng.choice(objects)]
    if rng.random() < 0.5:
        words += [rng.choice(verbs), rng.choice(objects)]
    return [number[word] for word in words]


center = [[rng.uniform(-0.5, 0.5) / SIZE for _ in range(SIZE)] for _ in vocabulary]
context = [[0.0] * SIZE for _ in vocabulary]


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


@mgjit.compile
def step(words, negatives, lr):
    """All pairs of neighbours in a sentence, each against its own negative samples."""
    loss, k = 0.0, 0
    for i in range(len(words)):
        for j in (i - 1, i + 1):
            if not 0 <= j < len(words):
                continue
            v = center[words[i]]
            moved = [0.0] * SIZE
            for sample, label in [(words[j], 1.0)] + [(n, 0.0) for n in negatives[k]]:
                u = context[sample]
                p = sigmoid(sum(a * b for a, b in zip(u, v)))
                loss -= label * math.log(p + 1e-9) + (1.0 - label) * math.log(1.0 - p + 1e-9)
                g = lr * (label - p)
                for d in range(SIZE):
                    moved[d] += g * u[d]
                    u[d] += g * v[d]
            for d in range(SIZE):
                v[d] += moved[d]
            k += 1
    return loss / k


for n in range(STEPS):
    words = sentence()
    negatives = [[rng.randrange(len(vocabulary)) for _ in range(NEGATIVE)] for _ in range(2 * len(words) - 2)]
    loss = step(words, negatives, 0.1)
    if n % 50 == 49 or n == STEPS - 1:
        print(n + 1, loss)


def similarity(a, b):
    u, v = center[number[a]], center[number[b]]
    return sum(x * y for x, y in zip(u, v)) / math.sqrt(sum(x * x for x in u) * sum(y * y for y in v))


print("king, queen:", similarity("king", "queen"), "king, bone:", similarity("king", "bone"))
