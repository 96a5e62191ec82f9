"""Learn to compile an autograd class of your own: nothing but the decorator knows of mgjit.

A small network learns a spiral, with momentum in a plain list. The `backward` of the class is ordinary Python, which
mgjit recognises and compiles as well.

Run: python examples/own_class.py
"""

import math
import os
import random

import mgjit

STEPS = int(os.environ.get("STEPS", "2000"))


class Scalar:
    def __init__(self, data, operands=(), derivatives=()):
        self.data, self.grad, self.operands, self.derivatives = data, 0.0, operands, derivatives

    def __add__(self, other):
        return Scalar(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        return Scalar(self.data * other.data, (self, other), (other.data, self.data))

    def tanh(self):
        t = math.tanh(self.data)
        return Scalar(t, (self,), (1.0 - t * t,))

    def backward(self):
        order, seen = [], set()

        def visit(node):
            if node not in seen:
                seen.add(node)
                list(map(visit, node.operands))
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for operand, derivative in zip(node.operands, node.derivatives):
                operand.grad += derivative * node.grad


draw = random.Random(2)
hidden = [[Scalar(draw.gauss(0, 1.0)) for _ in range(3)] for _ in range(24)]
output = [Scalar(draw.gauss(0, 0.3)) for _ in range(24)]
parameters = [w for row in hidden for w in row] + output
speed = [0.0] * len(parameters)


def predict(x, y):
    total = Scalar(0.0)
    for (a, b, c), w in zip(hidden, output):
        total = total + (a * Scalar(x) + b * Scalar(y) + c).tanh() * w
    return total.tanh()


@mgjit.compile
def train_step(x, y, label, rate):
    error = predict(x, y) + Scalar(-label)
    loss = error * error
    loss.backward()
    for i, p in enumerate(parameters):
        speed[i] = 0.9 * speed[i] - rate * p.grad
        p.data, p.grad = p.data + speed[i], 0.0
    return loss.data


total = 0.0
for k in range(1, STEPS + 1):
    arm, angle = draw.choice((-1.0, 1.0)), draw.uniform(0.0, 5.0)
    radius = 0.2 + angle / 5
    total += train_step(arm * radius * math.cos(angle), arm * radius * math.sin(angle), arm, 0.01)
    if k % (STEPS // 4) == 0:
        print(f"step {k:5}  mean loss {4 * total / STEPS:.4f}")
        total = 0.0
