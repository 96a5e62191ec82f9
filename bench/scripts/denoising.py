"""A denoising autoencoder: pixels are dropped at random inside the step, and the last batch of an epoch is smaller."""

import os
import random

import mgjit
from mgjit import Value

STEPS = int(os.environ.get("STEPS", "250"))
PIXELS, CODE, BATCH = 25, 6, 12
random.seed(8)


def shape():
    """A horizontal or vertical bar, or a cross, in five rows of five."""
    row, column, kind = random.randrange(5), random.randrange(5), random.randrange(3)
    return [1.0 if (kind != 1 and i == row) or (kind != 0 and j == column) else 0.0 for i in range(5) for j in range(5)]


images = [shape() for _ in range(56)]


class Dense:
    def __init__(self, inputs, outputs):
        self.w = [[Value(random.gauss(0, inputs**-0.5)) for _ in range(inputs)] for _ in range(outputs)]
        self.b = [Value(0.0) for _ in range(outputs)]

    def __call__(self, x):
        return [sum((w * v for w, v in zip(row, x)), b) for row, b in zip(self.w, self.b)]

    def parameters(self):
        return [p for row in self.w for p in row] + self.b


encoder, decoder = Dense(PIXELS, CODE), Dense(CODE, PIXELS)
params = encoder.parameters() + decoder.parameters()


def reconstructed(image):
    code = [h.tanh() for h in encoder(image)]
    return decoder(code)


@mgjit.compile
def train(batch, lr):
    loss = 0
    for image in batch:
        noisy = [pixel * (random.random() < 0.8) for pixel in image]
        loss = loss + sum((out - pixel) ** 2 for out, pixel in zip(reconstructed(noisy), image))
    loss = loss / (len(batch) * PIXELS)
    for p in params:
        p.grad = 0.0
    loss.backward()
    for p in params:
        p.data -= lr * p.grad
    return loss.data


done, epoch = 0, 0
while done < STEPS:
    random.shuffle(images)
    total = 0.0
    for begin in range(0, len(images), BATCH):
        if done == STEPS:
            break
        batch = images[begin : begin + BATCH]
        total += train(batch, 0.5) * len(batch)
        done += 1
    epoch += 1
    print("epoch", epoch, "after", done, "steps:", total / len(images))
print([out.data for out in reconstructed(images[0])])
