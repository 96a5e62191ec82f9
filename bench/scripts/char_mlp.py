"""Bengio's model as in makemore: three letters of context, embeddings, one hidden layer; batches of twelve contexts."""

import math
import os
import random

import mgjit

STEPS = int(os.environ.get("STEPS", "150"))
CONTEXT, EMBEDDING, HIDDEN, BATCH = 3, 4, 16, 12
draw = random.Random(11)
names = [
    "".join(draw.choice(["ka", "lo", "mi", "ne", "ru", "sa"]) for _ in range(draw.randint(1, 4))) for _ in range(80)
]
letters = "." + "".join(sorted(set("".join(names))))


class Node:
    """A node knows its operation by name, and one function knows all derivatives."""

    __slots__ = ("a", "b", "data", "grad", "op")

    def __init__(self, data, op="", a=None, b=None):
        self.data, self.op, self.a, self.b, self.grad = data, op, a, b, 0.0

    def __add__(self, other):
        return Node(self.data + other.data, "+", self, other)

    def __sub__(self, other):
        return Node(self.data - other.data, "-", self, other)

    def __mul__(self, other):
        return Node(self.data * other.data, "*", self, other)

    def tanh(self):
        return Node(math.tanh(self.data), "tanh", self)

    def exp(self):
        return Node(math.exp(self.data), "exp", self)

    def log(self):
        return Node(math.log(self.data), "log", self)


def backward(root):
    order, seen = [], set()

    def visit(node):
        if id(node) not in seen:
            seen.add(id(node))
            if node.a is not None:
                visit(node.a)
            if node.b is not None:
                visit(node.b)
            order.append(node)

    visit(root)
    root.grad = 1.0
    for node in reversed(order):
        a, b, g = node.a, node.b, node.grad
        if node.op == "+":
            a.grad += g
            b.grad += g
        elif node.op == "-":
            a.grad += g
            b.grad -= g
        elif node.op == "*":
            a.grad += g * b.data
            b.grad += g * a.data
        elif node.op == "tanh":
            a.grad += g * (1.0 - node.data * node.data)
        elif node.op == "exp":
            a.grad += g * node.data
        elif node.op == "log":
            a.grad += g / a.data


def grid(rows, columns, scale):
    return [[Node(draw.gauss(0.0, scale)) for _ in range(columns)] for _ in range(rows)]


C = grid(len(letters), EMBEDDING, 1.0)
W1, b1 = grid(HIDDEN, CONTEXT * EMBEDDING, 0.3), [Node(0.0) for _ in range(HIDDEN)]
W2, b2 = grid(len(letters), HIDDEN, 0.2), [Node(0.0) for _ in letters]
parameters = [p for mat in (C, W1, W2) for row in mat for p in row] + b1 + b2


def dot(ws, xs, total):
    for w, x in zip(ws, xs):
        total = total + w * x
    return total


def loss_of(context, target):
    x = []
    for hot in context:
        weights = [Node(h) for h in hot]
        x += [dot([row[j] for row in C[1:]], weights[1:], C[0][j] * weights[0]) for j in range(EMBEDDING)]
    h = [dot(row, x, b).tanh() for row, b in zip(W1, b1)]
    logits = [dot(row, h, b) for row, b in zip(W2, b2)]
    exps = [logit.exp() for logit in logits]
    total = exps[0]
    for e in exps[1:]:
        total = total + e
    chosen = dot(logits, [Node(t) for t in target], Node(0.0))
    return total.log() - chosen


@mgjit.compile
def train(contexts, targets, rate):
    losses = [loss_of(context, target) for context, target in zip(contexts, targets)]
    loss = losses[0]
    for other in losses[1:]:
        loss = loss + other
    loss = loss * Node(1.0 / len(losses))
    for p in parameters:
        p.grad = 0.0
    backward(loss)
    for p in parameters:
        p.data = p.data - rate * p.grad
    return loss.data


def one_hot(c):
    return [1.0 if c == other else 0.0 for other in letters]


examples = []
for name in names:
    padded = "." * CONTEXT + name + "."
    examples += [(padded[k : k + CONTEXT], padded[k + CONTEXT]) for k in range(len(name) + 1)]
for k in range(STEPS):
    batch = draw.sample(examples, BATCH)
    rate = 0.2 if k < STEPS // 2 else 0.05
    loss = train([[one_hot(c) for c in context] for context, _ in batch], [one_hot(c) for _, c in batch], rate)
    if k % 25 == 0 or k == STEPS - 1:
        print(k, loss)
print("checksum", sum(p.data for p in parameters))
