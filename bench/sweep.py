"""Learning rates x seeds on handwritten digits: 24 networks trained side by side on all cores, and a picture of them.

Each member of the ensemble begins with a network of its own seed and sees the digits in an order of its own.  The
picture has a curve for each member: the loss on the training digits, coloured by learning rate; and, by learning rate,
how many test digits the members get right.

Run: python bench/sweep.py [sweep.svg]
"""

import math
import random
import sys
from pathlib import Path

import mgjit
from mgjit import nn
from mgjit.data import digits

RATES = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1]
SEEDS = [1, 2, 3, 4]
MEMBERS = [(rate, seed) for rate in RATES for seed in SEEDS]
EPOCHS = 8
COLOURS = ["#440154", "#3b528b", "#21918c", "#5ec962", "#c8a800", "#e05030"]

data = digits()
model = nn.MLP(data.pixels, [16, 10])


@mgjit.compile
def train_step(pixels, label, rate):
    scores = model([p / 16 for p in pixels])
    top = scores[0]
    for s in scores[1:]:
        top = mgjit.maximum(top, s)
    total = sum(mgjit.exp(s - top) for s in scores)
    loss = mgjit.log(total) + top - sum(s * y for s, y in zip(scores, mgjit.one_hot(label, 10)))
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= rate * p.grad
    return loss


@mgjit.compile
def predict(pixels):
    return model([p / 16 for p in pixels])


def start(member):
    """The network of a member's seed."""
    fresh = nn.MLP(data.pixels, [16, 10], seed=MEMBERS[member][1])
    for p, q in zip(model.parameters(), fresh.parameters()):
        p.data = q.data


def shuffled(column, epoch):
    """The same for all members of a seed, another one in each epoch."""
    orders = {seed: random.Random(f"{seed} {epoch}").sample(range(len(column)), len(column)) for seed in SEEDS}
    return mgjit.each([[column[k] for k in orders[seed]] for _, seed in MEMBERS])


def polyline(points, colour):
    """A curve of an SVG."""
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline fill="none" stroke="{colour}" stroke-width="1.3" stroke-opacity="0.75" points="{text}"/>'


def label(x, y, text, anchor="middle", colour="#333"):
    """A text of an SVG."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def picture(curves, right):
    """The SVG: curves of losses on the left, test accuracy by learning rate on the right."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="880" height="380" font-family="sans-serif" font-size="12">',
        '<rect width="880" height="380" fill="white"/>',
        label(290, 24, f"training loss: {len(MEMBERS)} networks 64-16-10, one curve each"),
        label(720, 24, "test digits right"),
    ]
    longest = max(map(len, curves))

    def height(loss):
        return 330 - 285 * (math.log10(min(max(loss, 0.003), 5)) - math.log10(0.003)) / math.log10(5 / 0.003)

    for tick in (0.01, 0.1, 1.0):
        y = height(tick)
        parts.append(f'<path d="M60 {y:.1f}H520" stroke="#ddd"/>' + label(54, y + 4, f"{tick:g}", "end"))
    parts += [label(60 + 460 * epoch / EPOCHS, 350, str(epoch)) for epoch in range(EPOCHS + 1)]
    parts.append(label(290, 370, "epochs"))
    for (rate, _), curve in zip(MEMBERS, curves):
        points = [(60 + 460 * k / (longest - 1), height(loss)) for k, loss in enumerate(curve)]
        parts.append(polyline(points, COLOURS[RATES.index(rate)]))
    for percent in (20, 40, 60, 80, 100):
        y = 330 - 2.85 * percent
        parts.append(f'<path d="M600 {y:.1f}H850" stroke="#ddd"/>' + label(594, y + 4, f"{percent}%", "end"))
    for number, rate in enumerate(RATES):
        x, colour = 620 + 42 * number, COLOURS[number]
        for (other, _), share in zip(MEMBERS, right):
            if other == rate:
                parts.append(
                    f'<circle cx="{x}" cy="{330 - 285 * share:.1f}" r="4" fill="{colour}" fill-opacity="0.7"/>'
                )
        parts.append(label(x, 350, f"{rate:g}", colour=colour))
    parts.append(label(725, 370, "learning rate"))
    return "\n".join([*parts, "</svg>", ""])


sweep = mgjit.ensemble(train_step, len(MEMBERS), init=start)
rates = mgjit.each([rate for rate, _ in MEMBERS])
curves = [[] for _ in MEMBERS]
for epoch in range(EPOCHS):
    losses = sweep.loop(shuffled(data.train.images, epoch), shuffled(data.train.labels, epoch), rates)
    for curve, column in zip(curves, losses):
        part = len(column) // 8
        curve += [sum(column[k * part : (k + 1) * part]) / part for k in range(8)]

right = []
for member, (rate, seed) in zip(sweep, MEMBERS):
    with member:
        columns = predict.loop(data.test.images, threads=None)
    guesses = [max(range(10), key=scores.__getitem__) for scores in zip(*columns)]
    right.append(sum(guess == label for guess, label in zip(guesses, data.test.labels)) / len(guesses))
    print(f"rate {rate:<6}  seed {seed}  loss {curves[member.number][-1]:8.4f}  test digits right {right[-1]:.1%}")

path = Path(sys.argv[1] if len(sys.argv) > 1 else "sweep.svg")
path.write_text(picture(curves, right), encoding="utf-8")
print(f"{path}: {len(MEMBERS)} networks, {sweep.calls * len(MEMBERS):,} steps, {sweep.stats.traces} trace")
