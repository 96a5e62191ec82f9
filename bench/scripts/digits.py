"""The handwritten digits that come with mgjit: 64-16-10, softmax cross-entropy, batches of four, momentum."""

import os
import random

import mgjit
from mgjit import data as datasets
from mgjit import nn

STEPS = int(os.environ.get("STEPS", "200"))
BATCH = 4
data = datasets.digits()
model = nn.MLP(64, [16, 10])
parameters = model.parameters()
velocity = [0.0] * len(parameters)


def cross_entropy(scores, label):
    top = max(s.data for s in scores)
    exps = [mgjit.exp(s - top) for s in scores]
    chosen = mgjit.dot(exps, mgjit.one_hot(label, 10))
    return -mgjit.log(chosen / sum(exps))


@mgjit.compile
def train_step(images, labels, lr):
    losses = [cross_entropy(model([p / data.scale for p in image]), label) for image, label in zip(images, labels)]
    loss = sum(losses) / len(losses)
    model.zero_grad()
    loss.backward()
    for i, p in enumerate(parameters):
        velocity[i] = 0.9 * velocity[i] - lr * p.grad
        p.data += velocity[i]
    return loss


@mgjit.compile
def scores(image):
    return model([p / data.scale for p in image])


def accuracy(count):
    right = 0
    for image, label in zip(data.test.images[:count], data.test.labels[:count]):
        found = [s.data for s in scores(image)]
        right += found.index(max(found)) == label
    return right / count


order = list(range(len(data.train)))
random.Random(0).shuffle(order)
for k in range(STEPS):
    rows = [order[(k * BATCH + j) % len(order)] for j in range(BATCH)]
    images, labels = [data.train.images[r] for r in rows], [data.train.labels[r] for r in rows]
    loss = train_step(images, labels, 0.02)
    if k % 50 == 49 or k == STEPS - 1:
        print(f"{k + 1} steps, loss {loss.data!r}, accuracy {accuracy(60)!r}")
print("checksum", sum(p.data for p in parameters), sum(velocity))
