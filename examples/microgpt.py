"""Learn how a GPT works, number by number: embeddings, causal attention, a hidden layer, Adam; it makes up names.

Each position looks back at all before it, which becomes a loop that grows. Letters are inputs of the compiled step,
which is traced again for another length of the name when that pays. At the end the frozen model makes up names.

Run: python examples/microgpt.py
"""

import os
import random

import mgjit

NAMES = """ada alan alonzo anita annie barbara blaise brian carl charles claude dana dennis donald dorothy edith emmy
frances george grace guido hedy ivan jean john joan kathleen ken kurt larry leslie linus lynn margaret marie marvin mary
maurice niklaus noam peter radia robin rosa shafi sophie stephen susan tim tony yukihiro""".split()
LETTERS = sorted(set("".join(NAMES)))
END, SIZE, HIDDEN, LONGEST = len(LETTERS), 12, 24, 10
STEPS = int(os.environ.get("STEPS", "3000"))
draw = random.Random(1)
sizes = [(END + 1, SIZE), (LONGEST, SIZE), (END + 1, SIZE), *[(SIZE, SIZE)] * 4, (HIDDEN, SIZE), (SIZE, HIDDEN)]
model = [[[mgjit.Value(draw.gauss(0, 0.15)) for _ in range(n)] for _ in range(rows)] for rows, n in sizes]
letters, places, head, query, key, value, project, wide, narrow = model
parameters = [p for each in model for row in each for p in row]
mean, spread = mgjit.zeros(len(parameters)), mgjit.zeros(len(parameters))


# %%
def times(m, x):
    return [sum(w * v for w, v in zip(row, x)) for row in m]


def softmax(scores):
    exps = [mgjit.exp(score) for score in scores]
    return [e / total for total in [sum(exps)] for e in exps]


def next_letter(tokens):
    """The probabilities of each next letter, after each of the tokens."""
    keys, values, found = [], [], []
    for token, position in zip(tokens, places):
        x = [a + b for a, b in zip(letters[token], position)]
        keys.append(times(key, x))
        values.append(times(value, x))
        q = times(query, x)
        weights = softmax([sum(a * b for a, b in zip(q, k)) * SIZE**-0.5 for k in keys])
        seen = [sum(w * v for w, v in zip(weights, column)) for column in zip(*values)]
        x = [a + b for a, b in zip(x, times(project, seen))]
        x = [a + b for a, b in zip(x, times(narrow, [h.relu() for h in times(wide, x)]))]
        found.append(softmax(times(head, x)))
    return found


@mgjit.compile
def train_step(tokens, rate, t):
    targets = [mgjit.one_hot(token, END + 1) for token in tokens[1:]]
    chances = [sum(p * h for p, h in zip(*pair)) for pair in zip(next_letter(tokens[:-1]), targets)]
    loss = -sum(mgjit.log(chance) for chance in chances) / len(chances)
    loss.backward()
    for i, p in enumerate(parameters):
        mean[i] = 0.9 * mean[i] + 0.1 * p.grad
        spread[i] = 0.99 * spread[i] + 0.01 * p.grad * p.grad
        p.data -= rate * (mean[i] / (1 - 0.9**t)) / (mgjit.sqrt(spread[i] / (1 - 0.99**t)) + 1e-8)
        p.grad = 0.0
    return loss


for t in range(1, STEPS + 1):
    name = [END, *map(LETTERS.index, draw.choice(NAMES)), END]
    loss = train_step(name, 0.01 * (1 - t / (STEPS + 1)), t)
    if t == 1 or t % 500 == 0:
        print(f"step {t:4}  loss {loss:.3f}")

# %%
sample = mgjit.freeze(next_letter, [END] * LONGEST)  # what comes later changes nothing, so that one length is enough
for _ in range(10):
    name = [END]
    while len(name) < LONGEST and (len(name) == 1 or name[-1] != END):
        name += draw.choices(range(END + 1), sample(name + [END] * (LONGEST - len(name)))[len(name) - 1])
    print("".join(LETTERS[token] for token in name if token != END))
