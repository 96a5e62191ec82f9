"""An ensemble: the same step for many learning rates and seeds at once, on all cores.

Each member has parameters of its own, and the numbers that the step would have alone.

Run: python examples/ensemble.py
"""

import os
import random

import mgjit
from mgjit import nn

STEPS = int(os.environ.get("STEPS", "3000"))
RATES, SEEDS = [0.001, 0.01, 0.1, 0.5], [1, 2, 3]
MEMBERS = [(rate, seed) for rate in RATES for seed in SEEDS]
model = nn.MLP(2, [12, 1])


@mgjit.compile
def train_step(x, y, target, rate):
    error = model([x, y]) - target
    loss = error * error
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= rate * p.grad
    return loss


def start(member):
    """The network of a member's seed."""
    fresh = nn.MLP(2, [12, 1], seed=MEMBERS[member][1])
    for p, q in zip(model.parameters(), fresh.parameters()):
        p.data = q.data


draw = random.Random(1)
points = [(draw.uniform(-1, 1), draw.uniform(-1, 1)) for _ in range(STEPS)]
inside = [float(x * x + y * y < 0.5) for x, y in points]
xs, ys = [x for x, _ in points], [y for _, y in points]

sweep = mgjit.ensemble(train_step, len(MEMBERS), init=start)
losses = sweep.loop(xs, ys, inside, mgjit.each([rate for rate, _ in MEMBERS]))

last = max(1, STEPS // 10)
print(f"mean loss of the last {last} steps")
for rate in RATES:
    means = [sum(column[-last:]) / last for (one, _), column in zip(MEMBERS, losses) if one == rate]
    print(f"rate {rate:<6}", "  ".join(f"{mean:8.4f}" for mean in means))
