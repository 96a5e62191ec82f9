"""After some steps the loss divides by zero: an exception with a traceback, and exit code 1."""

import sys

from engine import MLP

model = MLP([1, 6, 1], 2)
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
for step in range(steps):
    scale = float(steps - 10 - step)
    prediction = model([0.5])[0]
    loss = (prediction - 0.25) ** 2 / scale
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= 0.01 * p.grad
    if step % 10 == 0:
        print(step, loss.data, flush=True)
