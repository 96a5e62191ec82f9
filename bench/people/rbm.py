"""Restricted Boltzmann machine, contrastive divergence with one Gibbs step."""
import math
import random as rnd

rnd.seed(21)
NV, NH = 12, 6
W = [[rnd.gauss(0, 0.1) for _ in range(NH)] for _ in range(NV)]
a = [0.0] * NV
b = [0.0] * NH


def sigm(x):
    return 1.0 / (1.0 + math.exp(-x))


def hidden_probs(v):
    return [sigm(b[j] + sum(v[i] * W[i][j] for i in range(NV))) for j in range(NH)]


def visible_probs(h):
    return [sigm(a[i] + sum(h[j] * W[i][j] for j in range(NH))) for i in range(NV)]


def sample(ps):
    return [1.0 if rnd.random() < p else 0.0 for p in ps]


def cd1(v0, lr):
    ph0 = hidden_probs(v0)
    h0 = sample(ph0)
    pv1 = visible_probs(h0)
    v1 = sample(pv1)
    ph1 = hidden_probs(v1)
    for i in range(NV):
        for j in range(NH):
            W[i][j] += lr * (v0[i] * ph0[j] - v1[i] * ph1[j])
        a[i] += lr * (v0[i] - v1[i])
    for j in range(NH):
        b[j] += lr * (ph0[j] - ph1[j])
    return sum((x - y) ** 2 for x, y in zip(v0, pv1))


patterns = []
for _ in range(60):
    base = rnd.choice([[1.0] * 4 + [0.0] * 8, [0.0] * 4 + [1.0] * 4 + [0.0] * 4, [0.0] * 8 + [1.0] * 4])
    patterns.append([1.0 - x if rnd.random() < 0.05 else x for x in base])

for epoch in range(1200):
    err = 0.0
    for p in patterns:
        err += cd1(p, 0.05)
    if epoch % 120 == 0:
        print("Epoch %3d, reconstruction error: %.6f" % (epoch, err / len(patterns)))
