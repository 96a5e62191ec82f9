"""Learn to train an epoch in one call: `.loop` over the 1,797 digits that come with mgjit, or over MNIST.

`.loop` runs one step per image, a whole epoch in a single call into C. Pixels are bytes, which are read where they are.

Run: python examples/mnist.py [folder]
"""

import os
import random
import sys
from pathlib import Path

import mgjit
from mgjit import nn
from mgjit.data import digits, mnist

data = mnist(Path(sys.argv[1])) if len(sys.argv) > 1 else digits()
EPOCHS = int(os.environ.get("STEPS", "8"))
model = nn.MLP(data.pixels, [40, 10])


@mgjit.compile
def train_step(pixels, label, rate):
    scores = model([pixel * (1 / data.scale) for pixel in pixels])
    loss = sum((s - t) * (s - t) for s, t in zip(scores, mgjit.one_hot(label, 10)))
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= rate * p.grad
    return loss


def scores(pixels):
    return model([pixel * (1 / data.scale) for pixel in pixels])


draw = random.Random(1)
for epoch in range(EPOCHS):
    order = draw.sample(range(len(data.train)), len(data.train))
    part = data.train.part(order)
    losses = train_step.loop(part.images, part.labels, 0.02 * 0.8**epoch)
    classify = mgjit.freeze(scores, part.images[0])
    found = [max(range(10), key=classify(pixels).__getitem__) for pixels in data.test.images]
    right = sum(a == b for a, b in zip(found, data.test.labels))
    print(f"epoch {epoch}  loss {sum(losses) / len(losses):.4f}  right {right / len(found):.1%} of {len(found)}")

print()
side = int(data.pixels**0.5)
for row in range(side):
    pixels = data.test.images[0][row * side : (row + 1) * side]
    print("".join(" .:-=+*#%@"[9 * pixel // data.scale] * 2 for pixel in pixels))
print(f"this is a {found[0]}, and should be a {data.test.labels[0]}")
