"""Softmax regression over mini-batches that are slices of a shuffled list of pairs."""
import math
import random

random.seed(5)
CLASSES, FEATURES, BATCH = 3, 4, 20
centres = [[random.uniform(-2, 2) for _ in range(FEATURES)] for _ in range(CLASSES)]
samples = []
for _ in range(160):
    c = random.randrange(CLASSES)
    samples.append(([m + random.gauss(0, 1) for m in centres[c]], c))
W = [[0.0] * FEATURES for _ in range(CLASSES)]
b = [0.0] * CLASSES


def softmax(scores):
    top = max(scores)
    exps = [math.exp(s - top) for s in scores]
    total = sum(exps)
    return [e / total for e in exps]


def train_batch(batch, lr):
    gW = [[0.0] * FEATURES for _ in range(CLASSES)]
    gb = [0.0] * CLASSES
    loss = 0.0
    for x, label in batch:
        probs = softmax([sum(w * v for w, v in zip(W[k], x)) + b[k] for k in range(CLASSES)])
        loss -= math.log(probs[label])
        for k in range(CLASSES):
            d = probs[k] - (1.0 if k == label else 0.0)
            gb[k] += d
            for j in range(FEATURES):
                gW[k][j] += d * x[j]
    for k in range(CLASSES):
        b[k] -= lr * gb[k] / len(batch)
        for j in range(FEATURES):
            W[k][j] -= lr * gW[k][j] / len(batch)
    return loss


for epoch in range(5000):
    random.shuffle(samples)
    loss = 0.0
    for start in range(0, len(samples), BATCH):
        loss += train_batch(samples[start:start + BATCH], 0.1)
    if epoch % 400 == 0:
        print(f"epoch {epoch:4d}  loss {loss / len(samples):.6f}")
print([[round(w, 5) for w in row] for row in W])
