"""Skip-gram with negative sampling over a table of vectors."""
import math
import random

random.seed(9)
VOCABULARY, DIM, WINDOW, NEGATIVE = 120, 16, 2, 3
corpus = [min(int(random.expovariate(0.04)), VOCABULARY - 1) for _ in range(1500)]
W_in = [[random.uniform(-0.5, 0.5) / DIM for _ in range(DIM)] for _ in range(VOCABULARY)]
W_out = [[0.0] * DIM for _ in range(VOCABULARY)]


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


def train_pair(center, context, lr):
    v = W_in[center]
    grad = [0.0] * DIM
    loss = 0.0
    for word, label in [(context, 1.0)] + [(random.randrange(VOCABULARY), 0.0) for _ in range(NEGATIVE)]:
        u = W_out[word]
        p = sigmoid(sum(a * b for a, b in zip(v, u)))
        loss -= math.log(p if label else 1.0 - p)
        g = lr * (label - p)
        for d in range(DIM):
            grad[d] += g * u[d]
            u[d] += g * v[d]
    for d in range(DIM):
        v[d] += grad[d]
    return loss


for epoch in range(50):
    total = count = 0
    for position, center in enumerate(corpus):
        for other in range(max(0, position - WINDOW), min(len(corpus), position + WINDOW + 1)):
            if other != position:
                total += train_pair(center, corpus[other], 0.05)
                count += 1
    if epoch % 10 == 0:
        print(f"epoch {epoch}: loss {total / count:.6f}")
print(W_in[0])
