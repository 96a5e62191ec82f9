"""Strict pow: the C library's results on every lane."""

from __future__ import annotations

import math
import random

import pytest

from mgjit.compiler.codegen.mathematics.exact_power import reciprocals
from mgjit.engine.arithmetic import SQUARE_IS_PRODUCT, power
from tests.compiler.codegen.mathematics.lanes import evaluate, numbers, same

EXPONENTS = [-1.0, 0.5, 3.0, -0.5, 1.5, 0.0, -2.0, 1.0, 7.0, -3.0, 53.0, 1e18, 2.0**52 - 1, 1e-30, math.inf, math.nan]


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_01_pow_is_the_library_s(family: str, lanes: int) -> None:
    """Usual exponents, and unusual ones; PyPy's interpreter computes squares in its own way."""
    draw = random.Random(3)
    usual = EXPONENTS if SQUARE_IS_PRODUCT else [2.0, *EXPONENTS]
    x = [*numbers(8_000), *[0.0, -0.0] * 50]
    y = [draw.choice([draw.choice(usual), draw.uniform(-30.0, 30.0)]) for _ in x]
    for base, exponent, result in zip(x, y, evaluate(family, "power", x, y, lanes=lanes)):
        assert same(result, power(base, exponent)), (base.hex(), exponent.hex())


def test_02_every_part_of_the_line_has_a_short_reciprocal() -> None:
    numbers_near = reciprocals()
    assert len(numbers_near) == 128
    assert all((256 * number).is_integer() for number in numbers_near)
    assert list(numbers_near) == sorted(numbers_near, reverse=True)
    assert 1.0 in numbers_near
