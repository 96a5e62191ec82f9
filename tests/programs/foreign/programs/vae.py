"""Variational autoencoder; the noise is drawn outside and passed in.  RMSprop with its averages in dicts."""

import math
import random


class Expression:
    """Operators as static methods; derivatives are kept in a dict from operand to factor."""

    def __init__(self, value, terms=None):
        self.value = value
        self.adjoint = 0.0
        self.terms = terms or []

    @staticmethod
    def of(x):
        return x if isinstance(x, Expression) else Expression(float(x))

    @staticmethod
    def add(a, b):
        a, b = Expression.of(a), Expression.of(b)
        return Expression(a.value + b.value, [(a, 1.0), (b, 1.0)])

    @staticmethod
    def subtract(a, b):
        a, b = Expression.of(a), Expression.of(b)
        return Expression(a.value - b.value, [(a, 1.0), (b, -1.0)])

    @staticmethod
    def multiply(a, b):
        a, b = Expression.of(a), Expression.of(b)
        return Expression(a.value * b.value, [(a, b.value), (b, a.value)])

    __add__ = __radd__ = lambda self, other: Expression.add(self, other)
    __mul__ = __rmul__ = lambda self, other: Expression.multiply(self, other)
    __sub__ = lambda self, other: Expression.subtract(self, other)
    __rsub__ = lambda self, other: Expression.subtract(other, self)

    def exp(self):
        e = math.exp(self.value)
        return Expression(e, [(self, e)])

    def tanh(self):
        t = math.tanh(self.value)
        return Expression(t, [(self, 1.0 - t * t)])

    def square(self):
        return Expression(self.value**2, [(self, 2 * self.value)])

    def softplus(self):
        """log(1 + e^x), without overflow."""
        x = self.value
        value = max(x, 0.0) + math.log(1.0 + math.exp(-abs(x)))
        return Expression(value, [(self, 1.0 / (1.0 + math.exp(-x)))])

    def backward(self):
        count = {}
        stack = [self]
        while stack:
            node = stack.pop()
            for child, _ in node.terms:
                if id(child) in count:
                    count[id(child)] += 1
                else:
                    count[id(child)] = 1
                    stack.append(child)
        self.adjoint = 1.0
        ready = [self]
        while ready:
            node = ready.pop()
            for child, factor in node.terms:
                child.adjoint += factor * node.adjoint
                count[id(child)] -= 1
                if count[id(child)] == 0:
                    ready.append(child)


class Linear:
    def __init__(self, name, n_in, n_out, rng):
        bound = 1.0 / math.sqrt(n_in)
        self.name = name
        self.weights = [[Expression(rng.uniform(-bound, bound)) for _ in range(n_in)] for _ in range(n_out)]
        self.biases = [Expression(0.0) for _ in range(n_out)]

    def __call__(self, xs):
        outs = []
        for row, bias in zip(self.weights, self.biases):
            total = bias
            for w, x in zip(row, xs):
                total = total + w * x
            outs.append(total)
        return outs

    def named_parameters(self):
        for i, row in enumerate(self.weights):
            for j, w in enumerate(row):
                yield f"{self.name}.w{i}.{j}", w
        for i, b in enumerate(self.biases):
            yield f"{self.name}.b{i}", b


class VAE:
    def __init__(self, rng, visible=6, hidden=4, latent=2):
        self.encoder = Linear("encoder", visible, hidden, rng)
        self.mean = Linear("mean", hidden, latent, rng)
        self.log_variance = Linear("log_variance", hidden, latent, rng)
        self.decoder = Linear("decoder", latent, hidden, rng)
        self.output = Linear("output", hidden, visible, rng)

    def layers(self):
        return [self.encoder, self.mean, self.log_variance, self.decoder, self.output]

    def loss(self, xs, noise):
        h = [u.tanh() for u in self.encoder(xs)]
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = [m + (lv * 0.5).exp() * e for m, lv, e in zip(mean, log_variance, noise)]
        logits = self.output([u.tanh() for u in self.decoder(z)])
        reconstruction = sum(logit.softplus() - logit * x for logit, x in zip(logits, xs))
        divergence = sum((m.square() + lv.exp() - lv - 1.0) * 0.5 for m, lv in zip(mean, log_variance))
        return reconstruction + divergence, reconstruction.value, divergence.value


def make():
    rng = random.Random(21)
    model = VAE(rng)
    parameters = {name: p for layer in model.layers() for name, p in layer.named_parameters()}
    squares = {name: 0.0 for name in parameters}

    def step(xs, noise, lr=0.01, decay=0.9):
        loss, reconstruction, divergence = model.loss(xs, noise)
        loss.backward()
        for name, p in parameters.items():
            squares[name] = decay * squares[name] + (1 - decay) * p.adjoint**2
            p.value -= lr * p.adjoint / (math.sqrt(squares[name]) + 1e-8)
            p.adjoint = 0.0
        return loss.value, reconstruction, divergence

    calls = [([float(rng.random() < 0.5) for _ in range(6)], [rng.gauss(0.0, 1.0) for _ in range(2)]) for _ in range(5)]
    return step, calls, lambda: ([(p.value, p.adjoint) for p in parameters.values()], squares)
