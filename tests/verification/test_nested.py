"""A comparison changes nothing: also of steps that call steps, whose parameters belong to kernels of several."""

from __future__ import annotations

from typing import Any

import pytest

import mgjit
from tests.verification.nested import Bare, Node, Program, Slotted

pytestmark = pytest.mark.filterwarnings("error::mgjit.errors.MismatchWarning")


@pytest.fixture(autouse=True)
def as_the_options_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGJIT_VERIFY")


@pytest.mark.parametrize("verify", ["auto", "always", "never"])
@pytest.mark.parametrize("kind", [Node, Slotted, Bare])
def test_01_a_step_that_is_called_twice_by_another_one_and_alone(kind: Any, verify: str) -> None:
    """The outer one copies numbers that live in the memory of the inner one."""

    def run(decorate: Any) -> list[Any]:
        w = kind(0.5)

        @decorate
        def inner(x: float) -> float:
            loss = w * x
            w.grad = 0.0
            loss.backward()
            w.data -= 0.1 * w.grad
            return loss.data  # type: ignore[no-any-return]

        @decorate
        def outer(x: float) -> tuple[float, float]:
            return inner(x), inner(x)

        return [(outer(1.0), inner(2.0), w.data, w.grad) for _ in range(5)]

    assert run(mgjit.compile(background=False, verify=verify)) == run(lambda step: step)


def test_02_an_attribute_that_the_step_adds_to_a_parameter() -> None:
    """It is there after a compared call, as after any other, and has its number."""

    def run(decorate: Any) -> list[Any]:
        w = Node(0.5)

        @decorate
        def step(x: float) -> float:
            loss = w * x
            w.grad = 0.0
            loss.backward()
            w.data -= 0.1 * w.grad
            w.last = w.grad  # type: ignore[attr-defined]
            return loss.data  # type: ignore[no-any-return]

        found = []
        for k in range(4):
            found.append((step(1.0 + k), sorted(vars(w)), w.last))  # type: ignore[attr-defined]
            if k == 1:
                w.last = 7.0  # type: ignore[attr-defined]
        return found

    assert run(mgjit.compile(background=False, verify="always")) == run(lambda step: step)


@pytest.mark.parametrize("verify", ["auto", "always", "never"])
@pytest.mark.parametrize("seed", range(6))
def test_10_random_programs(seed: int, verify: str) -> None:
    """Steps and methods on three levels, in any order, with `.loop`."""
    expected = Program(seed).run(lambda step: step)
    found = Program(seed).run(mgjit.compile(background=False, verify=verify, backend="python", warn_after=1000))
    assert repr(found) == repr(expected)
