"""Variational autoencoder that draws its noise itself, on one long vector of parameters without any class."""

import math
import random

VISIBLE, HIDDEN, LATENT = 5, 4, 2
random.seed(81)
parameters = [random.gauss(0.0, 0.4) for _ in range(VISIBLE * HIDDEN + 2 * HIDDEN * LATENT + LATENT * VISIBLE)]
squares = [0.0] * len(parameters)
beta = 1.0


def noise():
    return random.gauss(0, 1)


def rows(flat, start, count, width):
    return [flat[start + k * width : start + (k + 1) * width] for k in range(count)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def losses_and_gradients(xs):
    encoder = rows(parameters, 0, HIDDEN, VISIBLE)
    at = HIDDEN * VISIBLE
    means, at = rows(parameters, at, LATENT, HIDDEN), at + LATENT * HIDDEN
    spreads, at = rows(parameters, at, LATENT, HIDDEN), at + LATENT * HIDDEN
    decoder = rows(parameters, at, VISIBLE, LATENT)
    hidden = [math.tanh(dot(row, xs)) for row in encoder]
    mean, spread = [dot(row, hidden) for row in means], [dot(row, hidden) for row in spreads]
    drawn = [noise() for _ in range(LATENT)]
    sigma = [math.exp(0.5 * s) for s in spread]
    z = [m + s * e for m, s, e in zip(mean, sigma, drawn)]
    logits = [dot(row, z) for row in decoder]
    outs = [1.0 / (1.0 + math.exp(-l)) for l in logits]
    reconstruction = sum(math.log(1.0 + math.exp(l)) - l * x for l, x in zip(logits, xs))
    divergence = 0.5 * sum(m * m + math.exp(s) - s - 1.0 for m, s in zip(mean, spread))
    # backward, by hand
    d_logits = [o - x for o, x in zip(outs, xs)]
    d_decoder = [d * u for d in d_logits for u in z]
    d_z = [sum(d * row[k] for d, row in zip(d_logits, decoder)) for k in range(LATENT)]
    d_mean = [d + beta * m for d, m in zip(d_z, mean)]
    d_spread = [d * 0.5 * s * e + beta * 0.5 * (math.exp(v) - 1.0) for d, s, e, v in zip(d_z, sigma, drawn, spread)]
    d_hidden = [
        sum(d * row[k] for d, row in zip(d_mean, means)) + sum(d * row[k] for d, row in zip(d_spread, spreads))
        for k in range(HIDDEN)
    ]
    d_before = [d * (1.0 - h * h) for d, h in zip(d_hidden, hidden)]
    gradient = [d * x for d in d_before for x in xs]
    gradient += [d * h for d in d_mean for h in hidden] + [d * h for d in d_spread for h in hidden] + d_decoder
    return reconstruction + beta * divergence, gradient


def step(xs, lr):
    global beta
    loss, gradient = losses_and_gradients(xs)
    for i, g in enumerate(gradient):
        squares[i] = 0.9 * squares[i] + 0.1 * g * g
        parameters[i] -= lr * g / (math.sqrt(squares[i]) + 1e-8)
    beta = min(1.0, beta * 0.9 + random.uniform(0.0, 0.2))
    return loss


def make():
    rng = random.Random(82)
    calls = [([float(rng.random() < 0.5) for _ in range(VISIBLE)], 0.01) for _ in range(8)]
    return step, calls, lambda: (parameters, squares, beta, random.getstate())
