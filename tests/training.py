"""The workloads that compiled steps are compared on: networks and optimisers; the rest is in shapes.py.

`WORKLOADS[name]()` makes a fresh `Instance`, the same numbers every time: one instance runs undecorated, the
others compiled.  Nothing here depends on how mgjit works inside.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import mgjit
from mgjit import data as datasets
from mgjit import nn
from tests import shapes
from tests.workload import CALLS, WORKLOADS, Instance, descend, numbers, regression, reset, workload

__all__ = ["CALLS", "WORKLOADS", "mnist", "shapes"]


# ---- classics ---------------------------------------------------------------------------------------


@workload("xor")
def xor() -> Instance:
    model = nn.MLP(2, [4, 1], seed=5)
    xs = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]

    def step(xs: Any, ys: Any, lr: Any) -> Any:
        loss = sum((model(x) - y) ** 2 for x, y in zip(xs, ys))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= lr * p.grad
        return loss

    return Instance(step, [(xs, [0, 1, 1, 0], 0.1 - 0.001 * k) for k in range(CALLS)], model.parameters())


def moons_data(n: int, noise: float, seed: int) -> tuple[list[list[float]], list[float]]:
    """Points on two half circles, labels -1 and 1."""
    draw = random.Random(seed)
    xs, ys = [], []
    for k in range(n):
        angle = math.pi * draw.random()
        x, y = math.cos(angle), math.sin(angle)
        if k % 2:
            x, y = 1.0 - x, 0.5 - y
        xs.append([x + draw.gauss(0.0, noise), y + draw.gauss(0.0, noise)])
        ys.append(1.0 if k % 2 else -1.0)
    return xs, ys


@workload("two moons 2-16-16-1, batch 100")
def moons() -> Instance:
    model = nn.MLP(2, [16, 16, 1], seed=11)

    def step(xs: Any, ys: Any, lr: Any) -> Any:
        scores = [model(x) for x in xs]
        losses = [(1 + -y * s).relu() for y, s in zip(ys, scores)]
        data_loss = sum(losses) * (1.0 / len(losses))
        loss = data_loss + 1e-4 * sum(p * p for p in model.parameters())
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= lr * p.grad
        return loss, scores

    calls = [(*moons_data(100, 0.1, 40 + k % 3), 1.0 - 0.9 * k / 100) for k in range(CALLS)]
    return Instance(step, calls, model.parameters())


def image_step(model: nn.MLP, scale: float) -> Callable[..., Any]:
    """Squared error against one-hot labels, one image a step."""

    def step(pixels: Any, label: Any, lr: Any) -> Any:
        scores = model([pixel / scale for pixel in pixels])
        loss = sum((s - y) ** 2 for s, y in zip(scores, mgjit.one_hot(label, 10)))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= lr * p.grad
        return loss

    return step


@workload("digits 64-50-10")
def digits() -> Instance:
    train = datasets.digits().train
    model = nn.MLP(64, [50, 10])
    calls = [(train.images[k], train.labels[k], 0.01 / (1 + k % 3)) for k in range(CALLS)]
    return Instance(image_step(model, 16.0), calls, model.parameters())


def mnist(images: list[bytes] | None = None, labels: list[int] | None = None) -> Instance:
    """784-50-10, two steps; random pixels unless images are given. Too big for the registry."""
    draw = random.Random(784)
    if images is None or labels is None:
        images = [bytes(draw.randrange(256) for _ in range(784)) for _ in range(2)]
        labels = [3, 8]
    model = nn.MLP(784, [50, 10])
    calls = [(images[k], labels[k], 0.01) for k in range(2)]
    return Instance(image_step(model, 255.0), calls, model.parameters())


@workload("softmax cross-entropy, stable max")
def softmax() -> Instance:
    model = nn.MLP(6, [8, 5], seed=3)
    draw = random.Random(17)

    def step(x: Any, label: Any, lr: Any) -> Any:
        scores = model(x)
        top = scores[0].data
        for s in scores[1:]:
            top = mgjit.maximum(top, s.data)
        exps = [mgjit.exp(s - top) for s in scores]
        total = sum(exps)
        loss = -sum(y * mgjit.log(e / total) for y, e in zip(mgjit.one_hot(label, 5), exps))
        model.zero_grad()
        loss.backward()
        descend(model.parameters(), lr)
        return {"loss": loss, "probabilities": [e.data / total.data for e in exps]}

    return Instance(step, [(numbers(draw, 6), k % 5, 0.1) for k in range(CALLS)], model.parameters())


# ---- optimisers -------------------------------------------------------------------------------------


@workload("Adam, run-time t")
def adam() -> Instance:
    model = nn.MLP(3, [8, 1], seed=2)
    parameters = model.parameters()
    m, v = mgjit.zeros(len(parameters)), mgjit.zeros(len(parameters))

    def step(xs: Any, ys: Any, lr: Any, t: Any, beta1: float = 0.9, beta2: float = 0.999) -> Any:
        loss = sum((model(x) - y) ** 2 for x, y in zip(xs, ys)) / len(xs)
        reset(parameters)
        loss.backward()
        for i, p in enumerate(parameters):
            m[i] = beta1 * m[i] + (1 - beta1) * p.grad
            v[i] = beta2 * v[i] + (1 - beta2) * p.grad**2
            m_hat = m[i] / (1 - beta1**t)
            v_hat = v[i] / (1 - beta2**t)
            p.data -= lr * m_hat / (v_hat**0.5 + 1e-8)
        return loss

    calls = [(xs, ys, 0.01, t) for t, (xs, ys, _) in enumerate(regression(23, 6, 3), 1)]
    return Instance(step, calls, parameters, [m, v])


@workload("momentum")
def momentum() -> Instance:
    model = nn.MLP(3, [6, 6, 1], seed=4)
    velocity = mgjit.state([0.01] * len(model.parameters()))

    def step(xs: Any, ys: Any, lr: Any, mu: Any) -> Any:
        loss = sum((model(x) - y) ** 2 for x, y in zip(xs, ys))
        model.zero_grad()
        loss.backward()
        for i, p in enumerate(model.parameters()):
            velocity[i] = mu * velocity[i] - lr * p.grad
            p.data += velocity[i]
        return loss

    calls = [(xs, ys, 0.1 * lr, 0.9) for xs, ys, lr in regression(29, 5, 3)]
    return Instance(step, calls, model.parameters(), [velocity])


@workload("weight decay")
def weight_decay() -> Instance:
    model = nn.MLP(3, [7, 1], seed=6)

    def step(xs: Any, ys: Any, lr: Any, decay: Any) -> Any:
        loss = sum((model(x) - y) ** 2 for x, y in zip(xs, ys)) / len(xs)
        model.zero_grad()
        loss.backward()
        norm = 0.0
        for p in model.parameters():
            norm += p.grad * p.grad
            p.data -= lr * (p.grad + decay * p.data)
        return loss, mgjit.sqrt(norm)

    calls = [(*call, 0.01) for call in regression(31, 5, 3)]
    return Instance(step, calls, model.parameters(), one_pass=False)


@workload("gradient clipping")
def clipping() -> Instance:
    model = nn.MLP(3, [7, 1], seed=8)

    def step(xs: Any, ys: Any, lr: Any, limit: Any) -> Any:
        loss = sum(abs(model(x) - y) * 3.0 for x, y in zip(xs, ys))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.grad = mgjit.maximum(-limit, mgjit.minimum(limit, p.grad))
            p.data -= lr * p.grad
        return loss

    return Instance(step, [(*call, 0.5) for call in regression(37, 5, 3)], model.parameters())


@workload("gradient accumulation, a backward each sample")
def accumulation() -> Instance:
    model = nn.MLP(3, [5, 1], seed=9)

    def step(xs: Any, ys: Any, lr: Any) -> Any:
        model.zero_grad()
        total = 0.0
        for x, y in zip(xs, ys):
            loss = (model(x) - y) ** 2 / len(xs)
            loss.backward()
            total += loss.data
        for p in model.parameters():
            p.data -= lr * p.grad
        return total

    return Instance(step, regression(41, 8, 3), model.parameters(), one_pass=False)


@workload("inner loop of SGD steps")
def inner_loop() -> Instance:
    model = nn.MLP(3, [5, 1], seed=10)

    def step(xs: Any, ys: Any, lr: Any) -> Any:
        losses = []
        for x, y in zip(xs, ys):
            loss = (model(x) - y) ** 2
            model.zero_grad()
            loss.backward()
            for p in model.parameters():
                p.data -= lr * p.grad
            losses.append(loss)
        return losses

    return Instance(step, regression(43, 4, 3), model.parameters(), one_pass=False)


@workload("two models, losses and updates")
def adversaries() -> Instance:
    generator, critic = nn.MLP(2, [5, 2], seed=12), nn.MLP(2, [6, 1], seed=13)
    draw = random.Random(47)

    def chance(score: Any) -> Any:
        return 1 / (1 + mgjit.exp(-score))

    def step(noise: Any, real: Any, lr: Any) -> Any:
        fakes = [generator(z) for z in noise]
        right = sum(mgjit.log(chance(critic(x))) for x in real)
        caught = sum(mgjit.log(1 - chance(critic([v.data for v in fake]))) for fake in fakes)
        critic_loss = -right - caught
        critic.zero_grad()
        critic_loss.backward()
        descend(critic.parameters(), lr)
        generator_loss = -sum(mgjit.log(chance(critic(generator(z)))) for z in noise)
        generator.zero_grad()
        generator_loss.backward()
        descend(generator.parameters(), 0.5 * lr)
        return critic_loss, generator_loss

    rows = [[numbers(draw, 2) for _ in range(3)] for _ in range(2 * CALLS)]
    calls = [(rows[k], rows[-1 - k], 0.05) for k in range(CALLS)]
    return Instance(step, calls, generator.parameters() + critic.parameters(), one_pass=False)
