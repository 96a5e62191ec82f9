"""Learn to find out which lines of a step take the time, and what became of them.

The page is written to step.html; open it in a browser.

Run: python examples/report.py
"""

import os
import random

import mgjit
from mgjit import nn

STEPS = int(os.environ.get("STEPS", "500"))
model = nn.MLP(64, [32, 10])
moments = mgjit.zeros(len(model.parameters()))


@mgjit.compile
def train_step(pixels, label, rate):
    scores = model(pixels)
    loss = sum((s - t) ** 2 for s, t in zip(scores, mgjit.one_hot(label, 10)))
    model.zero_grad()
    loss.backward()
    for i, p in enumerate(model.parameters()):
        moments[i] = 0.9 * moments[i] + p.grad
        p.data -= rate * moments[i]
    return loss


draw = random.Random(1)
for _ in range(STEPS):
    train_step([draw.random() for _ in range(64)], draw.randrange(10), 0.001)

# %%
report = train_step.report("step.html")
print(report)
