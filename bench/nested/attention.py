"""Causal attention with heads: loops over layers, heads and positions inside of the model."""

import random
import sys

from engine import Value, flat, linear, matrix, softmax

random.seed(2)
STEPS, WIDTH, HEADS, LENGTH = int(sys.argv[1]), 8, 2, 6
text = [random.randrange(10) for _ in range(400)]
embed, places, head = matrix(random, 10, WIDTH), matrix(random, LENGTH, WIDTH), matrix(random, 10, WIDTH)
layers = [{name: matrix(random, WIDTH, WIDTH) for name in "qkvo"} for _ in range(2)]
weights = flat(embed, places, head, *[w for layer in layers for w in layer.values()])


def attend(layer, x, keys, values):
    q, k, v = (linear(x, layer[name]) for name in "qkv")
    keys.append(k)
    values.append(v)
    out, size = [], WIDTH // HEADS
    for h in range(HEADS):
        part = slice(h * size, (h + 1) * size)
        scores = []
        for key in keys:
            score = Value(0.0)
            for a, b in zip(q[part], key[part]):
                score = score + a * b
            scores.append(score * size**-0.5)
        chosen = softmax(scores)
        for j in range(part.start, part.stop):
            mixed = Value(0.0)
            for weight, value in zip(chosen, values):
                mixed = mixed + weight * value[j]
            out.append(mixed)
    return [a + b for a, b in zip(x, linear(out, layer["o"]))]


for step in range(STEPS):
    start = random.randrange(len(text) - LENGTH - 1)
    tokens = text[start : start + LENGTH + 1]
    caches = [([], []) for _ in layers]
    loss = Value(0.0)
    for position in range(LENGTH):
        x = [a + b for a, b in zip(embed[tokens[position]], places[position])]
        for layer, (keys, values) in zip(layers, caches):
            x = attend(layer, x, keys, values)
        loss = loss - softmax(linear(x, head))[tokens[position + 1]].log()
    loss.backward()
    rate = 0.02 * (1.0 - step / STEPS)
    for p in weights:
        p.data -= rate * p.grad
        p.grad = 0.0
    if step % 50 == 0:
        print(step, loss.data)
