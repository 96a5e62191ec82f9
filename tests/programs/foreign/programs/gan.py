"""Generative adversarial network on numbers: two losses, two optimisers, two steps over the same parameters."""

import math
import random


class Value:
    """An autograd node whose children carry local gradients."""

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

    def __neg__(self):
        return self * -1

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other

    def __sub__(self, other):
        return self + (-other)

    def leaky_relu(self, slope=0.1):
        local = 1.0 if self.data > 0 else slope
        return Value(self.data * local, (self,), (local,))

    def log_sigmoid(self):
        s = 1 / (1 + math.exp(-self.data))
        return Value(math.log(s), (self,), (1 - s,))

    def backward(self):
        order = []
        visited = set()

        def visit(v):
            if id(v) in visited:
                return
            visited.add(id(v))
            for c in v._children:
                visit(c)
            order.append(v)

        visit(self)
        self.grad = 1
        for v in order[::-1]:
            for child, local in zip(v._children, v._local_grads):
                child.grad += local * v.grad


class MLP:
    def __init__(self, sizes, rng):
        self.layers = []
        for n_in, n_out in zip(sizes[:-1], sizes[1:]):
            w = [[Value(rng.gauss(0, n_in**-0.5)) for _ in range(n_in)] for _ in range(n_out)]
            b = [Value(0.0) for _ in range(n_out)]
            self.layers.append((w, b))

    def __call__(self, x):
        for k, (w, b) in enumerate(self.layers):
            x = [sum((wi * xi for wi, xi in zip(row, x)), bi) for row, bi in zip(w, b)]
            if k < len(self.layers) - 1:
                x = [xi.leaky_relu() for xi in x]
        return x

    def parameters(self):
        return [p for w, b in self.layers for p in [*(wi for row in w for wi in row), *b]]


class Optimizer:
    def __init__(self, params, lr):
        self.params = params
        self.lr = lr
        self.t = 0
        self.state = [{"m": 0.0, "v": 0.0} for _ in params]

    def step(self):
        self.t += 1
        for p, s in zip(self.params, self.state):
            s["m"] = 0.5 * s["m"] + 0.5 * p.grad
            s["v"] = 0.9 * s["v"] + 0.1 * p.grad**2
            m = s["m"] / (1 - 0.5**self.t)
            v = s["v"] / (1 - 0.9**self.t)
            p.data -= self.lr * m / (v**0.5 + 1e-8)

    def zero_grad(self):
        for p in self.params:
            p.grad = 0


rng = random.Random(17)
generator = MLP([2, 5, 1], rng)
discriminator = MLP([1, 5, 1], rng)
generator_optimizer = Optimizer(generator.parameters(), 0.01)
discriminator_optimizer = Optimizer(discriminator.parameters(), 0.02)


def train_discriminator(reals, noises):
    discriminator_optimizer.zero_grad()
    losses = []
    for real, noise in zip(reals, noises):
        fake = Value(generator(noise)[0].data)
        on_real, on_fake = discriminator([real])[0], discriminator([fake])[0]
        losses.append(-(on_real.log_sigmoid() + (-on_fake).log_sigmoid()))
    loss = sum(losses) * (1 / len(losses))
    loss.backward()
    discriminator_optimizer.step()
    return loss.data


def train_generator(noises):
    generator_optimizer.zero_grad()
    losses = [-discriminator(generator(noise))[0].log_sigmoid() for noise in noises]
    loss = sum(losses) * (1 / len(losses))
    loss.backward()
    generator_optimizer.step()
    return loss.data


def make():
    draw = random.Random(18)
    calls = []
    for _ in range(4):
        noises = [[draw.gauss(0, 1), draw.gauss(0, 1)] for _ in range(4)]
        calls.append(([draw.gauss(3, 0.5) for _ in range(4)], noises))
        calls.append((noises,))

    def observe():
        return [
            (
                [(p.data, float(p.grad)) for p in network.parameters()],
                optimizer.t,
                [(s["m"], s["v"]) for s in optimizer.state],
            )
            for network, optimizer in ((generator, generator_optimizer), (discriminator, discriminator_optimizer))
        ]

    return [train_discriminator, train_generator], calls, observe
