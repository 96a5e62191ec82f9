"""A tagger with a conditional random field: its forward algorithm is a loop over times and states."""

import random
import sys

from engine import Value, flat, linear, matrix

random.seed(9)
STEPS, TAGS, WIDTH = int(sys.argv[1]), 4, 6
embed, emit, move = matrix(random, 12, WIDTH), matrix(random, TAGS, WIDTH), matrix(random, TAGS, TAGS)
weights = flat(embed, emit, move)
sentences = [[random.randrange(12) for _ in range(random.choice((4, 6)))] for _ in range(80)]


def partition(scores):
    alpha = [s.exp() for s in scores[0]]
    for row in scores[1:]:
        new = []
        for j in range(TAGS):
            reached = Value(0.0)
            for i in range(TAGS):
                reached = reached + alpha[i] * move[i][j].exp()
            new.append(reached * row[j].exp())
        alpha = new
    return sum(alpha).log()


def score_of(scores, tags):
    found = scores[0][tags[0]]
    for row, before, now in zip(scores[1:], tags, tags[1:]):
        found = found + row[now] + move[before][now]
    return found


for step in range(STEPS):
    words = sentences[step % len(sentences)]
    tags = [w % TAGS for w in words]
    scores = [linear(embed[w], emit) for w in words]
    loss = partition(scores) - score_of(scores, tags)
    loss.backward()
    for p in weights:
        p.data -= 0.05 * p.grad
        p.grad = 0.0
    if step % 200 == 0:
        print(step, loss.data)
