"""Vanilla RNN that predicts the next value of a noisy sine wave. No numpy."""
import math
import random

random.seed(11)

HIDDEN = 10
SEQ = 12
LR = 0.02


def rand_matrix(rows, cols, scale=0.3):
    return [[random.gauss(0, scale) for _ in range(cols)] for _ in range(rows)]


def matvec(m, v):
    return [sum(a * b for a, b in zip(row, v)) for row in m]


def vadd(*vs):
    return [sum(parts) for parts in zip(*vs)]


class ElmanRNN:
    def __init__(self, n_in, n_hidden, n_out):
        self.Wxh = rand_matrix(n_hidden, n_in)
        self.Whh = rand_matrix(n_hidden, n_hidden)
        self.Why = rand_matrix(n_out, n_hidden)
        self.bh = [0.0] * n_hidden
        self.by = [0.0] * n_out
        self.n_hidden = n_hidden

    def forward(self, xs):
        h = [0.0] * self.n_hidden
        self.hs = [h]
        self.xs = xs
        for x in xs:
            z = vadd(matvec(self.Wxh, x), matvec(self.Whh, h), self.bh)
            h = [math.tanh(v) for v in z]
            self.hs.append(h)
        return vadd(matvec(self.Why, h), self.by)

    def backward(self, dy, lr):
        n = self.n_hidden
        dWhh = [[0.0] * n for _ in range(n)]
        dWxh = [[0.0] * len(self.xs[0]) for _ in range(n)]
        dbh = [0.0] * n
        last = self.hs[-1]
        dh = [sum(self.Why[o][j] * dy[o] for o in range(len(dy))) for j in range(n)]
        for o in range(len(dy)):
            for j in range(n):
                self.Why[o][j] -= lr * dy[o] * last[j]
            self.by[o] -= lr * dy[o]
        for t in reversed(range(len(self.xs))):
            h, prev, x = self.hs[t + 1], self.hs[t], self.xs[t]
            dz = [dh[j] * (1 - h[j] * h[j]) for j in range(n)]
            for j in range(n):
                dbh[j] += dz[j]
                for k in range(len(x)):
                    dWxh[j][k] += dz[j] * x[k]
                for k in range(n):
                    dWhh[j][k] += dz[j] * prev[k]
            dh = [sum(self.Whh[j][k] * dz[j] for j in range(n)) for k in range(n)]
        for j in range(n):
            self.bh[j] -= lr * max(-1.0, min(1.0, dbh[j]))
            for k in range(len(self.xs[0])):
                self.Wxh[j][k] -= lr * max(-1.0, min(1.0, dWxh[j][k]))
            for k in range(n):
                self.Whh[j][k] -= lr * max(-1.0, min(1.0, dWhh[j][k]))


wave = [math.sin(i * 0.25) + random.gauss(0, 0.05) for i in range(300)]
samples = [([[v] for v in wave[i:i + SEQ]], wave[i + SEQ]) for i in range(len(wave) - SEQ)]
rnn = ElmanRNN(1, HIDDEN, 1)

for epoch in range(20):
    random.shuffle(samples)
    total = 0.0
    for xs, target in samples:
        out = rnn.forward(xs)
        err = out[0] - target
        total += err * err
        rnn.backward([err], LR)
    print(f"epoch {epoch}  mse {total / len(samples):.5f}")
