"""REINFORCE on a pole that has to be balanced: episodes last as long as they last, an update follows each of them."""

import math
import os
import random

import mgjit

STEPS = int(os.environ.get("STEPS", "150"))
HIDDEN, LONGEST = 16, 40
random.seed(17)


class Value:
    __slots__ = ("data", "grad", "inputs", "local")

    def __init__(self, data, inputs=(), local=()):
        self.data, self.grad, self.inputs, self.local = data, 0.0, inputs, local

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    __radd__, __rmul__ = __add__, __mul__

    def tanh(self):
        t = math.tanh(self.data)
        return Value(t, (self,), (1 - t * t,))

    def softplus(self):
        e = math.exp(self.data)
        return Value(math.log(1 + e), (self,), (e / (1 + e),))

    def backward(self):
        self.grad = 1.0
        order, seen, stack = [], set(), [(self, False)]
        while stack:
            node, expanded = stack.pop()
            if expanded:
                order.append(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack.extend((child, False) for child in node.inputs)
        for node in reversed(order):
            for child, local in zip(node.inputs, node.local):
                child.grad += local * node.grad


w1 = [[Value(random.gauss(0, 0.5)) for _ in range(4)] for _ in range(HIDDEN)]
b1 = [Value(0.0) for _ in range(HIDDEN)]
w2 = [Value(random.gauss(0, 0.5)) for _ in range(HIDDEN)]
parameters = [p for row in w1 for p in row] + b1 + w2


def preference(observation):
    """How much rather to push to the right."""
    hidden = [sum((w * o for w, o in zip(row, observation)), b).tanh() for row, b in zip(w1, b1)]
    return sum(w * h for w, h in zip(w2, hidden))


def physics(state, action):
    """One fiftieth of a second of the classic cart and pole."""
    x, speed, angle, turning = state
    force = 10.0 if action else -10.0
    sine, cosine = math.sin(angle), math.cos(angle)
    pushed = (force + 0.05 * turning * turning * sine) / 1.1
    torque = (9.8 * sine - cosine * pushed) / (0.5 * (4 / 3 - 0.1 * cosine * cosine / 1.1))
    return [
        x + 0.02 * speed,
        speed + 0.02 * (pushed - 0.05 * torque * cosine / 1.1),
        angle + 0.02 * turning,
        turning + 0.02 * torque,
    ]


@mgjit.compile
def act(observation):
    return preference(observation).data


@mgjit.compile
def update(observations, signs, returns, lr):
    """`signs` are 1 where the cart was pushed to the right, -1 where to the left."""
    loss = sum((preference(o) * -s).softplus() * r for o, s, r in zip(observations, signs, returns))
    loss = loss * (1.0 / len(observations))
    for p in parameters:
        p.grad = 0.0
    loss.backward()
    for p in parameters:
        p.data -= lr * p.grad
    return loss


average = 0.0
for episode in range(STEPS):
    state = [random.uniform(-0.05, 0.05) for _ in range(4)]
    observations, signs = [], []
    while abs(state[2]) < 0.21 and abs(state[0]) < 2.4 and len(observations) < LONGEST:
        right = random.random() < 1 / (1 + math.exp(-act(state)))
        observations.append(state)
        signs.append(1.0 if right else -1.0)
        state = physics(state, right)
    length = len(observations)
    returns = [(length - t - average / 2) / LONGEST for t in range(length)]
    loss = update(observations, signs, returns, 0.1)
    average += 0.1 * (length - average)
    if episode % 20 == 19 or episode == STEPS - 1:
        print("episode", episode + 1, "steps", length, "average", average, "loss", loss.data)
print("checksum", sum(p.data for p in parameters))
