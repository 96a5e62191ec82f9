"""Functions of the C library: total, as Python where that has a result, and the same bits from every back end."""

from __future__ import annotations

import math
from typing import Any

import pytest

import mgjit
from mgjit.engine import library
from mgjit.engine.library import FUNCTIONS, is_exact, library_function

XS = (0.0, -0.0, 0.3, -0.7, 1.0, -1.0, 2.5, -3.5, 40.0, -1e4, 1e17, 5e-324, math.inf, -math.inf, math.nan)
EXACT = [name for name in FUNCTIONS if is_exact(name)]


def bits(number: float) -> str:
    return "nan" if number != number else number.hex()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_01_total(name: str) -> None:
    """They never raise; where Python has a result, it is that."""
    if not hasattr(math, name) and name != "rint":
        pytest.skip("not in this Python")
    function, original = library_function(name), getattr(math, name, round)
    for x in XS:
        operands = (x, 1.5)[: FUNCTIONS[name].arity]
        got = function(*operands)
        assert type(got) is float
        try:
            assert got == original(*operands) or got != got
        except (ValueError, OverflowError):
            assert got - got != 0.0 or math.isinf(x)


@pytest.mark.optimised
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("options", [{}, {"compiler": "tcc"}, {"backend": "python"}, {"dtype": "float32"}], ids=str)
@pytest.mark.sampled
def test_02_compiled(name: str, options: Any) -> None:
    """The same bits in C, one by one and in lanes."""
    precision = mgjit.engine.precision.FLOAT32 if "dtype" in options else mgjit.engine.precision.FLOAT64
    function, arity = library_function(name), FUNCTIONS[name].arity

    def step(xs: Any) -> Any:
        return [x._library(name, (x, 1.5)[:arity]) for x in xs]

    got = mgjit.compile(step, **options)(list(XS))
    given = [precision.rounded(x) for x in XS]
    wanted = [precision.rounded(function(*(x, 1.5)[:arity])) for x in given]
    assert list(map(bits, got)) == list(map(bits, wanted))


def test_03_what_differs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """One bit is enough."""
    original = math.cos
    is_exact.cache_clear()
    library_function.cache_clear()
    monkeypatch.setattr(library.math, "cos", lambda x: math.nextafter(original(x), 2.0) if x == 0.5 else original(x))
    try:
        assert not is_exact("cos")
        assert is_exact("sin")
    finally:
        is_exact.cache_clear()
        library_function.cache_clear()
