"""Tiny 1-D convolutional network (conv -> relu -> mean pool -> linear -> sigmoid), gradients written out."""
import math
import random

random.seed(6)
KERNELS, WIDTH, LENGTH = 6, 5, 32


def make_signal():
    label = random.randint(0, 1)
    freq = 0.9 if label else 0.35
    phase = random.random() * 6
    return [math.sin(freq * t + phase) + random.gauss(0, 0.2) for t in range(LENGTH)], label


train = [make_signal() for _ in range(200)]
test = [make_signal() for _ in range(100)]
kernels = [[random.uniform(-0.5, 0.5) for _ in range(WIDTH)] for _ in range(KERNELS)]
kbias = [0.0 for _ in range(KERNELS)]
fc = [random.uniform(-0.5, 0.5) for _ in range(KERNELS)]
fbias = 0.0


def forward(signal):
    maps, pooled = [], []
    for k in range(KERNELS):
        fmap = []
        for t in range(LENGTH - WIDTH + 1):
            acc = kbias[k]
            for i in range(WIDTH):
                acc += kernels[k][i] * signal[t + i]
            fmap.append(acc if acc > 0 else 0.0)
        maps.append(fmap)
        pooled.append(sum(fmap) / len(fmap))
    z = fbias
    for k in range(KERNELS):
        z += fc[k] * pooled[k]
    return maps, pooled, 1 / (1 + math.exp(-z))


def accuracy(samples):
    hits = 0
    for signal, label in samples:
        _, _, p = forward(signal)
        if (p > 0.5) == bool(label):
            hits += 1
    return hits / len(samples)


lr = 0.3
for epoch in range(70):
    random.shuffle(train)
    running = 0.0
    for signal, label in train:
        maps, pooled, p = forward(signal)
        running += -math.log(max(p if label else 1 - p, 1e-9))
        dz = p - label
        fbias -= lr * dz
        for k in range(KERNELS):
            dpool = dz * fc[k]
            fc[k] -= lr * dz * pooled[k]
            n = len(maps[k])
            for t in range(n):
                if maps[k][t] > 0:
                    d = dpool / n
                    for i in range(WIDTH):
                        kernels[k][i] -= lr * d * signal[t + i]
                    kbias[k] -= lr * d
    if epoch % 10 == 9:
        print(f"[{epoch + 1:02d}] loss={running / len(train):.5f} acc={accuracy(test):.3f}")
