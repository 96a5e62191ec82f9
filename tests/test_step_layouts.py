"""Parameters, and state beside them, that lie in another order than the user sees them in."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import nn
from tests.export.compiling import checked

SIZES = (6, [9, 4])


class Trainer:
    """A network with momentum and a second moment, in one State after the other, or in one for both."""

    def __init__(self, together: bool) -> None:
        self.model = nn.MLP(*SIZES, seed=5)
        self.parameters = self.model.parameters()
        self.count = len(self.parameters)
        self.first = mgjit.zeros(self.count * (2 if together else 1))
        self.second = self.first if together else mgjit.zeros(self.count)
        self.behind = self.count if together else 0

    def train(self, x: list[float], rate: float) -> Any:
        loss = sum((s * s for s in self.model(x)), 0.0)
        self.model.zero_grad()
        loss.backward()
        for k, p in enumerate(self.parameters):
            self.first[k] = 0.9 * self.first[k] + p.grad
            self.second[self.behind + k] = 0.5 * self.second[self.behind + k] + p.grad * p.grad
            p.data -= rate * self.first[k] / (1.0 + self.second[self.behind + k])
        return loss

    def decay(self, factor: float) -> Any:
        """Walks state alone, and parameters alone."""
        for k in range(len(self.first)):
            self.first[k] = factor * self.first[k]
        total = 0.0
        for p in self.parameters:
            p.data = p.data * factor
            total = total + p.data
        return total

    def evaluate(self, x: list[float]) -> Any:
        return sum((s * s for s in self.model(x)), 0.0)

    def numbers(self) -> list[float]:
        return [*(p.data for p in self.parameters), *(p.grad for p in self.parameters), *self.first, *self.second]


def course(compiled: bool, together: bool, evaluated_first: bool, **options: Any) -> list[Any]:
    """Everything that can be seen while a network is trained in calls, in loops, by two steps, and by hand."""
    trainer, draw = Trainer(together), random.Random(7)

    def made(function: Callable[..., Any]) -> Any:
        return mgjit.compile(function, background=False, **options) if compiled else function

    train, decay, evaluate = made(trainer.train), made(trainer.decay), made(trainer.evaluate)
    rows = [[draw.uniform(-1, 1) for _ in range(6)] for _ in range(12)]
    seen: list[Any] = []
    if evaluated_first:
        seen += [evaluate(row).data for row in rows[:3]]
    seen += [train(row, 0.05).data for row in rows[:4]]
    trainer.first[3], trainer.first[-1] = 0.25, -trainer.first[-2]
    trainer.first[4:7] = trainer.first[10:13]
    seen += [decay(0.5) for _ in range(3)]
    seen += list(train.loop(rows, 0.05)) if compiled else [train(row, 0.05).data for row in rows]
    seen += [evaluate(row).data for row in rows[:3]]
    seen += [train(row, 0.05).data for row in rows[:4]]
    assert not compiled or train.stats.traces == 1
    return [*map(float, seen), *trainer.numbers()]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("evaluated_first", [False, True])
def test_state_beside_parameters_is_what_it_would_be(together: bool, evaluated_first: bool) -> None:
    """Steps that train, decay and evaluate, and assignments in between."""
    assert course(True, together, evaluated_first) == course(False, together, evaluated_first)


@pytest.mark.parametrize("backend", ["python", "c"])
def test_in_float32_and_in_generated_python(backend: str) -> None:
    """Both backends keep the same numbers."""
    found = course(True, False, False, dtype="float32", backend=backend)
    assert found == course(True, False, False, dtype="float32")
    assert all(math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-5) for a, b in zip(found, course(False, False, False)))


def test_what_a_state_is_afterwards() -> None:
    """A copy, a representation and slices are in the order of the elements."""
    trainer = Trainer(False)
    train = mgjit.compile(trainer.train, background=False)
    for _ in range(3):
        train([0.1 * k for k in range(6)], 0.05)
    assert trainer.first._layout is not None
    numbers = [trainer.first[k] for k in range(len(trainer.first))]
    assert list(trainer.first) == numbers == trainer.first[:]
    assert repr(trainer.first) == f"mgjit.state({numbers})"
    kind, (copied,) = trainer.first.__reduce__()
    assert list(kind(copied)) == numbers
    with pytest.raises(IndexError):
        trainer.first[len(numbers)]


def test_exported_and_frozen_steps_have_the_natural_order(tmp_path: Path) -> None:
    """Export takes the numbers as they are now; freezing copies them."""
    trainer = Trainer(True)
    train = mgjit.compile(trainer.train, background=False)
    x = [0.1 * k for k in range(6)]
    for _ in range(3):
        train(x, 0.05)

    def scaled(x: list[float]) -> Any:
        return trainer.evaluate(x) * trainer.first[3] + trainer.first[trainer.count + 2]

    frozen = mgjit.freeze(scaled, x)
    assert frozen(x) == float(scaled(x).data)
    before = trainer.numbers()
    train.export(tmp_path, "net")
    assert trainer.numbers() == before
    checked(tmp_path, "net")
