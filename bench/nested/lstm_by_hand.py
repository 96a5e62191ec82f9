"""An LSTM on plain floats, with gradients by hand."""

import math
import random
import sys

random.seed(5)
EPOCHS, H, T = int(sys.argv[1]), 8, 10
W = [[random.gauss(0, 0.3) for _ in range(H + 2)] for _ in range(4 * H)]
V = [random.gauss(0, 0.3) for _ in range(H)]
data = [[math.sin(0.3 * (k + t)) for t in range(T + 1)] for k in range(20)]


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


def forward(xs):
    h, c, steps = [0.0] * H, [0.0] * H, []
    for x in xs:
        z = [x, 1.0, *h]
        a = [sum(w * v for w, v in zip(row, z)) for row in W]
        i = [sigmoid(v) for v in a[:H]]
        f = [sigmoid(v) for v in a[H : 2 * H]]
        o = [sigmoid(v) for v in a[2 * H : 3 * H]]
        g = [math.tanh(v) for v in a[3 * H :]]
        before = c
        c = [fk * ck + ik * gk for fk, ck, ik, gk in zip(f, c, i, g)]
        h = [ok * math.tanh(ck) for ok, ck in zip(o, c)]
        steps.append((z, i, f, o, g, before, c, h))
    return steps


def train(xs, rate):
    steps, loss = forward(xs[:-1]), 0.0
    dW, dV = [[0.0] * (H + 2) for _ in range(4 * H)], [0.0] * H
    dh, dc = [0.0] * H, [0.0] * H
    for t in range(len(steps) - 1, -1, -1):
        z, i, f, o, g, before, c, h = steps[t]
        e = sum(v * k for v, k in zip(V, h)) - xs[t + 1]
        loss += e * e
        for k in range(H):
            dV[k] += e * h[k]
            dh[k] += e * V[k]
        da = [0.0] * (4 * H)
        for k in range(H):
            tc = math.tanh(c[k])
            d = dc[k] + dh[k] * o[k] * (1.0 - tc * tc)
            da[k] = d * g[k] * i[k] * (1.0 - i[k])
            da[H + k] = d * before[k] * f[k] * (1.0 - f[k])
            da[2 * H + k] = dh[k] * tc * o[k] * (1.0 - o[k])
            da[3 * H + k] = d * i[k] * (1.0 - g[k] * g[k])
            dc[k] = d * f[k]
        dh = [0.0] * H
        for r in range(4 * H):
            for k in range(H + 2):
                dW[r][k] += da[r] * z[k]
            for k in range(H):
                dh[k] += da[r] * W[r][k + 2]
    for r in range(4 * H):
        for k in range(H + 2):
            W[r][k] -= rate * dW[r][k]
    for k in range(H):
        V[k] -= rate * dV[k]
    return loss


for epoch in range(EPOCHS):
    total = 0.0
    for xs in data:
        total += train(xs, 0.01)
    if epoch % 10 == 0:
        print(epoch, total)
