"""What the tests of frozen steps have in common."""

from __future__ import annotations

import random
from typing import Any

import mgjit
from mgjit import nn

XS = [0.3, -1.2, 0.7]


def numbers(result: Any) -> Any:
    """The bits of a result: Values, floats, or lists of them."""
    if isinstance(result, (list, tuple)):
        return [numbers(x) for x in result]
    return float(getattr(result, "data", result)).hex()


def training(model: Any) -> Any:
    @mgjit.compile(background=False, verify="never")
    def train(xs: Any, ys: Any, lr: float) -> Any:
        scores = model(xs)
        loss = sum((s - y) ** 2 for s, y in zip(scores, ys))
        for p in model.parameters():
            p.grad = 0.0
        loss.backward()
        for p in model.parameters():
            p.data -= lr * p.grad
        return loss, [s.data for s in scores]

    return train


def mlp(seed: int = 1) -> Any:
    random.seed(seed)
    return nn.MLP(3, [5, 2])
