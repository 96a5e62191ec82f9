"""Writes steps that look at lengths: of a sequence, or of the rows of a batch, which are other ones in each call.

A length decides what is computed (`if len(xs) > 5`), how often (`range(len(xs), 0, -2)`), on what
(`xs[len(xs) // 2]`, `sorted(batch, key=len)`), or is a number itself (`1.0 / len(xs)`, `str(len(xs))`).  Loops grow
with their position (`range(i + 1)`), and rows are padded, filtered and ordered.

`lengths_program` writes short steps, each length of which has code of its own.  Those of `looking_program` do enough
for lengths to share code (mgjit/compiler/build/families.py): a recurrent network, before, within or behind which they
look.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

#: What looks at the sequence `xs`, changes `total`, and may use the parameters `w` and an int `c`.
_OF_SEQUENCE = (
    "if len(xs) > {c}:\n    total = total + w[0] * xs[-1]\nelse:\n    total = total * w[1] - xs[0]",
    "total = total * (1.0 / len(xs))",
    "total = total + w[2] * xs[len(xs) // 2]",
    "total = total + w[len(str(len(xs) * {c}))] * float(str(len(xs)))",
    "total = total + (w[2] if len(xs) % 2 else w[3])",
    "for k in range(len(xs), 0, -2):\n    total = total + w[k % 4] * xs[k - 1]",
    "for a, b in zip(xs, xs[1:]):\n    total = total + a * b * w[4]",
    "k = 0\nwhile k * k < len(xs):\n    total = total + w[k] * xs[k]\n    k += 1",
    "total = total + sum(xs[: len(xs) // 3 + 1]) * w[0]",
    "total = total - w[len(xs) % len(w)] * xs[-(len(xs) // 2) - 1]",
    "for i in range(len(xs)):\n    total = total + (sum(w[j % 4] * xs[j] for j in range(i + 1)) * 0.1).tanh()",
    "for i in range(len(xs)):\n    for j in range(i):\n        total = total + (xs[i] - xs[j]) * w[{c} % 6]",
    "for k in range(min(len(xs), {c})):\n    total = total + xs[k] * w[k % 5]",
    "total = total + w[1] * bin(len(xs)).count('1')",
    "total = total * 0.5 ** len(xs)",
    "quotient, rest = divmod(len(xs), {c})\ntotal = total + w[quotient % 6] * rest",
    "if len(xs) in (2, {c}, 7):\n    total = total - w[5]",
    "for k in sorted(range(len(xs)), key=lambda k: k * 7 % len(xs)):\n    total = (total + xs[k] * w[k % 3]) * 0.5",
    "total = total + TABLE[len(xs)] * w[0]",
    "total = total + NAMES.get(len(xs), 0.25) * w[1]",
    "h = w[0] * 0.0\nfor x in xs:\n    h = (h * w[1] + w[2] * x).tanh()\ntotal = total + h",
    "for x in reversed(xs):\n    total = total * 0.5 + x * w[3]",
    "windows = [xs[k : k + {c}] for k in range(0, len(xs), {c})]\n"
    "for window in windows:\n    total = total + sum(window) * w[len(window) % 6]",
    "scores = [sum(w[j % 3] * xs[j] for j in range(i + 1)) for i in range(len(xs))]\n"
    "for i, score in enumerate(scores):\n    total = total + score * (1.0 / (i + 1))",
)
#: The same for the rows of a batch.
_OF_BATCH = (
    "lengths = [len(row) for row in batch]\ntotal = total + w[0] * batch[lengths.index(max(lengths))][0]",
    "for row in sorted(batch, key=len):\n    total = total * 0.5 + sum(row) * w[1]",
    "longest = max(map(len, batch))\n"
    "for k in range(longest):\n    column = [row[k] if k < len(row) else 0.0 for row in batch]\n"
    "    total = total + sum(column) * w[k % 6]",
    "for row in [row for row in batch if len(row) > {c} % 3]:\n    total = total + row[-1] * w[len(row) % 6]",
    "for row in batch:\n    h = w[0] * 0.0\n    for x in row:\n        h = (h * w[1] + w[2] * x).tanh()\n"
    "    total = total + h",
    "flat = [x for row in batch for x in row]\nfor k, x in enumerate(flat):\n    total = total + x * w[k % 6]",
    "total = total * (1.0 / sum(map(len, batch)))",
    "for number, row in enumerate(batch):\n    for i in range(len(row)):\n"
    "        total = total + sum(row[: i + 1]) * w[number % 6]",
    "for a, b in zip(batch, batch[1:]):\n    for x, y in zip(a, b):\n        total = total + x * y * w[3]",
    "if len(set(map(len, batch))) == 1:\n    total = total + w[4]",
    "padded = [row + [0.5] * ({c} - len(row)) for row in batch]\n"
    "for row in padded:\n    total = total + sum(row) * w[5]",
)
#: What looks at the position `t` of a recurrent network over `xs`, and changes `total`.
_OF_POSITION = (
    "if t > {c}:\n    total = total + h[0] * w[4]",
    "if t == len(xs) // 2:\n    total = total + h[1]",
    "if t % {c} == 0 and t < len(xs) - 1:\n    total = total - h[2] * w[1]",
    "total = total + h[0] * (1.0 / (len(xs) - t))",
    "h[t % 3] = h[t % 3] * w[5]",
    "total = total + h[t % 3] * xs[len(xs) - 1 - t]",
    "total = total + h[1] * TABLE[min(t, {c})]",
    "if xs[t:] and len(xs[t:]) == {c}:\n    total = total * 0.5",
    "total = total + sum(xs[max(0, t - {c}) : t + 1]) * h[2]",
)


def looking_program(seed: int) -> str:
    """A program that looks at lengths which share code."""
    draw = random.Random(f"looking {seed}")
    is_batch = draw.random() < 0.3

    def looks() -> list[str]:
        blocks = draw.sample(_OF_BATCH if is_batch else _OF_SEQUENCE, draw.choice((0, 0, 0, 1)))
        return [line for block in blocks for line in block.format(c=draw.randint(2, 9)).split("\n")]

    before, behind = looks(), looks()
    inside = draw.sample(_OF_POSITION, draw.choice((0, 0, 1) if before or behind else (1, 1, 2)))
    network = ["h = [w[0] * 0.0, w[1] * 0.5, w[2] * 0.25]", "for t, x in enumerate(xs):"]
    network.append("    h = [(w[j] * x + sum(w[(2 * j + k) % 6] * h[k] for k in range(3))).tanh() for j in range(3)]")
    network += [f"    {line}" for block in inside for line in block.format(c=draw.randint(2, 9)).split("\n")]
    network.append("total = total + h[0] - h[2]")
    if is_batch:
        network = ["for xs in batch:", *(f"    {line}" for line in network)]
    name = "batch" if is_batch else "xs"
    lines = ["total = w[0] * 0.25", *before, *network, *behind, *_ending(draw, name)]
    alike = [draw.randint(5, 9), draw.randint(6, 11), *(draw.randint(1, 14) for _ in range(8))]
    if draw.random() < 0.2:
        draw.shuffle(alike)
    return _program(draw, name, lines, lambda: [_arguments(draw, is_batch, length) for length in alike])


def _arguments(draw: random.Random, is_batch: bool, length: int) -> tuple[list[object]]:
    """A sequence of this length, or a batch of three that are about as long."""

    def sequence(length: int) -> list[float]:
        return [draw.uniform(-1.0, 1.0) for _ in range(length)]

    is_ragged = draw.random() < 0.5
    return ([sequence(max(1, length - k * is_ragged)) for k in range(3)],) if is_batch else (list(sequence(length)),)


def lengths_program(seed: int) -> str:
    """One program: `make()` returns the step, its parameters and its states; CALLS are the arguments."""
    draw = random.Random(f"lengths {seed}")
    is_batch = draw.random() < 0.3
    blocks = draw.sample(_OF_BATCH if is_batch else _OF_SEQUENCE, draw.choice((1, 2, 2, 3, 4)))
    name = "batch" if is_batch else "xs"
    lines = ["total = w[0] * 0.25"]
    for block in blocks:
        lines += block.format(c=draw.randint(2, 6)).split("\n")
    lines += _ending(draw, name)
    return _program(draw, name, lines, lambda: _calls(draw, is_batch))


def _ending(draw: random.Random, name: str) -> list[str]:
    """The loss, perhaps a backward pass with an update, and the result."""
    lines = [draw.choice(["loss = total.tanh()", "loss = (total * 0.1) ** 2", "loss = (total - 0.5).tanh() * 0.5"])]
    if draw.random() < 0.8:
        lines += ["loss.backward()", "for p in w:", f"    p.data -= {draw.choice((0.05, 0.1))} * p.grad"]
        lines += ["    p.grad = 0.0"] if draw.random() < 0.7 else []
    return [*lines, draw.choice(["return loss.data", f"return [loss.data, len({name})]", "return loss"])]


def _program(
    draw: random.Random, name: str, lines: Sequence[str], calls: Callable[[], list[tuple[list[object]]]]
) -> str:
    body = "\n".join(f"        {line}" for line in lines)
    return f"""import mgjit

TABLE = {[draw.uniform(-1.0, 1.0) for _ in range(20)]}
NAMES = {{3: 0.5, 5: -0.5}}


def make():
    w = [mgjit.Value(x) for x in {[draw.uniform(-1.0, 1.0) for _ in range(6)]}]

    def step({name}):
{body}

    return step, w, []


CALLS = {calls()}
"""


def _calls(draw: random.Random, is_batch: bool) -> list[tuple[list[object]]]:
    """Arguments of about ten lengths in random order, some of them again and again."""
    often = [draw.randint(1, 9) for _ in range(3)]

    def sequence() -> list[float]:
        length = draw.choice(often) if draw.random() < 0.5 else draw.randint(1, 9)
        return [draw.uniform(-1.0, 1.0) for _ in range(length)]

    if is_batch:
        return [([sequence() for _ in range(draw.randint(1, 4))],) for _ in range(9)]
    return [(list(sequence()),) for _ in range(14)]
