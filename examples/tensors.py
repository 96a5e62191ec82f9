"""Learn to use tensors: digits in batches, with whole matrices instead of scalars.

Each operation on tensors is one record of the trace, however wide it is; outside of the step it runs at once.

Run: python examples/tensors.py
"""

import os
import random

import mgjit
from mgjit import tensor as T
from mgjit.data import digits

STEPS = int(os.environ.get("STEPS", "600"))
BATCH, HIDDEN = 32, 48
data = digits()
draw = random.Random(1)
w1 = T.uniform((data.pixels, HIDDEN), -0.2, 0.2, requires_grad=True, generator=draw)
w2 = T.uniform((HIDDEN, 10), -0.2, 0.2, requires_grad=True, generator=draw)
b1, b2 = T.zeros(HIDDEN, requires_grad=True), T.zeros(10, requires_grad=True)
parameters = [w1, b1, w2, b2]


def scores(x):
    return T.tanh(x @ w1 + b1) @ w2 + b2


@mgjit.compile
def train_step(x, labels, rate):
    loss = -(T.log_softmax(scores(x)) * T.one_hot(labels, 10)).sum() / BATCH
    for p in parameters:
        p.zero_grad()
    loss.backward()
    with mgjit.no_grad():
        for p in parameters:
            p -= rate * p.grad
    return loss


def tensors(split, places):
    """Images and labels."""
    rows = [[pixel / data.scale for pixel in split.images[k]] for k in places]
    return T.asarray(rows), T.asarray([split.labels[k] for k in places])


for step in range(1, STEPS + 1):
    x, labels = tensors(data.train, draw.sample(range(len(data.train)), BATCH))
    loss = train_step(x, labels, 0.5 * 0.998**step)
    if step % max(1, STEPS // 4) == 0:
        print(f"step {step:4}  loss {float(loss):.4f}")

x, labels = tensors(data.test, range(len(data.test)))
with mgjit.no_grad():
    found = scores(x).argmax(axis=-1)
right = sum(a == b for a, b in zip(found.tolist(), labels.tolist()))
print(f"right {right / len(data.test):.1%} of {len(data.test)}; {train_step.stats.records} records in the trace")
