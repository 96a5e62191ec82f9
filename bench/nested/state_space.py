"""Layers with a state that is carried from letter to letter; words of different lengths."""

import random
import sys

from engine import Value, flat, linear, matrix, softmax

random.seed(1)
STEPS, WIDTH, STATE = int(sys.argv[1]), 10, 4
words = ["".join(random.choice("abcdefgh") for _ in range(random.randint(3, 7))) for _ in range(200)]
embed, head = matrix(random, 9, WIDTH), matrix(random, 9, WIDTH)
layers = [(matrix(random, WIDTH, WIDTH), [Value(random.gauss(0, 0.3)) for _ in range(STATE)]) for _ in range(2)]
weights = flat(embed, head, *[w for layer in layers for w in layer])


def scan(u, state, decay):
    new, ys = [], []
    for d in range(WIDTH):
        y = Value(0.0)
        for n in range(STATE):
            moved = decay[n] * state[d * STATE + n] + u[d]
            new.append(moved)
            y = y + u[n] * moved
        ys.append(y.tanh())
    return ys, new


def forward(token, states):
    x = embed[token]
    for k, (mix, decay) in enumerate(layers):
        before = x
        y, states[k] = scan(linear(x, mix), states[k], decay)
        x = [a + b for a, b in zip(y, before)]
    return softmax(linear(x, head))


for step in range(STEPS):
    word = words[step % len(words)]
    tokens = [8] + ["abcdefgh".index(letter) for letter in word] + [8]
    states = [[Value(0.0) for _ in range(WIDTH * STATE)] for _ in layers]
    losses = []
    for position in range(len(tokens) - 1):
        losses.append(-forward(tokens[position], states)[tokens[position + 1]].log())
    loss = (1.0 / len(losses)) * sum(losses)
    loss.backward()
    for p in weights:
        p.data -= 0.05 * p.grad
        p.grad = 0.0
    if step % 100 == 0:
        print(step, loss.data)
