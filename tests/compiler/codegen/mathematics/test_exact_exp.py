"""Strict exp: the C library's results on every lane."""

from __future__ import annotations

import pytest

from mgjit.engine.arithmetic import exp
from tests.compiler.codegen.mathematics.lanes import evaluate, numbers, same


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_01_exp_is_the_library_s(family: str, lanes: int) -> None:
    x = numbers(8_000)
    for value, result in zip(x, evaluate(family, "exp", x, lanes=lanes)):
        assert same(result, exp(value)), value.hex()
