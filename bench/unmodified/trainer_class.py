"""A class with train(), its state in attributes, and a history."""

import random
import sys

from engine import MLP, SGD, digest


class Trainer:
    def __init__(self, model, rate):
        self.model, self.optimiser = model, SGD(model.parameters(), rate, 0.9)
        self.history, self.steps = [], 0

    def train(self, data, epochs):
        for epoch in range(epochs):
            total = 0.0
            for x, y in data:
                prediction = self.model(x)[0]
                loss = (prediction - y) ** 2
                self.optimiser.zero_grad()
                loss.backward()
                self.optimiser.step()
                total += loss.data
                self.steps += 1
            self.history.append(total / len(data))
            print("epoch", epoch, self.history[-1])


epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
random.seed(5)
data = [([random.random() for _ in range(4)], random.random()) for _ in range(15)]
trainer = Trainer(MLP([4, 10, 1], 2), 0.01)
trainer.train(data, epochs)
print(trainer.steps, trainer.history, digest(trainer.model.parameters()))
