"""Which functions a source gets, and what float32 and wide vectors are made of."""

from __future__ import annotations

import math
import random

import pytest

from mgjit.compiler.codegen.mathematics.source import EXACT, vector_functions
from mgjit.engine import arithmetic
from tests.compiler.codegen.mathematics.lanes import evaluate, numbers, same, to_float32, ulps_of_float32


def test_01_tables_and_helpers_stand_once() -> None:
    text = vector_functions("float64", "strict", [2, 4, 8, 16], list(EXACT))
    for line in ("static const struct { double tail; long long scale; } exponential_table[] = {", "#define INLINE"):
        assert text.count(line) == 1
    assert text.count("typedef double double8 ") == 1
    assert "#include" not in text


@pytest.mark.parametrize("lanes", [2, 8, 16])
def test_02_strict_float32_is_the_rounded_float64(lanes: int) -> None:
    x = [to_float32(value) for value in numbers(4_000)]
    for value, result in zip(x, evaluate("gcc", "exp", x, dtype="float32", lanes=lanes)):
        assert same(result, to_float32(arithmetic.exp(value))), value.hex()


@pytest.mark.parametrize("mode", ["strict", "fast"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_03_all_functions_and_widths_compile_together(dtype: str, mode: str) -> None:
    assert evaluate("gcc", "exp", [0.0, 1.0], dtype=dtype, mode=mode, lanes=4)[0] == 1.0
    for name in EXACT:
        assert f"{name}_16(" in vector_functions(dtype, mode, [2, 4, 8, 16], list(EXACT))


@pytest.mark.parametrize("lanes", [2, 8, 16])
@pytest.mark.parametrize("family", ["gcc", "clang"])
@pytest.mark.parametrize("name", list(EXACT))
def test_04_fast_float64_is_within_2_ulp(name: str, family: str, lanes: int) -> None:
    """Whatever the compiler reorders in fast mode."""
    draw = random.Random(1)
    x = numbers(8_000)
    y = [draw.choice([2.0, 0.5, -1.0, 3.0, -0.5, draw.uniform(-20.0, 20.0)]) for _ in x]
    exact = [getattr(arithmetic, name)(*((a, b) if name == "power" else (a,))) for a, b in zip(x, y)]
    for value, wanted, result in zip(x, exact, evaluate(family, name, x, y, mode="fast", lanes=lanes)):
        if wanted != wanted or math.isinf(wanted):
            assert same(result, wanted), value.hex()
        else:
            assert abs(result - wanted) <= 2.0 * math.ldexp(1.0, max(math.frexp(wanted)[1] - 53, -1074)), value.hex()


def test_05_fast_float32_pow_is_the_rounded_float64() -> None:
    x = [to_float32(value) for value in numbers(4_000)]
    y = [to_float32(0.1 * i) for i in range(len(x))]
    results = evaluate("gcc", "power", x, y, dtype="float32", mode="fast", lanes=16)
    for a, b, result in zip(x, y, results):
        assert ulps_of_float32(result, arithmetic.power(a, b)) <= 0.51, (a.hex(), b.hex())


def test_06_only_the_widths_asked_for_have_the_promised_names() -> None:
    """The caller may have functions of its own for fewer lanes."""
    text = vector_functions("float32", "strict", [4], ["tanh"])
    assert "float4 tanh_4(float4 x)" in text
    assert " tanh_2(" not in text
    assert "part_of_tanh_2(" in text
