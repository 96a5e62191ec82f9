"""A model of names: a bigram table with a hidden layer, and a sampler after training."""

import random
import sys

from engine import MLP, SGD, digest, softmax

names = ["anna", "hanna", "nina", "ian", "nana", "dina", "ada", "dan"]
letters = sorted(set("".join(names)))
size = len(letters) + 1
code = {c: k for k, c in enumerate(letters, 1)}
pairs = [(a, b) for name in names for a, b in zip([0, *map(code.get, name)], [*map(code.get, name), 0])]
model = MLP([size, 6, size], 31)
optimiser = SGD(model.parameters(), 0.1)
random.seed(2)
for step in range(int(sys.argv[1]) if len(sys.argv) > 1 else 400):
    before, after = random.choice(pairs)
    x = [1.0 if k == before else 0.0 for k in range(size)]
    y = [1.0 if k == after else 0.0 for k in range(size)]
    probabilities = softmax(model(x))
    loss = -sum(p.log() * t for p, t in zip(probabilities, y))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 50 == 0:
        print(f"{step} {before}->{after} {loss.data:.8f}")
for _ in range(5):
    word, letter = "", 0
    while len(word) < 10:
        x = [1.0 if k == letter else 0.0 for k in range(size)]
        letter = random.choices(range(size), weights=[p.data for p in softmax(model(x))])[0]
        if not letter:
            break
        word += letters[letter - 1]
    print(word)
print(digest(model.parameters()))
