"""Gradients by differences, to check the ones that backward() computes: undecorated, and in compiled steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mgjit

Function = Callable[..., Any]

#: Of the difference quotient; the rule below is exact for polynomials of degree 4.
WIDTH = 1e-3
TOLERANCE = 1e-7


def numeric_gradient(function: Function, at: Sequence[float]) -> list[float]:
    """The derivative of `function(*at)` with respect to each argument, by central differences of order 4."""

    def value(index: int, shift: float) -> float:
        moved = [mgjit.Value(x + shift if k == index else x) for k, x in enumerate(at)]
        return float(function(*moved).data)

    return [
        (8.0 * (value(i, WIDTH) - value(i, -WIDTH)) - (value(i, 2 * WIDTH) - value(i, -2 * WIDTH))) / (12.0 * WIDTH)
        for i in range(len(at))
    ]


def engine_gradient(function: Function, at: Sequence[float]) -> list[float]:
    """The gradient that `backward()` leaves in the arguments."""
    arguments = [mgjit.Value(x) for x in at]
    function(*arguments).backward()
    return [x.grad for x in arguments]


def compiled_gradient(function: Function, at: Sequence[float], **options: Any) -> list[float]:
    """The same from a compiled step; `options` are those of mgjit.compile."""
    arguments = [mgjit.Value(x) for x in at]

    def step() -> Any:
        for x in arguments:
            x.grad = 0.0
        result = function(*arguments)
        result.backward()
        return result

    mgjit.compile(**options)(step)()
    return [x.grad for x in arguments]


def assert_gradient(function: Function, at: Sequence[float], **options: Any) -> None:
    """Check the engine's gradient against differences and, bit by bit, the compiled one against the engine's."""
    expected = engine_gradient(function, at)
    for index, (mine, numeric) in enumerate(zip(expected, numeric_gradient(function, at))):
        assert abs(mine - numeric) <= TOLERANCE * max(1.0, abs(numeric)), (
            f"argument {index} at {list(at)}: backward() says {mine}, differences say {numeric}"
        )
    if options:
        assert compiled_gradient(function, at, **options) == expected
