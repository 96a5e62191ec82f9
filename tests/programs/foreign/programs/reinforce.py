"""REINFORCE: the episode was played outside; a step learns from its states, actions and rewards."""

import math
import random


class Value:
    def __init__(self, data, _children=()):
        self.data = data
        self.grad = 0.0
        self._prev = list(_children)
        self._backward = lambda: None

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other))

        def backward():
            self.grad = self.grad + out.grad
            other.grad = other.grad + out.grad

        out._backward = backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other))

        def backward():
            self.grad = self.grad + other.data * out.grad
            other.grad = other.grad + self.data * out.grad

        out._backward = backward
        return out

    def tanh(self):
        x = self.data
        t = (math.exp(2 * x) - 1) / (math.exp(2 * x) + 1)
        out = Value(t, (self,))

        def backward():
            self.grad = self.grad + (1 - t**2) * out.grad

        out._backward = backward
        return out

    def exp(self):
        out = Value(math.exp(self.data), (self,))

        def backward():
            self.grad = self.grad + out.data * out.grad

        out._backward = backward
        return out

    def log(self):
        out = Value(math.log(self.data), (self,))

        def backward():
            self.grad = self.grad + 1.0 / self.data * out.grad

        out._backward = backward
        return out

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + (-other)

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other

    def backward(self):
        topo = []
        visited = set()

        def build_topo(v):
            if v not in visited:
                visited.add(v)
                for child in v._prev:
                    build_topo(child)
                topo.append(v)

        build_topo(self)
        self.grad = 1.0
        for node in reversed(topo):
            node._backward()


random.seed(41)
STATES, HIDDEN, ACTIONS, GAMMA = 3, 5, 3, 0.9
hidden_weights = [[Value(random.gauss(0, 0.5)) for _ in range(STATES)] for _ in range(HIDDEN)]
policy_weights = [[Value(random.gauss(0, 0.5)) for _ in range(HIDDEN)] for _ in range(ACTIONS)]
parameters = [w for row in hidden_weights + policy_weights for w in row]
baseline = 0.0
episodes = 0


def log_policy(state):
    hidden = [sum(w * s for w, s in zip(row, state)).tanh() for row in hidden_weights]
    logits = [sum(w * h for w, h in zip(row, hidden)) for row in policy_weights]
    log_total = sum(l.exp() for l in logits).log()
    return [l - log_total for l in logits]


def learn(states, actions, rewards, lr):
    global baseline, episodes
    returns, future = [], 0.0
    for reward in reversed(rewards):
        future = reward + GAMMA * future
        returns.insert(0, future)
    loss = Value(0.0)
    for state, action, value in zip(states, actions, returns):
        log_probabilities = log_policy(state)
        loss += -log_probabilities[action] * (value - baseline)
    baseline = 0.9 * baseline + 0.1 * returns[0]
    episodes += 1
    for p in parameters:
        p.grad = 0.0
    loss.backward()
    norm = math.sqrt(sum(p.grad * p.grad for p in parameters))
    clip = 1.0 / norm if norm > 1.0 else 1.0
    for p in parameters:
        p.data -= lr * clip * p.grad
    return loss.data, norm


def make():
    rng = random.Random(42)

    def episode():
        states = [[rng.uniform(-1, 1) for _ in range(STATES)] for _ in range(4)]
        return states, [rng.randrange(ACTIONS) for _ in range(4)], [rng.uniform(-1, 1) for _ in range(4)], 0.05

    return learn, [episode() for _ in range(5)], lambda: ([(p.data, p.grad) for p in parameters], baseline, episodes)
