"""Training that diverges until exp overflows; the script notices, and goes on with a smaller rate."""

import sys

from engine import MLP, digest

model = MLP([1, 4, 1], 3)
rate, failures = 50.0, 0
for step in range(int(sys.argv[1]) if len(sys.argv) > 1 else 200):
    try:
        loss = sum(((model([x / 4])[0]).exp() - x) ** 2 for x in range(5))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
    except OverflowError as error:
        failures += 1
        print(step, "overflow", error.args[-1])
        for p in model.parameters():
            p.data = 0.1 * (1 if p.data > 0 else -1)
        rate *= 0.05
    if step % 10 == 0:
        print(step, loss.data, rate)
print(failures, digest(model.parameters()))
