"""Fast quotients of float32: their stated error, and what they do with numbers that are none."""

from __future__ import annotations

import math
from itertools import product

import pytest

from tests.compiler.codegen.mathematics.lanes import evaluate, numbers, same, to_float32, ulps_of_float32

LANES = pytest.mark.parametrize("lanes", [4, 8, 16])


@LANES
@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_01_error(family: str, lanes: int) -> None:
    x = [to_float32(v) for v in numbers(8_000)]
    y = [to_float32(v) for v in numbers(8_000, 1)]
    results = evaluate(family, "divide", x, y, dtype="float32", mode="fast", lanes=lanes)
    pairs = [(a, b, r) for a, b, r in zip(x, y, results) if math.isfinite(a) and b and math.isfinite(b)]
    assert max(ulps_of_float32(r, a / b) for a, b, r in pairs if abs(a / b) < 2.0**128) <= 1.0


@LANES
@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_02_what_is_no_number(family: str, lanes: int) -> None:
    """Zeros, infinities and nan, one of them among others."""
    x, y = zip(*product([0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-40, 3e38], repeat=2))
    x, y = [to_float32(v) for v in x], [to_float32(v) for v in y]
    expected = evaluate(family, "divide", x, y, dtype="float32", mode="fast", lanes=1)
    results = evaluate(family, "divide", x, y, dtype="float32", mode="fast", lanes=lanes)
    for a, b, one, other in zip(x, y, results, expected):
        assert same(one, other) or abs(one - other) <= abs(other) * 2.0**-22, (a, b)
