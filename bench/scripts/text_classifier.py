"""Sentences are judged by attention over their words: embeddings taken by number, sentences of two to nine words."""

import os
import random

import mgjit
from mgjit import Value

STEPS = int(os.environ.get("STEPS", "200"))
SIZE, HIDDEN = 24, 32
rng = random.Random(13)
GOOD, BAD = ["great", "lovely", "fine", "superb"], ["dull", "awful", "poor", "boring"]
FILLER = ["the", "film", "was", "a", "plot", "and", "very", "cast", "its", "so"]
vocabulary = GOOD + BAD + FILLER


def review():
    words = [rng.choice(FILLER) for _ in range(rng.randint(1, 8))]
    good = rng.random() < 0.5
    words.insert(rng.randrange(len(words) + 1), rng.choice(GOOD if good else BAD))
    return [vocabulary.index(word) for word in words], 1.0 if good else 0.0


embedding = [[Value(rng.gauss(0, 0.3)) for _ in range(SIZE)] for _ in vocabulary]
attention = [Value(rng.gauss(0, 0.3)) for _ in range(SIZE)]
hidden = [[Value(rng.gauss(0, 0.3)) for _ in range(SIZE)] for _ in range(HIDDEN)]
output = [Value(rng.gauss(0, 0.3)) for _ in range(HIDDEN)]
parameters = [p for row in [*embedding, attention, *hidden, output] for p in row]
square = mgjit.zeros(len(parameters))


def score(words):
    vectors = [embedding[word] for word in words]
    weights = [mgjit.exp(mgjit.dot(attention, vector)) for vector in vectors]
    total = sum(weights)
    mixed = [sum(w * vector[j] for w, vector in zip(weights, vectors)) / total for j in range(SIZE)]
    return mgjit.dot(output, [mgjit.dot(row, mixed).tanh() for row in hidden])


@mgjit.compile
def step(words, label, lr):
    z = score(words)
    p = 1 / (1 + mgjit.exp(-z))
    loss = -(label * mgjit.log(p) + (1 - label) * mgjit.log(1 - p))
    for q in parameters:
        q.grad = 0.0
    loss.backward()
    for i, q in enumerate(parameters):
        square[i] = 0.9 * square[i] + 0.1 * q.grad * q.grad
        q.data -= lr * q.grad / (mgjit.sqrt(square[i]) + 1e-6)
    return loss


@mgjit.compile
def judge(words):
    return score(words) > 0


data = [review() for _ in range(300)]
held_out = [review() for _ in range(30)]
running = 0.0
for k in range(STEPS):
    words, label = data[k % len(data)]
    running += 0.05 * (step(words, label, 0.005).data - running)
    if k % 40 == 39 or k == STEPS - 1:
        right = sum(bool(judge(words)) == bool(label) for words, label in held_out)
        print(k + 1, running, right)
print("checksum", sum(p.data for p in parameters))
