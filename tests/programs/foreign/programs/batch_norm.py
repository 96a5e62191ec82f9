"""Batch normalisation with running statistics: gradients that start as None, SGD with momentum in a dict by id."""

import math
import random


class Value:
    def __init__(self, data, children=(), grad_fn=None):
        self.data = data
        self.grad = None
        self.children = children
        self.grad_fn = grad_fn

    @staticmethod
    def lift(x):
        return x if isinstance(x, Value) else Value(x)

    def __add__(self, other):
        other = Value.lift(other)
        return Value(self.data + other.data, (self, other), lambda g: (g, g))

    def __sub__(self, other):
        other = Value.lift(other)
        return Value(self.data - other.data, (self, other), lambda g: (g, -g))

    def __mul__(self, other):
        other = Value.lift(other)
        return Value(self.data * other.data, (self, other), lambda g: (g * other.data, g * self.data))

    def __truediv__(self, other):
        other = Value.lift(other)
        return Value(
            self.data / other.data,
            (self, other),
            lambda g: (g / other.data, -g * self.data / (other.data * other.data)),
        )

    def sqrt(self):
        root = math.sqrt(self.data)
        return Value(root, (self,), lambda g: (g * 0.5 / root,))

    def relu(self):
        return Value(max(0.0, self.data), (self,), lambda g: (g if self.data > 0 else 0.0,))

    __radd__ = __add__
    __rmul__ = __mul__

    def backward(self):
        order, marked = [], set()

        def visit(node):
            marked.add(id(node))
            for child in node.children:
                if id(child) not in marked:
                    visit(child)
            order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            if node.grad_fn is None:
                continue
            for child, g in zip(node.children, node.grad_fn(node.grad)):
                child.grad = g if child.grad is None else child.grad + g


def mean(values):
    return sum(values) / len(values)


class BatchNorm:
    def __init__(self, features, eps=1e-5, momentum=0.1):
        self.gamma = [Value(1.0) for _ in range(features)]
        self.beta = [Value(0.0) for _ in range(features)]
        self.running_mean = [0.0] * features
        self.running_var = [1.0] * features
        self.batches_seen = 0
        self.eps, self.momentum = eps, momentum
        self.training = True

    def __call__(self, batch):
        columns = list(zip(*batch))
        normalised = []
        for j, column in enumerate(columns):
            if self.training:
                mu = mean(column)
                var = mean([(x - mu) * (x - mu) for x in column])
                self.running_mean[j] += self.momentum * (mu.data - self.running_mean[j])
                self.running_var[j] += self.momentum * (var.data - self.running_var[j])
            else:
                mu, var = self.running_mean[j], Value(self.running_var[j])
            deviation = (var + self.eps).sqrt()
            normalised.append([(x - mu) / deviation * self.gamma[j] + self.beta[j] for x in column])
        if self.training:
            self.batches_seen += 1
        return [list(row) for row in zip(*normalised)]


class Network:
    def __init__(self, rng):
        self.w1 = [[Value(rng.uniform(-0.7, 0.7)) for _ in range(3)] for _ in range(4)]
        self.norm = BatchNorm(4)
        self.w2 = [Value(rng.uniform(-0.7, 0.7)) for _ in range(4)]

    def __call__(self, batch):
        hidden = [[sum(w * x for w, x in zip(row, xs)) for row in self.w1] for xs in batch]
        hidden = [[h.relu() for h in row] for row in self.norm(hidden)]
        return [sum(w * h for w, h in zip(self.w2, row)) for row in hidden]

    def parameters(self):
        return [w for row in self.w1 for w in row] + self.norm.gamma + self.norm.beta + self.w2


def make():
    rng = random.Random(31)
    network = Network(rng)
    velocity = {id(p): 0.0 for p in network.parameters()}

    def step(batch, targets, lr):
        outputs = network(batch)
        loss = mean([(o - t) * (o - t) for o, t in zip(outputs, targets)])
        for p in network.parameters():
            p.grad = None
        loss.backward()
        for p in network.parameters():
            velocity[id(p)] = 0.9 * velocity[id(p)] + p.grad
            p.data -= lr * velocity[id(p)]
        return loss.data

    calls = [
        ([[rng.gauss(0, 1) for _ in range(3)] for _ in range(6)], [rng.gauss(0, 1) for _ in range(6)], 0.05 / (k + 1))
        for k in range(5)
    ]

    def observe():
        norm = network.norm
        return (
            [(p.data, p.grad, velocity[id(p)]) for p in network.parameters()],
            (norm.running_mean, norm.running_var, norm.batches_seen, norm.training),
        )

    return step, calls, observe
