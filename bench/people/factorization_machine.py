"""Second order factorization machine trained with SGD on synthetic clicks."""
import math
import random


class FactorizationMachine:
    def __init__(self, n_features, k=4, lr=0.02, reg=1e-4, seed=0):
        rng = random.Random(seed)
        self.w0 = 0.0
        self.w = [0.0] * n_features
        self.V = [[rng.gauss(0, 0.05) for _ in range(k)] for _ in range(n_features)]
        self.k, self.lr, self.reg = k, lr, reg

    def score(self, idx, val):
        s = self.w0
        for i, x in zip(idx, val):
            s += self.w[i] * x
        self.sums = []
        for f in range(self.k):
            a = b = 0.0
            for i, x in zip(idx, val):
                t = self.V[i][f] * x
                a += t
                b += t * t
            self.sums.append(a)
            s += 0.5 * (a * a - b)
        return s

    def fit_one(self, idx, val, y):
        s = self.score(idx, val)
        p = 1.0 / (1.0 + math.exp(-s))
        g = p - y
        self.w0 -= self.lr * g
        for i, x in zip(idx, val):
            self.w[i] -= self.lr * (g * x + self.reg * self.w[i])
            for f in range(self.k):
                grad = g * (x * self.sums[f] - self.V[i][f] * x * x)
                self.V[i][f] -= self.lr * (grad + self.reg * self.V[i][f])
        return -math.log(p if y == 1 else 1 - p)


random.seed(33)
users, items, ctx = 40, 60, 10
truth_u = [random.gauss(0, 1) for _ in range(users)]
truth_i = [random.gauss(0, 1) for _ in range(items)]
rows = []
for _ in range(4000):
    u, i, c = random.randrange(users), random.randrange(items), random.randrange(ctx)
    y = 1 if truth_u[u] * truth_i[i] + 0.1 * c - 0.5 + random.gauss(0, 0.3) > 0 else 0
    rows.append(([u, users + i, users + items + c], [1.0, 1.0, 1.0], y))

fm = FactorizationMachine(users + items + ctx)
for epoch in range(100):
    loss = 0.0
    for idx, val, y in rows:
        loss += fm.fit_one(idx, val, y)
    if epoch % 10 == 9:
        print("epoch", epoch, "logloss", round(loss / len(rows), 6))
