"""A scalar autograd engine with closures, which several of the scripts import."""

import math
import random


class Value:
    """A number that remembers what it was computed from."""

    def __init__(self, data, children=()):
        self.data, self.grad = data, 0.0
        self.children, self.back = children, None

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other))

        def back():
            self.grad += out.grad
            other.grad += out.grad

        out.back = back
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other))

        def back():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out.back = back
        return out

    def __pow__(self, exponent):
        out = Value(self.data**exponent, (self,))

        def back():
            self.grad += exponent * self.data ** (exponent - 1) * out.grad

        out.back = back
        return out

    def unary(self, number, derivative):
        out = Value(number, (self,))

        def back():
            self.grad += derivative * out.grad

        out.back = back
        return out

    def tanh(self):
        t = math.tanh(self.data)
        return self.unary(t, 1 - t * t)

    def exp(self):
        e = math.exp(self.data)
        return self.unary(e, e)

    def log(self):
        return self.unary(math.log(self.data), 1 / self.data)

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + (-other)

    def __truediv__(self, other):
        return self * other**-1

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self):
        return f"Value({self.data})"

    def backward(self):
        order, seen = [], set()

        def visit(node):
            if id(node) not in seen:
                seen.add(id(node))
                for child in node.children:
                    visit(child)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            if node.back:
                node.back()


class Layer:
    """A dense layer."""

    def __init__(self, inputs, outputs, rng, nonlinear=True):
        self.w = [[Value(rng.gauss(0, inputs**-0.5)) for _ in range(inputs)] for _ in range(outputs)]
        self.b = [Value(0.0) for _ in range(outputs)]
        self.nonlinear = nonlinear

    def __call__(self, x):
        out = [sum((wi * xi for wi, xi in zip(row, x)), b) for row, b in zip(self.w, self.b)]
        return [o.tanh() for o in out] if self.nonlinear else out

    def parameters(self):
        return [p for row in self.w for p in row] + self.b


class MLP:
    """Dense layers, the last one linear."""

    def __init__(self, sizes, seed=0):
        rng = random.Random(seed)
        last = len(sizes) - 2
        self.layers = [Layer(a, b, rng, k < last) for k, (a, b) in enumerate(zip(sizes, sizes[1:]))]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def parameters(self):
        return [p for layer in self.layers for p in layer.parameters()]

    def zero_grad(self):
        for p in self.parameters():
            p.grad = 0.0


class SGD:
    """Gradient descent with momentum."""

    def __init__(self, params, lr, momentum=0.0):
        self.params, self.lr, self.momentum = params, lr, momentum
        self.velocity = [0.0] * len(params)

    def step(self):
        for k, p in enumerate(self.params):
            self.velocity[k] = self.momentum * self.velocity[k] + p.grad
            p.data -= self.lr * self.velocity[k]

    def zero_grad(self):
        for p in self.params:
            p.grad = 0.0


def softmax(logits):
    """Probabilities."""
    top = max(z.data for z in logits)
    exps = [(z - top).exp() for z in logits]
    total = sum(exps)
    return [e / total for e in exps]


def digest(params):
    """A number that all parameters have a part in, in full."""
    return sum(k * p.data for k, p in enumerate(params, 1))
