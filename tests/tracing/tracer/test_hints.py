"""Which powers `explain()` names, where, and with which spelling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mgjit
from mgjit.engine.arithmetic import SQUARE_IS_PRODUCT
from mgjit.tracing.tracer.hints import power_hints
from tests.lowering import Example, numbers


def hints(step: Callable[..., Any], *arguments: Any) -> list[str]:
    return power_hints(Example(step, *arguments).trace)


def test_01_the_first_place_and_the_number_of_calls() -> None:
    """As in explain()."""
    w = [mgjit.Value(number) for number in numbers(1500)]

    def step(x: list[float]) -> mgjit.Value:
        return sum((a - b) ** 3 for a, b in zip(w, x)) + w[0] ** 3

    (hint,) = hints(step, numbers(1500))
    line = step.__code__.co_firstlineno + 1
    assert f"test_hints.py:{line}: x ** 3 calls pow (1,501 a step); x * x * x is" in hint
    compiled = mgjit.compile(step)
    assert f"could be faster: {hint}" in compiled.lower(numbers(1500)).explain()


def test_02_values_and_numbers() -> None:
    """A division of Values is a power that has no faster spelling; plain numbers divide."""
    w = mgjit.Value(0.5)

    def step(x: float) -> mgjit.Value:
        return w / x + w**0.5 + w**-1 + x**-1 + x**0.5 + w**1.7 + w**x + 0.9**x

    found = [hint.partition(": ")[2] for hint in hints(step, 3.0)]
    assert [hint.partition(" calls")[0] for hint in found] == ["x ** 0.5", "x ** -1", "x ** 0.5"]
    assert ["mgjit.sqrt(x) is" in found[0], "1 / x is" in found[1], "(2 a step)" in found[1]] == [True] * 3


def test_03_squares() -> None:
    """PyPy computes them as products already."""
    w = mgjit.Value(0.5)
    assert bool(hints(lambda x: (w * x) ** 2, 2.0)) is not SQUARE_IS_PRODUCT
