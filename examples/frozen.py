"""Learn to freeze a model and sample from it: the next letter of towns is trained by a step, then sampled many times.

The context is always three letters, so that one kernel is enough. `mgjit.freeze` compiles the forward part alone, with
the numbers of the model as they are; draws are made outside.

Run: python examples/frozen.py
"""

import os
import random
import time

import mgjit
from mgjit import nn

STEPS = int(os.environ.get("STEPS", "4000"))
TOWNS = """amsterdam antwerp athens barcelona belgrade berlin bern bilbao bologna bordeaux bratislava bremen brussels
bucharest budapest cologne copenhagen dresden dublin edinburgh florence geneva genoa ghent granada hamburg hanover
helsinki krakow leipzig lisbon ljubljana london lyon madrid malaga marseille milan munich naples nice oslo palermo paris
porto prague riga rome rotterdam salamanca seville sofia stockholm tallinn toulouse turin utrecht valencia venice vienna
vilnius warsaw zagreb zurich""".split()
LETTERS = "." + "".join(sorted(set("".join(TOWNS))))
draw = random.Random(4)
model = nn.MLP(3 * len(LETTERS), [32, len(LETTERS)])


def scores(a, b, c):
    return model([x for letter in (a, b, c) for x in mgjit.one_hot(letter, len(LETTERS))])


def probabilities(a, b, c):
    exps = [mgjit.exp(score) for score in scores(a, b, c)]
    total = sum(exps)
    return [e / total for e in exps]


@mgjit.compile
def train_step(a, b, c, target, rate):
    chance = sum(p * h for p, h in zip(probabilities(a, b, c), mgjit.one_hot(target, len(LETTERS))))
    loss = -mgjit.log(chance)
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= rate * p.grad
    return loss


windows = [[LETTERS.index(x) for x in f"...{town}."[k : k + 4]] for town in TOWNS for k in range(len(town) + 1)]
total = 0.0
for step in range(1, STEPS + 1):
    total += train_step(*draw.choice(windows), 0.1)
    if step % (STEPS // 4) == 0:
        print(f"step {step:5}  mean loss {4 * total / STEPS:.3f}")
        total = 0.0

sample = mgjit.freeze(probabilities, 0, 0, 0)
started, letters, towns = time.perf_counter(), 0, []
while len(towns) < 200:
    town = [0, 0, 0]
    while len(town) < 16 and (len(town) == 3 or town[-1]):
        town += draw.choices(range(len(LETTERS)), sample(*town[-3:]))
        letters += 1
    towns.append("".join(LETTERS[x] for x in town).strip("."))
seconds = time.perf_counter() - started
print(f"{letters:,} letters in {seconds:.3f} s:", ", ".join(sorted(set(towns[:20]) - {""})))
