"""Training ends when the validation loss has not fallen for a while, or the loss is small."""

import random
import sys

from engine import MLP, SGD, digest

limit = int(sys.argv[1]) if len(sys.argv) > 1 else 300
rng = random.Random(11)
points = [[rng.uniform(-1, 1)] for _ in range(20)]
train, valid = points[:12], points[12:]
model = MLP([1, 10, 1], 9)
optimiser = SGD(model.parameters(), 0.01)
best, patience = float("inf"), 0
for epoch in range(limit):
    loss = sum((model(x)[0] - x[0] ** 3) ** 2 for x in train)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if loss.data < 1e-4:
        print("small")
        break
    if epoch % 10:
        continue
    error = sum((model(x)[0].data - x[0] ** 3) ** 2 for x in valid)
    print(epoch, loss.data, error)
    if error < best - 1e-6:
        best, patience = error, 0
    else:
        patience += 1
        if patience == 3:
            print("stopped")
            break
else:
    print("limit")
print(epoch, best, digest(model.parameters()))
