"""One head of self-attention over embeddings that tokens look up in a list of lists of nodes."""

import math
import random


class Value:
    __slots__ = ("data", "grad", "_children", "_local_grads")

    def __init__(self, data, children=(), local_grads=()):
        self.data = data
        self.grad = 0
        self._children = children
        self._local_grads = local_grads

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), (1, 1))

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def __pow__(self, other):
        return Value(self.data**other, (self,), (other * self.data ** (other - 1),))

    def log(self):
        return Value(math.log(self.data), (self,), (1 / self.data,))

    def exp(self):
        return Value(math.exp(self.data), (self,), (math.exp(self.data),))

    def __neg__(self):
        return self * -1

    def __radd__(self, other):
        return self + other

    def __sub__(self, other):
        return self + (-other)

    def __rmul__(self, other):
        return self * other

    def __truediv__(self, other):
        return self * other**-1

    def backward(self):
        topo = []
        visited = set()

        def build_topo(v):
            if v not in visited:
                visited.add(v)
                for child in v._children:
                    build_topo(child)
                topo.append(v)

        build_topo(self)
        self.grad = 1
        for v in reversed(topo):
            for child, local_grad in zip(v._children, v._local_grads):
                child.grad += local_grad * v.grad


rng = random.Random(81)
VOCABULARY, WIDTH = 7, 4


def matrix(rows, columns):
    return [[Value(rng.gauss(0, 0.3)) for _ in range(columns)] for _ in range(rows)]


state = {
    name: matrix(VOCABULARY if name in ("wte", "head") else WIDTH, WIDTH) for name in ("wte", "q", "k", "v", "head")
}
params = [p for m in state.values() for row in m for p in row]
momentum = [0.0] * len(params)


def linear(x, w):
    return [sum(wi * xi for wi, xi in zip(row, x)) for row in w]


def softmax(logits):
    biggest = max(v.data for v in logits)
    exps = [(v - biggest).exp() for v in logits]
    total = sum(exps)
    return [e / total for e in exps]


def train(tokens, lr):
    keys, values, losses = [], [], []
    for token, target in zip(tokens, tokens[1:]):
        x = state["wte"][token]
        q = linear(x, state["q"])
        keys.append(linear(x, state["k"]))
        values.append(linear(x, state["v"]))
        weights = softmax([sum(a * b for a, b in zip(q, k)) / WIDTH**0.5 for k in keys])
        mixed = [sum(w * v[j] for w, v in zip(weights, values)) for j in range(WIDTH)]
        probabilities = softmax(linear([a + b for a, b in zip(x, mixed)], state["head"]))
        losses.append(-probabilities[target].log())
    loss = (1 / len(losses)) * sum(losses)
    loss.backward()
    for i, p in enumerate(params):
        momentum[i] = 0.9 * momentum[i] + p.grad
        p.data -= lr * momentum[i]
        p.grad = 0
    return loss.data


def make():
    calls = [([draw.randrange(VOCABULARY) for _ in range(5)], 0.1) for draw in map(random.Random, range(5))]
    return train, calls, lambda: ([(p.data, float(p.grad)) for p in params], momentum)
