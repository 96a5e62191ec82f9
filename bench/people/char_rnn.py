"""A character RNN by hand over lines of many lengths, with backpropagation through time."""
import math
import random

random.seed(10)
words = "the a cat dog bird tree river sees likes eats runs sleeps near under over and quickly slowly".split()
lines = [" ".join(random.choices(words, k=random.randint(2, 5)))[:20] for _ in range(40)]
chars = sorted(set("".join(lines)) | {"."})
stoi = {c: i for i, c in enumerate(chars)}
V, H = len(chars), 16


def mat(r, c):
    return [[random.gauss(0, 0.1) for _ in range(c)] for _ in range(r)]


Wxh, Whh, Why = mat(H, V), mat(H, H), mat(V, H)
bh, by = [0.0] * H, [0.0] * V


def train_line(ids, targets, lr):
    hs, ps, loss = [[0.0] * H], [], 0.0
    for t, i in enumerate(ids):
        h = [math.tanh(Wxh[j][i] + sum(Whh[j][k] * hs[-1][k] for k in range(H)) + bh[j]) for j in range(H)]
        ys = [sum(Why[v][k] * h[k] for k in range(H)) + by[v] for v in range(V)]
        m = max(ys)
        es = [math.exp(y - m) for y in ys]
        z = sum(es)
        ps.append([e / z for e in es])
        hs.append(h)
        loss -= math.log(ps[t][targets[t]])
    dh_next = [0.0] * H
    gxh = [[0.0] * V for _ in range(H)]
    ghh = [[0.0] * H for _ in range(H)]
    ghy = [[0.0] * H for _ in range(V)]
    gbh, gby = [0.0] * H, [0.0] * V
    for t in reversed(range(len(ids))):
        dy = list(ps[t])
        dy[targets[t]] -= 1.0
        h, prev = hs[t + 1], hs[t]
        for v in range(V):
            gby[v] += dy[v]
            for k in range(H):
                ghy[v][k] += dy[v] * h[k]
        dh = [sum(Why[v][k] * dy[v] for v in range(V)) + dh_next[k] for k in range(H)]
        raw = [(1 - h[k] * h[k]) * dh[k] for k in range(H)]
        for k in range(H):
            gbh[k] += raw[k]
            gxh[k][ids[t]] += raw[k]
            for j in range(H):
                ghh[k][j] += raw[k] * prev[j]
        dh_next = [sum(Whh[j][k] * raw[j] for j in range(H)) for k in range(H)]
    for w, g in ((Wxh, gxh), (Whh, ghh), (Why, ghy)):
        for wr, gr in zip(w, g):
            for c in range(len(wr)):
                wr[c] -= lr * gr[c]
    for b, g in ((bh, gbh), (by, gby)):
        for c in range(len(b)):
            b[c] -= lr * g[c]
    return loss / len(ids)


smooth = math.log(V)
for iteration in range(1800):
    line = random.choice(lines) + "."
    ids = [stoi[c] for c in line]
    loss = train_line(ids[:-1], ids[1:], 0.05)
    smooth = smooth * 0.99 + loss * 0.01
    if iteration % 300 == 0:
        print(f"iter {iteration}, loss {smooth:.6f}")
print(bh[:4])
