"""Learn to use layers and Adam on images: a multi-layer perceptron with LayerNorm, or LeNet with two convolutions.

The 1,797 digits of 8 x 8 pixels that come with the package, or MNIST from a folder of IDX files. With the 10,000 test
images of MNIST in the folder, of which 8,000 are for training, each of them reads 97 % of the other 2,000.

Run: python examples/images.py [--model mlp|lenet] [folder]
"""

import argparse
import os
import random
from pathlib import Path

import mgjit
from mgjit import nn, optim
from mgjit import tensor as T
from mgjit.data import digits, mnist

parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=["mlp", "lenet"], default="mlp")
parser.add_argument("folder", nargs="?", type=Path)
options = parser.parse_args()
data = mnist(options.folder) if options.folder else digits()
SIDE = int(data.pixels**0.5)
EPOCHS, BATCH = int(os.environ.get("STEPS", "8")), 64
random.seed(1)

if options.model == "mlp":
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(data.pixels, 256), nn.LayerNorm(256), nn.ReLU(),
        nn.Linear(256, 128), nn.LayerNorm(128), nn.ReLU(),
        nn.Linear(128, 10),
    )  # fmt: skip
else:
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * (SIDE // 4) ** 2, 64), nn.ReLU(),
        nn.Linear(64, 10),
    )  # fmt: skip
model.float()
optimizer = optim.Adam(model.parameters(), lr=0.002)
scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)


@mgjit.compile(dtype="float32")
def train_step(x, labels):
    loss = nn.functional.cross_entropy(model(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def tensors(split):
    """Images of shape (N, 1, side, side), from 0.0 to 1.0, and labels."""
    pixels = T.asarray(b"".join(split.images), dtype="float32") / data.scale
    return pixels.reshape(-1, 1, SIDE, SIDE), T.asarray(split.labels)


def accuracy(images, labels):
    """The share of images that are read as they should be."""
    with mgjit.no_grad():
        rights = [
            (model(images[k : k + 64]).argmax(axis=1) == labels[k : k + 64]).sum() for k in range(0, len(labels), 64)
        ]
    return int(sum(rights)) / len(labels)


images, labels = tensors(data.train)
tests = tensors(data.test)
for epoch in range(EPOCHS):
    order = random.sample(range(len(images)), len(images))
    losses = []
    for at in range(0, len(order) - BATCH + 1, BATCH):
        chosen = T.asarray(order[at : at + BATCH])
        losses.append(float(train_step(T.take(images, chosen), T.take(labels, chosen))))
    scheduler.step()
    print(f"epoch {epoch}  loss {sum(losses) / len(losses):.4f}  right {accuracy(*tests):.1%} of {len(data.test)}")
