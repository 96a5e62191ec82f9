"""A recurrent network over words: closures as in micrograd, gradients clipped, held-out loss between the steps."""

import math
import os
import random

import mgjit

STEPS = int(os.environ.get("STEPS", "150"))
HIDDEN = 10
random.seed(3)

TEXT = """apple river stone light cloud winter summer garden window yellow silver forest meadow candle bridge harbor
island pebble copper velvet thunder whisper lantern orchard sea sky oak fern moss rain snow leaf wolf bear hawk"""
WORDS = TEXT.split()
alphabet = "." + "".join(sorted(set("".join(WORDS))))
random.shuffle(WORDS)
held_out, training = WORDS[:5], WORDS[5:]


class Scalar:
    def __init__(self, data, prev=()):
        self.data = data
        self.grad = 0.0
        self._prev = prev
        self._backward = lambda: None

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
            if v not in visited:
                visited.add(v)
                for child in v._prev:
                    build(child)
                topo.append(v)

        build(self)
        self.grad = 1.0
        for v in reversed(topo):
            v._backward()


def matrix(rows, columns, scale):
    return [[Scalar(random.uniform(-scale, scale)) for _ in range(columns)] for _ in range(rows)]


embedding = matrix(len(alphabet), HIDDEN, 0.5)
recurrent = matrix(HIDDEN, HIDDEN, 0.3)
output = matrix(len(alphabet), HIDDEN, 0.3)
bias = [Scalar(0.0) for _ in range(len(alphabet))]
parameters = [p for rows in (embedding, recurrent, output) for row in rows for p in row] + bias


def word_loss(word, targets):
    h = [Scalar(0.0) for _ in range(HIDDEN)]
    total = Scalar(0.0)
    for token, target in zip(word, targets):
        x = [sum(e[j] * o for e, o in zip(embedding, token)) for j in range(HIDDEN)]
        h = [(sum(w * hj for w, hj in zip(row, h)) + xi).tanh() for row, xi in zip(recurrent, x)]
        logits = [sum(w * hj for w, hj in zip(row, h)) + b for row, b in zip(output, bias)]
        normaliser = sum(logit.exp() for logit in logits).log()
        total = total + normaliser - sum(logit * t for logit, t in zip(logits, target))
    return total * (1.0 / len(word))


@mgjit.compile
def step(word, targets, lr):
    loss = word_loss(word, targets)
    for p in parameters:
        p.grad = 0.0
    loss.backward()
    for p in parameters:
        p.data -= lr * max(-1.0, min(1.0, p.grad))
    return loss.data


@mgjit.compile
def evaluate(word, targets):
    return word_loss(word, targets).data


def one_hot(letter):
    return [1.0 if letter == other else 0.0 for other in alphabet]


def encoded(word):
    return [one_hot(c) for c in "." + word], [one_hot(c) for c in word + "."]


for k in range(STEPS):
    loss = step(*encoded(training[k % len(training)]), 0.3 * 0.99**k)
    if k % 50 == 49 or k == STEPS - 1:
        scores = [evaluate(*encoded(word)) for word in held_out]
        print(k, loss, sum(scores) / len(scores))
print("checksum", sum(p.data for p in parameters))
