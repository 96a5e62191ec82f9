"""A last batch that is smaller than the others."""

import sys

from engine import MLP, digest

model = MLP([2, 8, 1], 1)
data = [([k / 20, (k * 7 % 20) / 20], (k % 3) / 3) for k in range(20)]


def batches(size):
    return [data[k : k + size] for k in range(0, len(data), size)]


for epoch in range(int(sys.argv[1]) if len(sys.argv) > 1 else 60):
    for batch in batches(8):
        xs = [x for x, _ in batch]
        ys = [y for _, y in batch]
        outs = [model(x)[0] for x in xs]
        loss = sum((o - y) ** 2 for o, y in zip(outs, ys)) / len(batch)
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.1 * p.grad
    print(epoch, len(batch), loss.data)
print(digest(model.parameters()))
