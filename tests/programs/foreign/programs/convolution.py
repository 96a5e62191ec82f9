"""Convolutional network on small images: a global tape that is replayed backwards and cleared in each step."""

import math
import random

TAPE = []


class Var:
    __slots__ = ("val", "d")

    def __init__(self, val):
        self.val = val
        self.d = 0.0

    def __add__(self, other):
        if isinstance(other, (int, float)):
            out = Var(self.val + other)

            def back():
                self.d += out.d

        else:
            out = Var(self.val + other.val)

            def back():
                self.d += out.d
                other.d += out.d

        TAPE.append(back)
        return out

    def __mul__(self, other):
        if isinstance(other, (int, float)):
            out = Var(self.val * other)

            def back():
                self.d += other * out.d

        else:
            out = Var(self.val * other.val)

            def back():
                self.d += other.val * out.d
                other.d += self.val * out.d

        TAPE.append(back)
        return out

    __radd__ = __add__
    __rmul__ = __mul__

    def __sub__(self, other):
        return self + other * -1.0

    def relu(self):
        out = Var(self.val if self.val > 0 else 0.0)

        def back():
            self.d += out.d if self.val > 0 else 0.0

        TAPE.append(back)
        return out


def logsumexp(xs):
    m = max(x.val for x in xs)
    exps = [math.exp(x.val - m) for x in xs]
    total = sum(exps)
    out = Var(m + math.log(total))

    def back():
        for x, e in zip(xs, exps):
            x.d += e / total * out.d

    TAPE.append(back)
    return out


def maximum(a, b):
    out = Var(max(a.val, b.val))

    def back():
        first = 1.0 if a.val >= b.val else 0.0
        a.d += first * out.d
        b.d += (1.0 - first) * out.d

    TAPE.append(back)
    return out


def backward(loss):
    loss.d = 1.0
    while TAPE:
        TAPE.pop()()


random.seed(8)
SIZE, CHANNELS, CLASSES = 6, 2, 3
kernels = [[[Var(random.uniform(-0.5, 0.5)) for _ in range(3)] for _ in range(3)] for _ in range(CHANNELS)]
kernel_biases = [Var(0.0) for _ in range(CHANNELS)]
dense = [[Var(random.uniform(-0.5, 0.5)) for _ in range(CHANNELS * 4)] for _ in range(CLASSES)]
dense_biases = [Var(0.0) for _ in range(CLASSES)]
params = [w for k in kernels for row in k for w in row] + kernel_biases
params += [w for row in dense for w in row] + dense_biases


def conv2d(image, kernel, bias):
    n, k = len(image), len(kernel)
    out = []
    for i in range(n - k + 1):
        row = []
        for j in range(n - k + 1):
            acc = bias
            for di in range(k):
                for dj in range(k):
                    acc = acc + kernel[di][dj] * image[i + di][j + dj]
            row.append(acc.relu())
        out.append(row)
    return out


def max_pool(image):
    return [
        [
            maximum(maximum(image[i][j], image[i][j + 1]), maximum(image[i + 1][j], image[i + 1][j + 1]))
            for j in range(0, len(image[i]), 2)
        ]
        for i in range(0, len(image), 2)
    ]


def step(image, label, lr=0.1):
    features = []
    for kernel, bias in zip(kernels, kernel_biases):
        for row in max_pool(conv2d(image, kernel, bias)):
            features.extend(row)
    logits = [sum((w * f for w, f in zip(row, features)), b) for row, b in zip(dense, dense_biases)]
    loss = logsumexp(logits)
    for k, logit in enumerate(logits):
        loss = loss - logit * (1.0 if k == label else 0.0)
    backward(loss)
    for p in params:
        p.val -= lr * p.d
        p.d = 0.0
    return loss.val


def make():
    rng = random.Random(9)
    calls = [([[rng.random() for _ in range(SIZE)] for _ in range(SIZE)], rng.randrange(CLASSES)) for _ in range(5)]
    return step, calls, lambda: ([(p.val, p.d) for p in params], len(TAPE))
