"""LSTM on a sequence of numbers: nodes with a running index instead of a topological sort, momentum on attributes."""

import math
import random


class Tensor:
    """A scalar, whatever the name says."""

    count = 0

    def __init__(self, value, parents=(), requires_grad=False):
        self.value = value
        self.grad = None
        self.parents = parents
        self.backward_fn = None
        self.requires_grad = requires_grad or any(p.requires_grad for p in parents)
        Tensor.count += 1
        self.index = Tensor.count

    def accumulate(self, gradient):
        if not self.requires_grad:
            return
        if self.grad is None:
            self.grad = gradient
        else:
            self.grad = self.grad + gradient

    def __add__(self, other):
        if not isinstance(other, Tensor):
            other = Tensor(other)
        out = Tensor(self.value + other.value, (self, other))

        def backward_fn(gradient):
            self.accumulate(gradient)
            other.accumulate(gradient)

        out.backward_fn = backward_fn
        return out

    def __sub__(self, other):
        if not isinstance(other, Tensor):
            other = Tensor(other)
        out = Tensor(self.value - other.value, (self, other))

        def backward_fn(gradient):
            self.accumulate(gradient)
            other.accumulate(-gradient)

        out.backward_fn = backward_fn
        return out

    def __mul__(self, other):
        if not isinstance(other, Tensor):
            other = Tensor(other)
        out = Tensor(self.value * other.value, (self, other))

        def backward_fn(gradient):
            self.accumulate(gradient * other.value)
            other.accumulate(gradient * self.value)

        out.backward_fn = backward_fn
        return out

    def sigmoid(self):
        s = 1.0 / (1.0 + math.exp(-self.value))
        out = Tensor(s, (self,))
        out.backward_fn = lambda gradient: self.accumulate(gradient * s * (1.0 - s))
        return out

    def tanh(self):
        t = math.tanh(self.value)
        out = Tensor(t, (self,))
        out.backward_fn = lambda gradient: self.accumulate(gradient * (1.0 - t**2))
        return out

    def backward(self):
        nodes, stack = {}, [self]
        while stack:
            node = stack.pop()
            if node.index not in nodes:
                nodes[node.index] = node
                stack.extend(node.parents)
        self.grad = 1.0
        for index in sorted(nodes, reverse=True):
            node = nodes[index]
            if node.backward_fn is not None and node.grad is not None:
                node.backward_fn(node.grad)


class LSTMCell:
    def __init__(self, inputs, hidden, rng):
        self.hidden = hidden
        self.gates = {
            name: [
                [Tensor(rng.uniform(-0.4, 0.4), requires_grad=True) for _ in range(inputs + hidden + 1)]
                for _ in range(hidden)
            ]
            for name in ("input", "forget", "output", "candidate")
        }

    def __call__(self, x, state):
        h, c = state
        joined = [*x, *h, Tensor(1.0)]

        def linear(name):
            out = []
            for row in self.gates[name]:
                total = row[0] * joined[0]
                for w, v in zip(row[1:], joined[1:]):
                    total = total + w * v
                out.append(total)
            return out

        i = [v.sigmoid() for v in linear("input")]
        f = [v.sigmoid() for v in linear("forget")]
        o = [v.sigmoid() for v in linear("output")]
        g = [v.tanh() for v in linear("candidate")]
        c = [fj * cj + ij * gj for fj, cj, ij, gj in zip(f, c, i, g)]
        h = [oj * cj.tanh() for oj, cj in zip(o, c)]
        return h, c

    def parameters(self):
        return [w for gate in self.gates.values() for row in gate for w in row]


class Momentum:
    def __init__(self, parameters, lr, momentum=0.9):
        self.parameters, self.lr, self.momentum = parameters, lr, momentum
        for p in parameters:
            p.velocity = 0.0

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        for p in self.parameters:
            if p.grad is not None:
                p.velocity = self.momentum * p.velocity - self.lr * p.grad
                p.value += p.velocity


def make():
    rng = random.Random(11)
    cell = LSTMCell(1, 3, rng)
    head = [Tensor(rng.uniform(-0.4, 0.4), requires_grad=True) for _ in range(3)]
    parameters = cell.parameters() + head
    optimizer = Momentum(parameters, lr=0.05)

    def train_step(series):
        state = [Tensor(0.0) for _ in range(3)], [Tensor(0.0) for _ in range(3)]
        loss = Tensor(0.0)
        for x, y in zip(series, series[1:]):
            state = cell([Tensor(x)], state)
            prediction = Tensor(0.0)
            for w, h in zip(head, state[0]):
                prediction = prediction + w * h
            difference = prediction - y
            loss = loss + difference * difference
        loss = loss * (1.0 / (len(series) - 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.value

    calls = [([math.sin(0.5 * (k + t)) for t in range(6)],) for k in range(5)]
    return train_step, calls, lambda: [(p.value, p.grad, p.velocity) for p in parameters]
