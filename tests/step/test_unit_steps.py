"""step/unit_steps.py: what a function must not do to be compiled by itself."""

from __future__ import annotations

import random
from typing import Any

import pytest

import mgjit
from mgjit.kernels.first_calls import earnings
from mgjit.step import unit_steps, units
from tests.step.unit_programs import Node

W = [Node(0.5), Node(-0.25), Node(1.5)]
total = [0.0]


def counts(name: list[int]) -> Any:
    total[0] += 1.0
    return sum(W[letter] * W[0] for letter in name)


def draws(name: list[int]) -> Any:
    return sum(W[letter] * W[0] * random.random() for letter in name)


def prints(name: list[int]) -> Any:
    print("sample")
    return sum(W[letter] * W[0] for letter in name)


def trains(name: list[int]) -> Any:
    loss: Any = sum(W[letter] * W[0] for letter in name)
    loss.backward()
    return loss * 1.0


def changes(name: list[int]) -> Any:
    W[0].data += 0.125
    return sum(W[letter] * W[0] for letter in name)


@pytest.mark.filterwarnings("ignore::mgjit.errors.SideEffectWarning")
@pytest.mark.parametrize("sample", [counts, draws, prints, trains, changes])
def test_a_function_that_does_more_than_compute_is_left_to_python(sample: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGJIT_BACKGROUND", "1")
    monkeypatch.setattr(earnings, "_BEFORE_FIRST", 0.0)
    monkeypatch.setattr(units, "_SECONDS", 0.0)
    monkeypatch.setattr("mgjit.step.leaving.unlooked", lambda *given: 0)  # each call looks for a kernel
    monkeypatch.setattr(unit_steps, "_PATIENCE", 0.0)
    monkeypatch.setattr(unit_steps, "_HORIZON", 1e9)
    monkeypatch.setattr(unit_steps, "_SHARE", 1e9)

    def step(batch: list[list[int]]) -> Any:
        loss = sum(sample(name) for name in batch)
        loss.backward()
        return loss.data

    draw = random.Random(3)
    batches = [[[draw.randrange(3) for _ in range(draw.randrange(1, 5))] for _ in range(3)] for _ in range(20)]

    def outcome(function: Any) -> list[Any]:
        for w, number in zip(W, (0.5, -0.25, 1.5)):
            w.data, w.grad = number, 0.0
        total[0] = 0.0
        random.seed(1)
        found = []
        for batch in batches:
            if function is not step:
                function.wait()
            found.append((function(batch), [w.grad for w in W], total[0]))
        return found

    expected = outcome(step)
    compiled: Any = mgjit.compile(backend="python")(step)
    assert outcome(compiled) == expected
    assert not sum(one.calls for both in compiled.stats.units.values() for one in both)
