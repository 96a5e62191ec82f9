"""Fast exp of float32: its stated error, and what it does at the ends."""

from __future__ import annotations

import math

import pytest

from mgjit.engine.arithmetic import exp
from tests.compiler.codegen.mathematics.lanes import evaluate, numbers, to_float32, ulps_of_float32


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_01_error(family: str, lanes: int) -> None:
    x = [to_float32(value) for value in [*numbers(8_000), *(i / 64 for i in range(-104 * 64, 89 * 64))]]
    results = evaluate(family, "exp", x, dtype="float32", mode="fast", lanes=lanes)
    assert max(ulps_of_float32(result, exp(value)) for value, result in zip(x, results)) < 1.1


def test_02_ends() -> None:
    x = [-math.inf, -200.0, math.inf, 200.0, math.nan, 0.0]
    *results, zero = evaluate("gcc", "exp", x, dtype="float32", mode="fast", lanes=16)
    assert results[:4] == [0.0, 0.0, math.inf, math.inf]
    assert math.isnan(results[4])
    assert zero == 1.0
