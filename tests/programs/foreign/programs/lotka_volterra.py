"""Lotka-Volterra equations, integrated by Runge-Kutta, fitted to data with forward-mode derivatives."""

import math


class Dual:
    """A number with its derivatives by the four parameters."""

    def __init__(self, real, parts):
        self.real = real
        self.parts = parts

    def __add__(self, other):
        if isinstance(other, Dual):
            return Dual(self.real + other.real, [a + b for a, b in zip(self.parts, other.parts)])
        return Dual(self.real + other, list(self.parts))

    def __sub__(self, other):
        if isinstance(other, Dual):
            return Dual(self.real - other.real, [a - b for a, b in zip(self.parts, other.parts)])
        return Dual(self.real - other, list(self.parts))

    def __mul__(self, other):
        if isinstance(other, Dual):
            parts = [a * other.real + self.real * b for a, b in zip(self.parts, other.parts)]
            return Dual(self.real * other.real, parts)
        return Dual(self.real * other, [a * other for a in self.parts])

    __radd__ = __add__
    __rmul__ = __mul__


def lotka_volterra(state, theta):
    x, y = state
    alpha, beta, delta, gamma = theta
    return [alpha * x - beta * x * y, delta * x * y - gamma * y]


def rk4(f, state, theta, h):
    def ahead(k, scale):
        return [s + scale * d for s, d in zip(state, k)]

    k1 = f(state, theta)
    k2 = f(ahead(k1, h / 2), theta)
    k3 = f(ahead(k2, h / 2), theta)
    k4 = f(ahead(k3, h), theta)
    return [s + (h / 6) * (a + 2 * b + 2 * c + d) for s, a, b, c, d in zip(state, k1, k2, k3, k4)]


class Fit:
    def __init__(self, theta, lr):
        self.theta = theta
        self.lr = lr
        self.squares = [0.0] * len(theta)
        self.iteration = 0

    def step(self, observed, h):
        n = len(self.theta)
        theta = [Dual(t, [1.0 if i == j else 0.0 for j in range(n)]) for i, t in enumerate(self.theta)]
        state = [Dual(v, [0.0] * n) for v in observed[0]]
        loss = Dual(0.0, [0.0] * n)
        for target in observed[1:]:
            for _ in range(3):
                state = rk4(lotka_volterra, state, theta, h)
            for s, t in zip(state, target):
                loss = loss + (s - t) * (s - t)
        self.iteration += 1
        for i, g in enumerate(loss.parts):
            self.squares[i] += g * g
            self.theta[i] -= self.lr * g / (math.sqrt(self.squares[i]) + 1e-10)
        return loss.real


def make():
    fit = Fit([1.1, 0.4, 0.12, 0.41], 0.02)

    def observed(k):
        state, rows = [5.0 + k, 3.0], [[5.0 + k, 3.0]]
        for _ in range(4):
            for _ in range(3):
                state = rk4(lotka_volterra, state, [1.0, 0.3, 0.1, 0.5], 0.05)
            rows.append(list(state))
        return rows

    return fit.step, [(observed(k), 0.05) for k in range(5)], lambda: (fit.theta, fit.squares, fit.iteration)
