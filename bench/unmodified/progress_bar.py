"""tqdm around the range, or what stands for it where it is not installed."""

import sys

from engine import MLP, SGD, digest

try:
    from tqdm import tqdm
except ImportError:

    def tqdm(iterable, **options):
        return iterable


model = MLP([3, 8, 1], 13)
optimiser = SGD(model.parameters(), 0.05)
data = [([(k * j % 7) / 7 for j in (1, 2, 3)], (k % 5) / 5) for k in range(8)]
losses = []
for _ in tqdm(range(int(sys.argv[1]) if len(sys.argv) > 1 else 300), disable=True):
    loss = sum((model(x)[0] - y) ** 2 for x, y in data)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    losses.append(loss.data)
print(losses[::20], losses[-1], digest(model.parameters()))
