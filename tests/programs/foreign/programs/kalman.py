"""A Kalman filter whose noises and dynamics are fitted by gradient descent on the likelihood: a tape of tuples."""

import math
import random


class Tape:
    """Values and derivatives in lists; a variable is an index into them."""

    def __init__(self):
        self.values = []
        self.edges = []

    def variable(self, value, *edges):
        self.values.append(value)
        self.edges.append(edges)
        return Var(self, len(self.values) - 1)

    def gradient(self, of):
        adjoints = [0.0] * len(self.values)
        adjoints[of.index] = 1.0
        for i in range(of.index, -1, -1):
            for j, weight in self.edges[i]:
                adjoints[j] += weight * adjoints[i]
        return adjoints


class Var:
    def __init__(self, tape, index):
        self.tape = tape
        self.index = index

    @property
    def value(self):
        return self.tape.values[self.index]

    def __add__(self, other):
        if isinstance(other, Var):
            return self.tape.variable(self.value + other.value, (self.index, 1.0), (other.index, 1.0))
        return self.tape.variable(self.value + other, (self.index, 1.0))

    def __sub__(self, other):
        if isinstance(other, Var):
            return self.tape.variable(self.value - other.value, (self.index, 1.0), (other.index, -1.0))
        return self.tape.variable(self.value - other, (self.index, 1.0))

    def __rsub__(self, other):
        return self.tape.variable(other - self.value, (self.index, -1.0))

    def __mul__(self, other):
        if isinstance(other, Var):
            return self.tape.variable(self.value * other.value, (self.index, other.value), (other.index, self.value))
        return self.tape.variable(self.value * other, (self.index, other))

    def __truediv__(self, other):
        quotient = self.value / other.value
        return self.tape.variable(quotient, (self.index, 1 / other.value), (other.index, -quotient / other.value))

    __radd__ = __add__
    __rmul__ = __mul__

    def log(self):
        return self.tape.variable(math.log(self.value), (self.index, 1 / self.value))

    def exp(self):
        e = math.exp(self.value)
        return self.tape.variable(e, (self.index, e))


parameters = {"log_q": -1.0, "log_r": 0.0, "a": 0.8}
history = {"evaluations": 0, "best": float("inf")}


def negative_log_likelihood(tape, log_q, log_r, a, observations):
    q, r = log_q.exp(), log_r.exp()
    mean, variance = tape.variable(0.0), tape.variable(1.0)
    total = tape.variable(0.0)
    for y in observations:
        mean, variance = a * mean, a * a * variance + q
        innovation, spread = y - mean, variance + r
        total = total + 0.5 * (spread.log() + innovation * innovation / spread)
        gain = variance / spread
        mean = mean + gain * innovation
        variance = (1.0 - gain) * variance
    return total


def fit_step(observations, learning_rate):
    tape = Tape()
    variables = {name: tape.variable(value) for name, value in parameters.items()}
    loss = negative_log_likelihood(tape, observations=observations, **variables)
    adjoints = tape.gradient(loss)
    for name, variable in variables.items():
        parameters[name] -= learning_rate * adjoints[variable.index]
    history["evaluations"] += 1
    history["best"] = min(history["best"], loss.value)
    return loss.value


def make():
    rng = random.Random(51)

    def series():
        x, ys = 0.0, []
        for _ in range(25):
            x = 0.95 * x + rng.gauss(0, 0.5)
            ys.append(x + rng.gauss(0, 0.3))
        return ys

    return fit_step, [(series(), 0.01 / (k + 1)) for k in range(5)], lambda: (parameters, history)
