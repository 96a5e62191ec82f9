"""Loops as people write them: statements that share lines, early exits, clipped gradients, globals, closures, `:=`."""

import math
import sys

from engine import MLP, SGD, digest

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
data = [([k / 10, 1 - k / 10], (k / 10) ** 2) for k in range(10)]
steps, last = 0, None


def fresh():
    model = MLP([2, 6, 1], 3)
    return model, SGD(model.parameters(), 0.05)


def clipped(model, optimiser):
    for epoch in range(epochs):
        loss = sum((model(x)[0] - y) ** 2 for x, y in data)
        optimiser.zero_grad()
        loss.backward()
        norm = math.sqrt(sum(p.grad**2 for p in model.parameters()))
        if norm > 1.0:
            for p in model.parameters():
                p.grad *= 1.0 / norm
        optimiser.step()
        if epoch % 20 == 0:
            print(epoch, norm)
    return norm


def skipping(model, optimiser):
    global steps, last  # noqa: PLW0603
    skipped, best = 0, math.inf
    for epoch in range(epochs // 4):
        for x, y in data:
            last = (model(x)[0] - y) ** 2
            if last.data < 1e-3: skipped += 1; continue  # fmt: skip # noqa: E701, E702
            if last.data < best:
                best, at = last.data, (epoch, steps)
            optimiser.zero_grad()
            last.backward(); optimiser.step()  # fmt: skip # noqa: E702
            steps += 1
        assert best == best, "nan"
    return skipped, best, at


def closures(model, optimiser):
    loss, count = None, 0

    def show():
        print(count, loss.data)

    def train(n):
        nonlocal loss, count
        while (count := count + 1) < n:
            loss = sum((d := model(x)[0] - y) * d for x, y in data)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if count % 20 == 0:
                show()
        return d.data

    return train(epochs), loss.data


for function in (clipped, skipping, closures):
    model, optimiser = fresh()
    print(function.__name__, function(model, optimiser), digest(model.parameters()))
print(steps, last.data)
model, optimiser = fresh()
for _ in range(epochs): loss = sum((model(x)[0] - y) ** 2 for x, y in data); loss.backward(); optimiser.step(); optimiser.zero_grad()  # fmt: skip # noqa: E501, E701, E702
for _ in range(epochs):
    loss = 0
    for x, y in data:
        difference = model(x)[0] - y
        loss = difference * difference + loss
    if math.isnan(loss.data) or loss.data > 1e3: break  # fmt: skip # noqa: E701
    optimiser.zero_grad(); loss.backward(); optimiser.step(); rate = optimiser  # fmt: skip # noqa: E702
print(loss.data, difference.data, x, y, digest(model.parameters()))
