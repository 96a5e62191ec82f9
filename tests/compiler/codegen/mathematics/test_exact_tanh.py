"""Strict tanh: the C library's results on every lane."""

from __future__ import annotations

import pytest

from mgjit.engine.arithmetic import tanh
from tests.compiler.codegen.mathematics.lanes import evaluate, numbers, same


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_01_tanh_is_the_library_s(family: str, lanes: int) -> None:
    x = numbers(8_000)
    for value, result in zip(x, evaluate(family, "tanh", x, lanes=lanes)):
        assert same(result, tanh(value)), value.hex()
