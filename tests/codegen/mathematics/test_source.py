"""Which functions a source gets, and what float32 and wide vectors are made of."""

from __future__ import annotations

import pytest

from mgjit.codegen.mathematics.source import EXACT, vector_functions
from mgjit.engine import arithmetic
from tests.codegen.mathematics.lanes import evaluate, numbers, same, to_float32


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
