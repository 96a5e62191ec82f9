"""What a step assumes is tested before anything is stored, where that can be."""

from __future__ import annotations

import random
from typing import Any

import pytest

import mgjit


def _losses(before: bool) -> tuple[Any, list[mgjit.Value]]:
    """A step with a branch on the loss, or on a gradient that it has just computed; and its parameters."""
    w = [mgjit.Value(0.1 * k - 0.2) for k in range(5)]
    skipped = [0]

    def step(xs: list[float], y: float) -> Any:
        error = sum(p * x for p, x in zip(w, xs)) - y
        loss = error * error
        if before and loss.data > 1.0:
            skipped[0] += 1
            return "skipped", loss.data
        for p in w:
            p.grad = 0.0
        loss.backward()
        if not before and w[0].grad > 1.0:
            skipped[0] += 1
            return "skipped", loss.data
        for p in w:
            p.data -= 0.05 * p.grad
        return loss.data, skipped[0]

    return step, w


@pytest.mark.parametrize("backend", ["python", "c"])
@pytest.mark.parametrize("before", [True, False])
def test_01_calls_that_leave_a_path_change_nothing(before: bool, backend: str) -> None:
    (plain, v), (undecorated, w) = _losses(before), _losses(before)
    step: Any = mgjit.compile(undecorated, background=False, backend=backend)
    draw = random.Random(3)
    for number in range(300):
        xs, y = [draw.uniform(-1.0, 1.0) for _ in range(5)], draw.uniform(-2.0, 2.0)
        found, expected = step(xs, y), plain(xs, y)
        assert repr(found) == repr(expected), number
        assert [(p.data, p.grad) for p in w] == [(p.data, p.grad) for p in v], number
    kernels = step._kernels.all()
    assert len(kernels) == 2
    assert step.stats.calls > 200
    assert {kernel.code.asks_first for kernel in kernels} == {before}
