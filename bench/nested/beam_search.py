"""A recurrent model over letters, and a beam search over plain numbers every hundred steps."""

import math
import random
import sys

from engine import Value, flat, linear, matrix, softmax

random.seed(4)
STEPS, WIDTH, LETTERS = int(sys.argv[1]), 10, 7
words = [[random.randrange(1, LETTERS) for _ in range(4)] for _ in range(60)]
embed, inner, head = matrix(random, LETTERS, WIDTH), matrix(random, WIDTH, WIDTH), matrix(random, LETTERS, WIDTH)
weights = flat(embed, inner, head)


def search(beams):
    found = [([0], [0.0] * WIDTH, 0.0)]
    for _ in range(5):
        further = []
        for tokens, state, score in found:
            new = []
            for row, e in zip(inner, embed[tokens[-1]]):
                s = e.data
                for w, h in zip(row, state):
                    s = s + w.data * h
                new.append(math.tanh(s))
            logits = [sum(w.data * h for w, h in zip(row, new)) for row in head]
            norm = math.log(sum(math.exp(v) for v in logits))
            for k, v in enumerate(logits):
                further.append(([*tokens, k], new, score + v - norm))
        further.sort(key=lambda one: -one[2])
        found = further[:beams]
    return found[0]


for step in range(STEPS):
    word = [0, *words[step % len(words)], 0]
    state, losses = [Value(0.0)] * WIDTH, []
    for now, then in zip(word, word[1:]):
        state = [(a + b).tanh() for a, b in zip(embed[now], linear(state, inner))]
        losses.append(-softmax(linear(state, head))[then].log())
    loss = sum(losses) * (1.0 / len(losses))
    loss.backward()
    for p in weights:
        p.data -= 0.1 * p.grad
        p.grad = 0.0
    if step % 100 == 99:
        tokens, _, score = search(4)
        print(step, loss.data, tokens, score)
