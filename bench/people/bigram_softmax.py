"""Bigram language model of letters: softmax regression by stochastic gradient descent."""
import math
import random

text = """the quick brown fox jumps over the lazy dog while seven wizards quietly hex a jovial knight and
pack my box with five dozen liquor jugs how vexingly quick daft zebras jump"""
vocab = sorted(set(text))
stoi = {c: i for i, c in enumerate(vocab)}
V = len(vocab)
ids = [stoi[c] for c in text]
pairs = list(zip(ids, ids[1:]))
random.seed(0)
logits_table = [[random.uniform(-0.1, 0.1) for _ in range(V)] for _ in range(V)]


def softmax(zs):
    m = max(zs)
    es = [math.exp(z - m) for z in zs]
    s = sum(es)
    return [e / s for e in es]


def train_epoch(table, pairs, lr):
    nll = 0
    for prev, nxt in pairs:
        row = table[prev]
        probs = softmax(row)
        nll -= math.log(probs[nxt])
        for c in range(len(row)):
            grad = probs[c] - (1 if c == nxt else 0)
            row[c] -= lr * grad
    return nll / len(pairs)


for epoch in range(3000):
    loss = train_epoch(logits_table, pairs, 0.1)
    if epoch % 300 == 0:
        print(f"{epoch:4d} nll {loss:.6f}")
