"""A regression network with functions: predict, gradients, and an update that makes new lists with momentum."""
import math
import random

random.seed(21)
H = 10
w1 = [[random.gauss(0, 0.5) for _ in range(3)] for _ in range(H)]
w2 = [random.gauss(0, 0.5) for _ in range(H)]
v1, v2 = [[0.0] * 3 for _ in range(H)], [0.0] * H
X = [[random.uniform(-1, 1), random.uniform(-1, 1), 1.0] for _ in range(64)]
T = [math.sin(2 * x[0]) + x[1] ** 2 for x in X]


def predict(x):
    h = [math.tanh(sum(w * v for w, v in zip(row, x))) for row in w1]
    return h, sum(w * v for w, v in zip(w2, h))


def gradients(batch):
    g1, g2, loss = [[0.0] * 3 for _ in range(H)], [0.0] * H, 0.0
    for x, t in batch:
        h, y = predict(x)
        e = y - t
        loss += e * e
        g2 = [g + e * hj for g, hj in zip(g2, h)]
        for j in range(H):
            d = e * w2[j] * (1 - h[j] ** 2)
            g1[j] = [g + d * xi for g, xi in zip(g1[j], x)]
    return g1, g2, loss / len(batch)


data = list(zip(X, T))
for epoch in range(3000):
    random.shuffle(data)
    total = 0.0
    for start in range(0, len(data), 16):
        g1, g2, loss = gradients(data[start:start + 16])
        v1 = [[0.9 * v - 0.003 * g for v, g in zip(vr, gr)] for vr, gr in zip(v1, g1)]
        v2 = [0.9 * v - 0.003 * g for v, g in zip(v2, g2)]
        w1 = [[w + v for w, v in zip(wr, vr)] for wr, vr in zip(w1, v1)]
        w2 = [w + v for w, v in zip(w2, v2)]
        total += loss
    if epoch % 500 == 0:
        print("epoch", epoch, "loss", total / 4)
print(w2)
