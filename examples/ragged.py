"""Learn to batch sequences of different lengths in one step, which becomes loops with a table of lengths.

A recurrent network learns whether most of some numbers are positive: a sequence is a list, and a batch a list of lists.

Run: python examples/ragged.py
"""

import os
import random

import mgjit
from mgjit import nn

STEPS = int(os.environ.get("STEPS", "1500"))
draw = random.Random(5)
LENGTHS = [1, 3, 3, 3, 5, 5, 7, 7, 9, 11]
SIZE = 8

cell = nn.Layer(SIZE + 1, SIZE, nonlin=False)
readout = nn.Neuron(SIZE, nonlin=False)
parameters = cell.parameters() + readout.parameters()


def mostly_positive(numbers):
    state = [0.0] * SIZE
    for x in numbers:
        state = [mgjit.tanh(h) for h in cell([x, *state])]
    return readout(state)


@mgjit.compile
def train_step(batch, targets, rate):
    errors = [mostly_positive(numbers) - target for numbers, target in zip(batch, targets)]
    loss = sum(e * e for e in errors) / len(errors)
    for p in parameters:
        p.grad = 0.0
    loss.backward()
    for p in parameters:
        p.data -= rate * mgjit.maximum(mgjit.minimum(p.grad, 1.0), -1.0)
    return loss


total = 0.0
for step in range(1, STEPS + 1):
    batch = [[draw.uniform(-1.0, 1.0) for _ in range(length)] for length in LENGTHS]
    targets = [float(2 * sum(x > 0 for x in numbers) > len(numbers)) for numbers in batch]
    total += train_step(batch, targets, 0.1)
    if step % (STEPS // 3) == 0:
        print(f"step {step:5}  mean loss {3 * total / STEPS:.4f}")
        total = 0.0

print(f"{train_step.stats.records:,} records became {train_step.stats.statements} statements")
