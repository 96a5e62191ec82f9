"""A character LSTM without autograd, after min-char-rnn: lists of floats, backpropagation through time, Adagrad."""

import math
import os
import random

import mgjit

STEPS = int(os.environ.get("STEPS", "120"))
text = "she sells sea shells by the sea shore; the shells she sells are sea shells for sure. "
chars = sorted(set(text))
V, H, T = len(chars), 20, 20
rng = random.Random(99)


def randn(rows, columns):
    return [[rng.gauss(0, 0.15) for _ in range(columns)] for _ in range(rows)]


def zeros(rows, columns):
    return [[0.0] * columns for _ in range(rows)]


Wx, Wh, Wy = randn(4 * H, V), randn(4 * H, H), randn(V, H)
weights = [Wx, Wh, Wy]
memory = [zeros(4 * H, V), zeros(4 * H, H), zeros(V, H)]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


@mgjit.compile
def step(xs, ys, h, c, lr):
    """Forward over a window, backward through it, one Adagrad update; the loss and the state after the window."""
    cache, loss = [], 0.0
    for x, y in zip(xs, ys):
        a = [sum(w * v for w, v in zip(wx, x)) + sum(w * v for w, v in zip(wh, h)) for wx, wh in zip(Wx, Wh)]
        i, f, o = [[sigmoid(v) for v in a[k * H : (k + 1) * H]] for k in range(3)]
        g = [math.tanh(v) for v in a[3 * H :]]
        before_h, before_c = h, c
        c = [fk * ck + ik * gk for fk, ck, ik, gk in zip(f, c, i, g)]
        tc = [math.tanh(v) for v in c]
        h = [ok * t for ok, t in zip(o, tc)]
        scores = [sum(w * v for w, v in zip(row, h)) for row in Wy]
        exps = [math.exp(s) for s in scores]
        total = sum(exps)
        p = [e / total for e in exps]
        loss -= math.log(sum(pk * yk for pk, yk in zip(p, y)))
        cache.append((x, y, i, f, o, g, before_h, before_c, tc, h, p))
    gradients = [zeros(4 * H, V), zeros(4 * H, H), zeros(V, H)]
    dWx, dWh, dWy = gradients
    dh_next, dc_next = [0.0] * H, [0.0] * H
    for x, y, i, f, o, g, before_h, before_c, tc, ht, p in reversed(cache):
        dy = [pk - yk for pk, yk in zip(p, y)]
        for k in range(V):
            for j in range(H):
                dWy[k][j] += dy[k] * ht[j]
        dh = [sum(Wy[k][j] * dy[k] for k in range(V)) + dh_next[j] for j in range(H)]
        dc = [dh[j] * o[j] * (1 - tc[j] * tc[j]) + dc_next[j] for j in range(H)]
        da = [dc[j] * g[j] * i[j] * (1 - i[j]) for j in range(H)]
        da += [dc[j] * before_c[j] * f[j] * (1 - f[j]) for j in range(H)]
        da += [dh[j] * tc[j] * o[j] * (1 - o[j]) for j in range(H)]
        da += [dc[j] * i[j] * (1 - g[j] * g[j]) for j in range(H)]
        for r in range(4 * H):
            for k in range(V):
                dWx[r][k] += da[r] * x[k]
            for j in range(H):
                dWh[r][j] += da[r] * before_h[j]
        dh_next = [sum(Wh[r][j] * da[r] for r in range(4 * H)) for j in range(H)]
        dc_next = [dc[j] * f[j] for j in range(H)]
    for w, dw, mem in zip(weights, gradients, memory):
        for wr, dr, mr in zip(w, dw, mem):
            for k in range(len(wr)):
                d = max(-5.0, min(5.0, dr[k]))
                mr[k] += d * d
                wr[k] -= lr * d / math.sqrt(mr[k] + 1e-8)
    return loss, h, c


def one_hot(c):
    return [1.0 if c == other else 0.0 for other in chars]


h, c, smooth, p = [0.0] * H, [0.0] * H, T * math.log(V), 0
for n in range(STEPS):
    if p + T + 1 > len(text):
        h, c, p = [0.0] * H, [0.0] * H, 0
    window = text[p : p + T + 1]
    loss, h, c = step([one_hot(ch) for ch in window[:-1]], [one_hot(ch) for ch in window[1:]], h, c, 0.1)
    smooth = 0.99 * smooth + 0.01 * loss
    p += T
    if n % 30 == 0 or n == STEPS - 1:
        print(f"iter {n}, loss: {smooth!r}")
print("checksum", sum(map(sum, Wx)), sum(map(sum, Wh)), sum(map(sum, Wy)), h)
