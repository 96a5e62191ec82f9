"""Learn to train an RNN, LSTM, GRU or a one-layer Transformer: it learns names letter by letter, and makes some up.

A name is eight letters and the dots behind it, 32 of them are a batch; a file can have one name a line.

Run: python examples/names.py [--model rnn|lstm|gru|transformer] [file]
"""

import argparse
import os
import random
from pathlib import Path

import mgjit
from mgjit import nn, optim
from mgjit import tensor as T

NAMES = """ada alan anita annie barbara blaise brian carl charles claude dana dennis donald dorothy edith emmy frances
george grace guido hedy ivan jean john joan ken kurt larry leslie linus lynn margaret marie mary niklaus noam peter
radia robin rosa shafi sophie stephen susan tim tony""".split()
cells = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=[*cells, "transformer"], default="gru")
parser.add_argument("file", nargs="?", type=Path)
options = parser.parse_args()
names = options.file.read_text(encoding="utf-8").lower().split() if options.file else NAMES
LETTERS = "." + "".join(sorted(set("".join(names))))
STEPS, LENGTH, BATCH = int(os.environ.get("STEPS", "400")), 8, 32
random.seed(1)


class Recurrent(nn.Module):
    def __init__(self, cells):
        self.embedding, self.head = nn.Embedding(len(LETTERS), 32), nn.Linear(64, len(LETTERS))
        self.cells = cells(32, 64, batch_first=True)

    def forward(self, x):
        return self.head(self.cells(self.embedding(x))[0])


class Transformer(nn.Module):
    def __init__(self):
        self.embedding, self.places = nn.Embedding(len(LETTERS), 32), nn.Embedding(LENGTH, 32)
        self.before, self.attention = nn.LayerNorm(32), nn.MultiheadAttention(32, 4, batch_first=True)
        self.perceptron = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 32))
        self.head = nn.Linear(32, len(LETTERS))

    def forward(self, x):
        x = self.embedding(x) + self.places.weight
        y = self.before(x)
        x = x + self.attention(y, y, y, need_weights=False, is_causal=True)[0]
        return self.head(x + self.perceptron(x))


model = Recurrent(cells[options.model]) if options.model in cells else Transformer()
optimizer = optim.Adam(model.parameters(), lr=0.005)


@mgjit.compile
def train_step(x, following):
    loss = nn.functional.cross_entropy(model(x).swapaxes(1, 2), following)
    optimizer.zero_grad()
    loss.backward()
    optim.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


for step in range(1, STEPS + 1):
    rows = [f".{name}".ljust(LENGTH + 1, ".")[: LENGTH + 1] for name in random.choices(names, k=BATCH)]
    letters = T.asarray([[LETTERS.index(letter) for letter in row] for row in rows])
    loss = train_step(letters[:, :-1], letters[:, 1:])
    if step % max(1, STEPS // 8) == 0:
        print(f"step {step:4}  loss {float(loss):.3f}")

for _ in range(8):
    name = ""
    while len(name) < LENGTH and not name.endswith("."):
        x = T.asarray([[LETTERS.index(letter) for letter in f".{name}".ljust(LENGTH, ".")]])
        name += random.choices(LETTERS, weights=model(x)[0, len(name)].softmax().tolist())[0]
    print(name.rstrip("."))
