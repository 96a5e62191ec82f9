"""Learn to train many networks side by side, on all cores: learning rates x seeds on handwritten digits, and a picture.

Each member begins with a network of its own seed, and has the numbers that the step would have alone.  The picture has
a tile for each member: how many test digits it gets right.

Run: python examples/ensemble.py
"""

import os
import random
from pathlib import Path

import mgjit
from mgjit import nn
from mgjit.data import digits

STEPS = int(os.environ.get("STEPS", "6000"))
RATES, SEEDS = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1], [1, 2, 3, 4]
MEMBERS = [(rate, seed) for rate in RATES for seed in SEEDS]
data = digits()
model = nn.MLP(data.pixels, [16, 10])


@mgjit.compile
def train_step(pixels, label, rate):
    scores = model([p / 16 for p in pixels])
    exps = [mgjit.exp(s) for s in scores]
    loss = mgjit.log(sum(exps)) - sum(s * y for s, y in zip(scores, mgjit.one_hot(label, 10)))
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= rate * p.grad
    return loss


@mgjit.compile
def predict(pixels):
    return model([p / 16 for p in pixels])


def start(member):
    """The network of a member's seed."""
    fresh = nn.MLP(data.pixels, [16, 10], seed=MEMBERS[member][1])
    for p, q in zip(model.parameters(), fresh.parameters()):
        p.data = q.data


sweep = mgjit.ensemble(train_step, len(MEMBERS), init=start)
rows = random.Random(1).choices(range(len(data.train.labels)), k=STEPS)
images, labels = [data.train.images[k] for k in rows], [data.train.labels[k] for k in rows]
sweep.loop(images, labels, mgjit.each([rate for rate, _ in MEMBERS]))

right = []
for member in sweep:
    with member:  # the model is that of the member
        columns = zip(*predict.loop(data.test.images))
        found = [max(range(10), key=scores.__getitem__) for scores in columns]
    right.append(sum(map(int.__eq__, found, data.test.labels)) / len(found))

tiles = []
for k, share in enumerate(right):
    x, y = 90 + 80 * (k // len(SEEDS)), 40 + 40 * (k % len(SEEDS))
    tiles.append(f'<rect x="{x}" y="{y}" width="78" height="38" fill="hsl(210, 70%, {100 - 45 * share:.0f}%)"/>')
    tiles.append(f'<text x="{x + 39}" y="{y + 24}">{share:.1%}</text>')
tiles += [f'<text x="{129 + 80 * k}" y="30">rate {rate:g}</text>' for k, rate in enumerate(RATES)]
tiles += [f'<text x="50" y="{64 + 40 * k}">seed {seed}</text>' for k, seed in enumerate(SEEDS)]
head = '<svg xmlns="http://www.w3.org/2000/svg" width="590" height="220" font-family="sans-serif" font-size="13" '
Path("sweep.svg").write_text(f'{head}text-anchor="middle">{"".join(tiles)}</svg>', encoding="utf-8")

for rate in RATES:
    print(f"rate {rate:<7}", "  ".join(f"{share:6.1%}" for (one, _), share in zip(MEMBERS, right) if one == rate))
print(f"sweep.svg shows all {len(MEMBERS)} networks")
