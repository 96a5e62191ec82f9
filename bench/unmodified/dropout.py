"""Random numbers inside of the loop: dropout and noise."""

import random
import sys

from engine import MLP, digest

random.seed(99)
model = MLP([3, 8, 1], 18)
data = [([random.random() for _ in range(3)], random.random()) for _ in range(6)]
for step in range(int(sys.argv[1]) if len(sys.argv) > 1 else 300):
    loss = 0
    for x, y in data:
        noisy = [v * (random.random() < 0.8) + random.gauss(0, 0.01) for v in x]
        loss = (model(noisy)[0] - y) ** 2 + loss
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= 0.02 * p.grad
    if step % 30 == 0:
        print(step, loss.data)
print(random.random(), digest(model.parameters()))
