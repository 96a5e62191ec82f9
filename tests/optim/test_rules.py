"""Each rule against its formula, as it stands in the article that proposes it, over plain numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mgjit
from mgjit import optim


def sgd(x: float, momentum: float = 0.0, dampening: float = 0.0, nesterov: bool = False) -> Iterator[float]:
    v = 0.0
    t = 0
    while True:
        g = yield x
        t += 1
        v = g if t == 1 else momentum * v + (1 - dampening) * g
        x -= 0.1 * (g + momentum * v if nesterov else v)


def adagrad(x: float) -> Iterator[float]:
    total, t = 0.5, 0
    while True:
        g = yield x
        t += 1
        total += g**2
        x -= 0.1 / (1 + (t - 1) * 0.2) * g / (math.sqrt(total) + 1e-10)


def adadelta(x: float) -> Iterator[float]:
    of_g = of_d = 0.0
    while True:
        g = yield x
        of_g = 0.9 * of_g + 0.1 * g**2
        d = math.sqrt(of_d + 1e-6) / math.sqrt(of_g + 1e-6) * g
        of_d = 0.9 * of_d + 0.1 * d**2
        x -= d


def rmsprop(x: float) -> Iterator[float]:
    v = mean = b = 0.0
    while True:
        g = yield x
        v, mean = 0.99 * v + 0.01 * g**2, 0.99 * mean + 0.01 * g
        b = 0.9 * b + g / (math.sqrt(v - mean**2) + 1e-8)
        x -= 0.01 * b


def adam(x: float, decay: float = 0.0, decoupled: bool = False, amsgrad: bool = False) -> Iterator[float]:
    m = v = greatest = 0.0
    t = 0
    while True:
        g = yield x
        t += 1
        if decoupled:
            x -= 0.1 * decay * x
        else:
            g += decay * x
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        greatest = max(greatest, v) if amsgrad else v
        x -= 0.1 * (m / (1 - 0.9**t)) / (math.sqrt(greatest / (1 - 0.999**t)) + 1e-8)


@pytest.mark.parametrize(
    ("make", "formula"),
    [
        (lambda p: optim.SGD(p, lr=0.1), sgd(1.0)),
        (lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3), sgd(1.0, 0.9, 0.3)),
        (lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True), sgd(1.0, 0.9, 0.0, True)),
        (lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.2, initial_accumulator_value=0.5), adagrad(1.0)),
        (optim.Adadelta, adadelta(1.0)),
        (lambda p: optim.RMSprop(p, momentum=0.9, centered=True), rmsprop(1.0)),
        (lambda p: optim.Adam(p, lr=0.1), adam(1.0)),
        (lambda p: optim.Adam(p, lr=0.1, weight_decay=0.1, amsgrad=True), adam(1.0, 0.1, amsgrad=True)),
        (lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.1), adam(1.0, 0.1, decoupled=True)),
    ],
)
def test_twenty_steps_are_those_of_the_formula(make: Callable[[Any], Any], formula: Any) -> None:
    draw = random.Random(2)
    x = mgjit.Value(1.0)
    optimizer = make([x])
    next(formula)
    for k in range(20):
        x.grad = draw.gauss(0.0, 1.0) * 0.8**k
        expected = formula.send(x.grad)
        optimizer.step()
        assert x.data == pytest.approx(expected, rel=1e-12)


def test_the_correction_of_the_bias_keeps_its_digits_in_float32() -> None:
    # 1 - 0.999**t, computed in float32 as it stands, has four digits at first.
    from mgjit import tensor as T

    x, y = (T.asarray([1.0], dtype=dtype, requires_grad=True) for dtype in ("float32", "float64"))
    for p in (x, y):
        optimizer = optim.Adam([p], lr=0.5)
        p.grad[...] = 0.125  # type: ignore[index]
        optimizer.step()
    assert x.item() == pytest.approx(y.item(), rel=1e-6)
