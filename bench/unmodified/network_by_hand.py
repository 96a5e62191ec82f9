"""A network with backpropagation by hand, in a class with lists of lists."""

import math
import random
import sys


class Network:
    def __init__(self, rng, inputs, hidden):
        self.w1 = [[rng.uniform(-1, 1) for _ in range(inputs)] for _ in range(hidden)]
        self.w2 = [rng.uniform(-1, 1) for _ in range(hidden)]

    def forward(self, x):
        self.h = [math.tanh(sum(w * v for w, v in zip(row, x))) for row in self.w1]
        return sum(w * v for w, v in zip(self.w2, self.h))

    def learn(self, x, y, rate):
        error = self.forward(x) - y
        for j, h in enumerate(self.h):
            slope = error * self.w2[j] * (1 - h * h)
            self.w2[j] -= rate * error * h
            for i, v in enumerate(x):
                self.w1[j][i] -= rate * slope * v
        return error * error


rng = random.Random(1)
network = Network(rng, 4, 12)
data = [([rng.random() for _ in range(4)], rng.random()) for _ in range(30)]
for epoch in range(int(sys.argv[1]) if len(sys.argv) > 1 else 300):
    total = 0.0
    for x, y in data:
        total += network.learn(x, y, 0.05)
    if epoch % 30 == 0:
        print(epoch, total)
print(network.w2, network.w1[0])
