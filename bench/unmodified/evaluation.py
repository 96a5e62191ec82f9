"""Accuracy on other samples every n steps, inside of the loop."""

import random
import sys

from engine import MLP, SGD, digest, softmax

rng = random.Random(21)


def sample():
    label = rng.randrange(3)
    return [rng.gauss(label - 1, 0.5), rng.gauss(1 - label, 0.5)], label


train, test = [sample() for _ in range(60)], [sample() for _ in range(20)]
model = MLP([2, 8, 3], 6)
optimiser = SGD(model.parameters(), 0.05)


def accuracy():
    right = 0
    for x, label in test:
        scores = [s.data for s in model(x)]
        right += scores.index(max(scores)) == label
    return right / len(test)


for step in range(int(sys.argv[1]) if len(sys.argv) > 1 else 600):
    x, label = train[step % len(train)]
    target = [1.0 if k == label else 0.0 for k in range(3)]
    probabilities = softmax(model(x))
    loss = -sum(p.log() * t for p, t in zip(probabilities, target))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 100 == 0:
        print(f"step {step}: loss {loss.data:.10f}, accuracy {accuracy():.3f}")
print(accuracy(), digest(model.parameters()))
