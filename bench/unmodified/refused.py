"""A loop that trains and cannot be compiled: what it computes depends on the numbers, and it keeps a log inside."""

import sys

from engine import MLP, digest

log = []


def clipped(loss):
    if loss.data > 0.5:
        log.append(loss.data)
        return loss * 0.5
    return loss


model = MLP([2, 8, 1], 15)
data = [([k / 6, k % 2], k % 3) for k in range(6)]
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 300):
    loss = clipped(sum((model(x)[0] - y) ** 2 for x, y in data))
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= 0.02 * p.grad
print(len(log), digest(model.parameters()))
