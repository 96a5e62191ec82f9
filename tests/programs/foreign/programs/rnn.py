"""Character-level recurrent network: Karpathy-style closures, one global model, plain SGD."""

import math
import random


class Scalar:
    def __init__(self, data, _prev=()):
        self.data = data
        self.grad = 0.0
        self._prev = _prev
        self._backward = lambda: None

    def __repr__(self):
        return f"Scalar({self.data})"

    def __add__(self, other):
        other = other if isinstance(other, Scalar) else Scalar(other)
        out = Scalar(self.data + other.data, (self, other))

        def _backward():
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Scalar) else Scalar(other)
        out = Scalar(self.data * other.data, (self, other))

        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def tanh(self):
        t = math.tanh(self.data)
        out = Scalar(t, (self,))

        def _backward():
            self.grad += (1 - t * t) * out.grad

        out._backward = _backward
        return out

    def exp(self):
        out = Scalar(math.exp(self.data), (self,))

        def _backward():
            self.grad += out.data * out.grad

        out._backward = _backward
        return out

    def log(self):
        out = Scalar(math.log(self.data), (self,))

        def _backward():
            self.grad += out.grad / self.data

        out._backward = _backward
        return out

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + (-other)

    __radd__ = __add__
    __rmul__ = __mul__

    def backward(self):
        topo, visited = [], set()

        def build(v):
            if v in visited:
                return
            visited.add(v)
            for child in v._prev:
                build(child)
            topo.append(v)

        build(self)
        self.grad = 1.0
        for v in reversed(topo):
            v._backward()


random.seed(3)
vocabulary, hidden_size = 5, 6


def matrix(rows, columns):
    return [[Scalar(random.gauss(0, 0.3)) for _ in range(columns)] for _ in range(rows)]


Wxh = matrix(hidden_size, vocabulary)
Whh = matrix(hidden_size, hidden_size)
Why = matrix(vocabulary, hidden_size)
bh = [Scalar(0.0) for _ in range(hidden_size)]
by = [Scalar(0.0) for _ in range(vocabulary)]
parameters = [p for m in (Wxh, Whh, Why) for row in m for p in row] + bh + by


def cross_entropy(logits, target):
    biggest = max(l.data for l in logits)
    exps = [(l - biggest).exp() for l in logits]
    total = sum(exps)
    log_total = total.log()
    return sum(t * (log_total + biggest - l) for t, l in zip(target, logits))


def one_hot(token):
    return [1.0 if token == k else 0.0 for k in range(vocabulary)]


def step(tokens, learning_rate):
    h = [0.0] * hidden_size
    loss = 0
    for t in range(len(tokens) - 1):
        x = one_hot(tokens[t])
        h = [
            (sum(w * xi for w, xi in zip(Wxh[i], x)) + sum(w * hj for w, hj in zip(Whh[i], h)) + bh[i]).tanh()
            for i in range(hidden_size)
        ]
        logits = [sum(w * hj for w, hj in zip(Why[k], h)) + by[k] for k in range(vocabulary)]
        loss += cross_entropy(logits, one_hot(tokens[t + 1]))
    for p in parameters:
        p.grad = 0.0
    loss.backward()
    for p in parameters:
        p.data -= learning_rate * max(-5.0, min(5.0, p.grad))
    return loss.data / (len(tokens) - 1)


def make():
    calls = [
        ([0, 1, 2, 3, 4], 0.1),
        ([4, 3, 2, 1, 0], 0.1),
        ([1, 1, 2, 2, 0], 0.05),
        ([0, 4, 0, 4, 1], 0.05),
        ([2, 0, 3, 3, 3], 0.01),
    ]
    return step, calls, lambda: [(p.data, p.grad) for p in parameters]
