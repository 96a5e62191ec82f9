"""A multilayer perceptron in a class, trained on rows that are looked up by their numbers, in an order that is shuffled."""
import math
import random

random.seed(17)


def sigmoid(z):
    return 1.0 / (1.0 + math.exp(-z))


class MLP:
    def __init__(self, sizes):
        self.sizes = sizes
        self.weights = [[[random.gauss(0, 1 / math.sqrt(n)) for _ in range(n)] for _ in range(m)] for n, m in zip(sizes, sizes[1:])]
        self.biases = [[0.0] * m for m in sizes[1:]]

    def forward(self, x):
        activations = [x]
        for W, b in zip(self.weights, self.biases):
            x = [sigmoid(sum(w * v for w, v in zip(row, x)) + bias) for row, bias in zip(W, b)]
            activations.append(x)
        return activations

    def train_one(self, x, y, lr):
        acts = self.forward(x)
        delta = [(a - t) * a * (1 - a) for a, t in zip(acts[-1], y)]
        loss = sum((a - t) ** 2 for a, t in zip(acts[-1], y))
        for l in range(len(self.weights) - 1, -1, -1):
            below = acts[l]
            if l > 0:
                new_delta = [sum(self.weights[l][k][j] * delta[k] for k in range(len(delta))) * below[j] * (1 - below[j])
                             for j in range(len(below))]
            for k in range(len(delta)):
                for j in range(len(below)):
                    self.weights[l][k][j] -= lr * delta[k] * below[j]
                self.biases[l][k] -= lr * delta[k]
            if l > 0:
                delta = new_delta
        return loss


X = [[random.uniform(-1, 1) for _ in range(3)] for _ in range(120)]
Y = [[1.0 if x[0] * x[1] > 0 else 0.0, 1.0 if x[2] > 0.3 else 0.0] for x in X]
model = MLP([3, 10, 6, 2])
order = list(range(len(X)))
for epoch in range(900):
    random.shuffle(order)
    total = 0.0
    for i in order:
        total += model.train_one(X[i], Y[i], 0.5)
    if epoch % 50 == 0:
        print("epoch", epoch, "mse", round(total / len(X), 6))
hits = sum((model.forward(x)[-1][0] > 0.5) == (y[0] > 0.5) for x, y in zip(X, Y))
print("accuracy", hits / len(X))
