"""Fast log of float32: its stated error, and what it does at the ends."""

from __future__ import annotations

import math

import pytest

from mgjit.engine.arithmetic import log
from tests.compiler.codegen.mathematics.lanes import evaluate, numbers, to_float32, ulps_of_float32


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_01_error(family: str, lanes: int) -> None:
    x = [to_float32(abs(value)) for value in [*numbers(8_000), *(i / 4096 for i in range(2000, 9000))]]
    results = evaluate(family, "log", x, dtype="float32", mode="fast", lanes=lanes)
    assert max(ulps_of_float32(result, log(value)) for value, result in zip(x, results)) < 1.0


def test_02_ends() -> None:
    x = [0.0, math.inf, 1.0, to_float32(1e-42), -1.0, math.nan]
    *results, negative, invalid = evaluate("gcc", "log", x, dtype="float32", mode="fast", lanes=16)
    assert results == [-math.inf, math.inf, 0.0, to_float32(log(x[3]))]
    assert math.isnan(negative)
    assert math.isnan(invalid)
