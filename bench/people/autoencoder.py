"""An autoencoder with vectors and matrices as lists, and functions for their algebra."""
import math
import random


def rand_matrix(rows, cols, scale):
    return [[random.uniform(-scale, scale) for _ in range(cols)] for _ in range(rows)]


def matvec(M, v):
    return [sum(m * x for m, x in zip(row, v)) for row in M]


def transpose_matvec(M, v):
    return [sum(M[i][j] * v[i] for i in range(len(M))) for j in range(len(M[0]))]


def add_outer(M, a, b, scale):
    for i in range(len(M)):
        for j in range(len(M[i])):
            M[i][j] += scale * a[i] * b[j]


class Autoencoder:
    def __init__(self, n, hidden):
        self.enc = rand_matrix(hidden, n, 0.5)
        self.dec = rand_matrix(n, hidden, 0.5)

    def encode(self, x):
        return [math.tanh(z) for z in matvec(self.enc, x)]

    def train_step(self, x, lr):
        h = self.encode(x)
        out = matvec(self.dec, h)
        err = [o - t for o, t in zip(out, x)]
        dh = transpose_matvec(self.dec, err)
        dz = [d * (1 - a * a) for d, a in zip(dh, h)]
        add_outer(self.dec, err, h, -lr)
        add_outer(self.enc, dz, x, -lr)
        return sum(e * e for e in err)


random.seed(8)
data = []
for _ in range(80):
    a, b = random.uniform(-1, 1), random.uniform(-1, 1)
    data.append([a, b, a * b, a - b, 0.5 * a + b, math.sin(a), math.cos(b), a * a])
model = Autoencoder(8, 4)
for epoch in range(2600):
    random.shuffle(data)
    total = 0.0
    for x in data:
        total += model.train_step(x, 0.02)
    if epoch % 400 == 0:
        print("epoch {}: reconstruction {:.6f}".format(epoch, total / len(data)))
print(model.encode(data[0]))
