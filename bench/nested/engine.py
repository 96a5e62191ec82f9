"""A scalar that remembers how it was computed."""

import math


class Value:
    __slots__ = ("data", "grad", "_parents", "_local")

    def __init__(self, data, parents=(), local=()):
        self.data, self.grad, self._parents, self._local = data, 0.0, parents, local

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + (-other if isinstance(other, Value) else -1.0 * other)

    __radd__, __rmul__ = __add__, __mul__

    def tanh(self):
        t = math.tanh(self.data)
        return Value(t, (self,), (1.0 - t * t,))

    def sigmoid(self):
        s = 1.0 / (1.0 + math.exp(-self.data))
        return Value(s, (self,), (s * (1.0 - s),))

    def exp(self):
        e = math.exp(self.data)
        return Value(e, (self,), (e,))

    def log(self):
        return Value(math.log(self.data), (self,), (1.0 / self.data,))

    def power(self, k):
        return Value(self.data**k, (self,), (k * self.data ** (k - 1),))

    def backward(self):
        order, seen = [], set()

        def visit(node):
            if node not in seen:
                seen.add(node)
                for parent in node._parents:
                    visit(parent)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for parent, local in zip(node._parents, node._local):
                parent.grad += local * node.grad


def matrix(random, rows, columns, scale=0.3):
    return [[Value(random.gauss(0, scale)) for _ in range(columns)] for _ in range(rows)]


def linear(x, w):
    return [sum(wi * xi for wi, xi in zip(row, x)) for row in w]


def softmax(logits):
    exps = [v.exp() for v in logits]
    total = sum(exps)
    return [e * total.power(-1) for e in exps]


def flat(*parameters):
    return [p for w in parameters for row in w for p in (row if isinstance(row, list) else [row])]
