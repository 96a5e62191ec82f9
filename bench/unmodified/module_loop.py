"""Everything at module level: full batches, a decaying rate, prints now and then."""

import random
import sys

from engine import MLP, digest

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
random.seed(3)
model = MLP([2, 12, 1])
xs = [[random.uniform(-1, 1), random.uniform(-1, 1)] for _ in range(12)]
ys = [x * y for x, y in xs]

for step in range(steps):
    predictions = [model(x)[0] for x in xs]
    loss = sum((p - y) ** 2 for p, y in zip(predictions, ys))
    model.zero_grad()
    loss.backward()
    rate = 0.01 * (1 - step / steps)
    for p in model.parameters():
        p.data -= rate * p.grad
    if step % 20 == 0:
        print(f"step {step} loss {loss.data}")
print(loss, digest(model.parameters()))
