"""Steps that the tests export."""

from __future__ import annotations

import random
from typing import Any

import mgjit
from mgjit import nn

Calls = list[tuple[Any, ...]]


def classifier(inputs: int = 12, hidden: int = 9, outputs: int = 5, **options: Any) -> tuple[Any, nn.MLP, Calls]:
    """A training step of a small network, its model and calls."""
    model = nn.MLP(inputs, [hidden, outputs], seed=3)

    @mgjit.compile(background=False, **options)
    def train_step(pixels: Any, label: Any, lr: Any) -> Any:
        scores = model(pixels)
        wanted = mgjit.one_hot(label, outputs)
        loss = sum((s - y) ** 2 for s, y in zip(scores, wanted))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= lr * p.grad
        return loss

    draw = random.Random(1)
    calls: Calls = [([draw.uniform(-1, 1) for _ in range(inputs)], draw.randrange(outputs), 0.05) for _ in range(10)]
    return train_step, model, calls


def prediction(inputs: int = 12, hidden: int = 9, outputs: int = 5, **options: Any) -> tuple[Any, nn.MLP, Calls]:
    """A forward pass, its model and calls."""
    model = nn.MLP(inputs, [hidden, outputs], seed=3)

    @mgjit.compile(background=False, **options)
    def predict(pixels: Any) -> Any:
        return [mgjit.tanh(score) for score in model(pixels)]

    draw = random.Random(1)
    return predict, model, [([draw.uniform(-1, 1) for _ in range(inputs)],) for _ in range(3)]


def momentum(**options: Any) -> tuple[Any, Any, Calls]:
    """A step with state, plain floats and a counter around it, and a result with parts."""
    w = [mgjit.Value(0.1 * k) for k in range(4)]
    velocity = [0.0] * 4
    seen = {"calls": 0}

    @mgjit.compile(background=False, **options)
    def step(batch: Any, config: Any) -> Any:
        loss = mgjit.Value(0.0)
        for x, y in batch:
            guess = sum((a * b for a, b in zip(w, x)), mgjit.Value(0.0))
            loss = loss + (guess.tanh() - y) ** 2
        for p in w:
            p.grad = 0.0
        loss.backward()
        for k, p in enumerate(w):
            velocity[k] = config["beta"] * velocity[k] + p.grad
            p.data -= config["rate"] * velocity[k]
        seen["calls"] += 1
        return {"loss": loss, "weights": [p.data for p in w], "calls": seen["calls"]}

    draw = random.Random(2)
    batches = [[([draw.uniform(-1, 1) for _ in range(4)], draw.uniform(-1, 1)) for _ in range(3)] for _ in range(6)]
    return step, w, [(batch, {"beta": 0.9, "rate": 0.1}) for batch in batches]
