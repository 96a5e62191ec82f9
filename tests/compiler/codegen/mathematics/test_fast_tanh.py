"""Fast tanh of float32: its stated error, and what it does at the ends."""

from __future__ import annotations

import math

import pytest

from tests.compiler.codegen.mathematics.lanes import evaluate, numbers, to_float32, ulps_of_float32


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_01_error(family: str, lanes: int) -> None:
    x = [to_float32(value) for value in [*numbers(8_000), *(i / 1024 for i in range(-10 * 1024, 10 * 1024))]]
    results = evaluate(family, "tanh", x, dtype="float32", mode="fast", lanes=lanes)
    assert max(ulps_of_float32(result, math.tanh(value)) for value, result in zip(x, results)) < 2.0


def test_02_ends() -> None:
    x = [-math.inf, -20.0, math.inf, 20.0, 0.0, 1e-30, math.nan]
    *results, invalid = evaluate("gcc", "tanh", x, dtype="float32", mode="fast", lanes=16)
    assert results == [-1.0, -1.0, 1.0, 1.0, 0.0, to_float32(1e-30)]
    assert math.isnan(invalid)
