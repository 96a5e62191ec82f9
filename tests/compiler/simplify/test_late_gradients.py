"""Gradients in a phase of their own: which, from what, and that nothing changes."""

from __future__ import annotations

from typing import Any

import pytest

import mgjit
from mgjit.compiler.schedule import adjacent
from mgjit.compiler.simplify import late_gradients
from mgjit.ir.program import Program, arrays_read, arrays_written, statements
from tests.lowering import SCALAR, WIDE, Example, numbers


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small examples are worth it, and their updates are fused with what they need."""
    monkeypatch.setattr(late_gradients, "FEWEST", 32)
    monkeypatch.setattr(late_gradients, "A_KEPT_NUMBER", 2)
    monkeypatch.setattr(adjacent, "from_cache", lambda elements: 1.0)


def example(update: Any = None, samples: int = 1) -> Example:
    """A layer and the derivative of its squared sums; `update` gets the parameters and the rate."""
    rows = [[mgjit.Value(v) for v in numbers(9, k)] for k in range(8)]
    parameters = [w for row in rows for w in row]

    def step(xs: Any, rate: Any) -> Any:
        scores = [sum(w * x for w, x in zip(row, xs[9 * k : 9 * k + 9])) for k in range(samples) for row in rows]
        loss = sum(score.relu() ** 2 for score in scores)
        for p in parameters:
            p.grad = 0.0
        loss.backward()
        for p in parameters:
            p.data -= rate * p.grad
        if update is not None:
            update(parameters, rate)
        return loss

    return Example(step, numbers(9 * samples), 0.1)


def late(program: Program) -> set[str]:
    """The spaces of what the late phase reads and writes."""
    every = list(statements(program.gradients))
    return {a.space for s in every for a in (*arrays_read(s), *arrays_written(s))}


@pytest.mark.parametrize("processor", [WIDE, SCALAR], ids=["vectors", "scalars"])
def test_01_an_outer_product(processor: Any) -> None:
    """It is computed from copies of both factors; nothing before writes gradients."""
    made = example()
    program = made.lower("late gradients", laid_out=True, processor=processor)
    assert late(program) == {"scratch", "gradient"}
    assert not any(a.space == "gradient" for s in statements(program.backward) for a in arrays_written(s))
    made.check(program)
    made.check(made.lower(laid_out=True, processor=processor))


def test_02_what_others_read_or_write() -> None:
    """Gradients that the step uses again, or overwrites, stay where they are."""

    def halve(parameters: Any, rate: Any) -> None:
        for p in parameters:
            p.grad = 0.5 * p.grad

    def clear(parameters: Any, rate: Any) -> None:
        parameters[0].grad = rate

    for update in (halve, clear):
        made = example(update)
        program = made.lower(laid_out=True)
        assert not program.gradients
        made.check(program)


def test_03_sums_over_samples() -> None:
    """They need as many numbers as there are samples, and are added up at once."""
    made = example(samples=3)
    program = made.lower()
    assert not program.gradients
    made.check(program)


def test_04_not_without_gradients_nor_in_phases() -> None:
    """Where nobody may look, and where gradients are what a phase is for."""
    made = example()
    assert not made.lower(laid_out=True, grads=False).gradients
    assert not made.lower(laid_out=True, separate=True).gradients
