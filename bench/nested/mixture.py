"""A mixture of experts: each one's answer is added up in a helper function."""

import random
import sys

from engine import Value, flat, linear, matrix, softmax

random.seed(3)
EPOCHS, EXPERTS = int(sys.argv[1]), 4
gate = matrix(random, EXPERTS, 3)
experts = [(matrix(random, 6, 3), matrix(random, 1, 6)) for _ in range(EXPERTS)]
weights = flat(gate, *[w for pair in experts for w in pair])
data = [[random.uniform(-1, 1), random.uniform(-1, 1), 1.0] for _ in range(40)]


def combined(shares, answers):
    y = Value(0.0)
    for share, answer in zip(shares, answers):
        y = y + share * answer
    return y


def model(x):
    shares = softmax(linear(x, gate))
    answers = []
    for first, second in experts:
        hidden = [h.tanh() for h in linear(x, first)]
        answers.append(linear(hidden, second)[0])
    return combined(shares, answers)


for epoch in range(EPOCHS):
    total = 0.0
    for x in data:
        error = model(x) - (1.0 if x[0] * x[1] > 0 else -1.0)
        loss = error * error
        loss.backward()
        for p in weights:
            p.data -= 0.05 * p.grad
            p.grad = 0.0
        total += loss.data
    if epoch % 20 == 0:
        print(epoch, total)
