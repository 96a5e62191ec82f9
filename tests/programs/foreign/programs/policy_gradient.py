"""REINFORCE that plays inside the step: actions are sampled from the policy, and states and rewards follow from them."""

import math
import random


class Value:
    """In the style of microgpt: operands and local derivatives in tuples."""

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


random.seed(91)
STATES, ACTIONS, STEPS = 4, 3, 3
weights = [[Value(random.gauss(0, 0.5)) for _ in range(STATES)] for _ in range(ACTIONS)]
parameters = [p for row in weights for p in row]
payoff = [[random.uniform(-1, 1) for _ in range(ACTIONS)] for _ in range(STATES)]
following = [[random.randrange(STATES) for _ in range(ACTIONS)] for _ in range(STATES)]
baseline = 0.0


def softmax(values):
    top = max(v.data for v in values)
    exps = [(v - top).exp() for v in values]
    total = sum(exps)
    return [e / total for e in exps]


def learn(state, lr, decay):
    global baseline
    losses, total = [], 0.0
    actions = []
    for _ in range(STEPS):
        here = [1.0 if k == state else 0.1 for k in range(STATES)]
        probs = softmax([sum(w * x for w, x in zip(row, here)) for row in weights])
        action = random.choices(range(ACTIONS), weights=[p.data for p in probs])[0]
        reward = payoff[state][action] + random.gauss(0, 0.1)
        total = total + reward
        losses.append(-probs[action].log() * (reward - baseline))
        actions.append(action)
        state = following[state][action]
    loss = sum(losses) * (1 / STEPS)
    baseline = decay * baseline + (1 - decay) * total
    loss.backward()
    for p in parameters:
        p.data -= lr * p.grad
        p.grad = 0
    return loss.data, total, actions, state


def make():
    calls = [(k % STATES, 0.1 / (1 + k), 0.9) for k in range(8)]
    return learn, calls, lambda: ([p.data for p in parameters], baseline, random.getstate())
