"""Mixed numbers: the type of a number that only the run knows (more in tests/programs/traps/cases/types.py)."""

from __future__ import annotations

import math
from typing import Any, Callable

import pytest

import mgjit

XS = (2.5, 1.0, 0.5, 0.0, -0.0, -0.5, -3.0, math.inf, math.nan)


def bits(result: Any) -> Any:
    """Equal only for equal types and bits."""
    if isinstance(result, (tuple, list)):
        return [bits(part) for part in result]
    return type(result).__name__, "nan" if result != result else repr(result)


@pytest.mark.parametrize(
    "step",
    [
        lambda x: max(x, 0),
        lambda x: max(0, x),
        lambda x: min(max(x, -1), 1),
        lambda x: -max(x, 0),
        lambda x: 3 * (x if x > 0 else 0),
        lambda x: -3 * (0 if x < 0 else x),
        lambda x: (x if x > 0 else 2) ** 3,
        lambda x: (x if x > 0 else 2) / 2,
        lambda x: max(x, 0) * max(x, 1),
        lambda x: max(x, 0) + max(0.5, x) - (1 if x > 1 else 2),
        lambda x: abs(min(x, 0)),
        lambda x: True if x > 0 else x,
        lambda x: True if x > 0 else 7,
        lambda x: +(True if x > 0 else 7),
        lambda x: -(True if x > 0 else 2.0),
        lambda x: x > 0 and x,
        lambda x: max(x, 0) == 0,
        lambda x: [max(x, 0), {"a": min(x, 1)}],
        lambda x: sum([max(x, 0), max(-x, 0), 1]),
        lambda x: (1 if x > 0 else 0) - (x > 1),
        lambda x: (-1) ** (1 if x > 0 else -2),
        lambda x: float(max(x, 0)),
    ],
)
@pytest.mark.parametrize("backend", ["auto", "python"])
def test_01_types_and_bits(step: Callable[[float], Any], backend: Any) -> None:
    """Of results are Python's, from one trace."""
    compiled = mgjit.compile(step, backend=backend)
    for x in XS:
        assert bits(compiled(x)) == bits(step(x)), x
    assert compiled.stats.traces == 1


def test_02_columns() -> None:
    """Of a loop are floats."""
    step = mgjit.compile(lambda x: max(x, 0))
    assert list(step.loop([1.5, -2.0])) == [1.5, 0.0]


def test_03_types_that_nobody_sees_cost_nothing() -> None:
    """No record is made for the type of a number that only goes into arithmetic with floats."""

    def step(x: Any, w: Any) -> Any:
        return (0 if x < 0 else x) * w

    def floats(x: Any, w: Any) -> Any:
        return (0.0 if x < 0 else x) * w

    lowered, other = mgjit.compile(step).lower(1.0, 2.0), mgjit.compile(floats).lower(1.0, 2.0)
    assert str(lowered.graph) == str(other.graph)
