"""arithmetic: Python's operations with the results of C, where Python raises as well."""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import math
import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import Value
from mgjit.engine import arithmetic
from mgjit.engine.precision import float32
from tests.workload import BACKENDS, leaves, missing, packed

SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 5e-324, -5e-324, 2.2250738585072014e-308,
    1.7976931348623157e308, -1.7976931348623157e308, 709.0, 710.0, -745.0, -746.0, 2.5, -2.5, 1e16,
    math.inf, -math.inf, math.nan,
]  # fmt: skip
PAIRS = list(itertools.product(SPECIAL, SPECIAL))
LIBM = ctypes.CDLL(ctypes.util.find_library("m"))


def libm(name: str, arguments: int) -> Callable[..., float]:
    function = LIBM[name]
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * arguments
    return function


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh"])
def test_functions_are_those_of_the_c_library(name: str) -> None:
    draw = random.Random(1)
    inputs = [*SPECIAL, *(draw.uniform(-30.0, 30.0) for _ in range(2000))]
    expected = [libm(name, 1)(x) for x in inputs]
    assert packed(getattr(arithmetic, name)(x) for x in inputs) == packed(expected)


def test_power_is_that_of_the_c_library() -> None:
    power = libm("pow", 2)
    for x, y in PAIRS:
        if not (arithmetic.SQUARE_IS_PRODUCT and y == 2.0):
            assert packed([arithmetic.power(x, y)]) == packed([power(x, y)]), (x, y)


@pytest.mark.parametrize(("x", "y"), [(3.0, 2.0), (0.1, 2.0), (2.0, -1.0), (2.0, 0.5), (1e10, 3.0)])
def test_power_is_that_of_python(x: float, y: float) -> None:
    assert arithmetic.power(x, y) == x**y


def test_division_by_zero_is_that_of_ieee_754() -> None:
    inf = math.inf
    assert [arithmetic.divide(x, 0.0) for x in (1.0, -1.0, inf)] == [inf, -inf, inf]
    assert [arithmetic.divide(x, -0.0) for x in (1.0, -1.0, -inf)] == [-inf, inf, inf]
    assert all(math.isnan(arithmetic.divide(x, 0.0)) for x in (0.0, -0.0, math.nan))
    assert arithmetic.divide(1.0, 3.0) == 1.0 / 3.0


def test_extremes_and_relu_are_those_of_python() -> None:
    for x, y in PAIRS:
        assert packed([arithmetic.maximum(x, y)]) == packed([max(x, y)]), (x, y)
        assert packed([arithmetic.minimum(x, y)]) == packed([min(x, y)]), (x, y)
    assert packed(map(arithmetic.relu, (-0.0, 0.0, -1.0, 2.0, math.nan))) == packed([-0.0, 0.0, 0.0, 2.0, math.nan])


# ---- the same in compiled steps ---------------------------------------------------------------------

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "maximum": mgjit.maximum,
    "minimum": mgjit.minimum,
    "where a < b": lambda a, b: mgjit.where(a < b, a, b),
    "where a <= b": lambda a, b: mgjit.where(a <= b, a, b),
    "where a > b": lambda a, b: mgjit.where(a > b, a, b),
    "where a >= b": lambda a, b: mgjit.where(a >= b, a, b),
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "-a": lambda a: -a,
    "abs": abs,
    "relu": mgjit.relu,
    "exp": mgjit.exp,
    "log": mgjit.log,
    "tanh": mgjit.tanh,
    "sqrt": mgjit.sqrt,
    "0.0 + a": lambda a: 0.0 + a,
    "-0.0 + a": lambda a: -0.0 + a,
    "a - 0.0": lambda a: a - 0.0,
    "1 * a": lambda a: 1 * a,
    "-1 * a": lambda a: -1 * a,
    "0 * a": lambda a: 0 * a,
    "0.0 - a": lambda a: 0.0 - a,
    "2 - a": lambda a: 2 - a,
}
POWERS = [-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 0.1, 2.5, 1e3]


def every_operation(x: Any, y: Any) -> list[Any]:
    return [function(x, y) for function in BINARY.values()] + [function(x) for function in UNARY.values()]


@pytest.fixture(params=["gcc", "tcc", "python"])
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    return _options(request.param)


def _options(backend: str) -> dict[str, Any]:
    if missing(backend):
        pytest.skip(f"{missing(backend)} is not installed")
    return BACKENDS[backend]


def assert_same(names: list[str], inputs: list[Any], expected: Any, got: Any) -> None:
    wanted, found = list(leaves(expected)), list(leaves(got))
    assert len(wanted) == len(found)
    for k, (a, b) in enumerate(zip(wanted, found)):
        what = f"{names[k % len(names)]} at {inputs[k // len(names)]}"
        assert packed([a]) == packed([b]), f"{what}: {a!r}, compiled {b!r}"


NAMES = [*BINARY, *UNARY]


def test_every_operation_on_numbers_at_special_points(options: dict[str, Any]) -> None:
    def step(pairs: Any) -> Any:
        return [every_operation(x, y) for x, y in pairs]

    assert_same(NAMES, PAIRS, step(PAIRS), mgjit.compile(**options)(step)([list(pair) for pair in PAIRS]))


def test_every_operation_on_values_at_special_points(options: dict[str, Any]) -> None:
    def step(pairs: Any) -> Any:
        return [every_operation(p * x, p * y) for x, y in pairs]

    p = Value(1.0)
    assert_same(NAMES, PAIRS, step(PAIRS), mgjit.compile(**options)(step)([list(pair) for pair in PAIRS]))


@pytest.mark.parametrize("name", NAMES)
def test_gradients_at_special_points(name: str) -> None:
    """By gcc and by Python in turns; tests/compiler/codegen/ has every operation by all compilers."""
    options = _options(("gcc", "python")[NAMES.index(name) % 2])
    binary = name in BINARY
    operation: Any = BINARY[name] if binary else UNARY[name]

    def run(**compile_options: Any) -> list[float]:
        a, b = Value(0.0), Value(0.0)

        def step(scale: Any) -> Any:
            a.grad = b.grad = 0.0
            result = operation(a, b) if binary else operation(a)
            (result * scale).backward()
            return result

        function = mgjit.compile(**compile_options)(step) if compile_options else step
        seen = []
        for x, y in PAIRS if binary else [(x, 0.0) for x in SPECIAL]:
            a.data, b.data = x, y
            seen += [*leaves(function(-1.5)), a.grad, b.grad]
        return seen

    inputs = PAIRS if binary else [(x, 0.0) for x in SPECIAL]
    assert_same(["result", "a.grad", "b.grad"], inputs, run(), run(**options))


def test_powers_of_values_and_their_gradients_at_special_points(options: dict[str, Any]) -> None:
    def run(**compile_options: Any) -> list[float]:
        bases = [Value(x) for x in SPECIAL]

        def step() -> Any:
            results = [base**exponent for base in bases for exponent in POWERS]
            for base in bases:
                base.grad = 0.0
            total: Any = sum(results)
            total.backward()
            return results, [base / 3.0 for base in bases], [3.0 / base for base in bases]

        result = (mgjit.compile(**compile_options)(step) if compile_options else step)()
        return [*leaves(result), *(base.grad for base in bases)]

    expected, got = run(), run(**options)
    count = len(SPECIAL) * len(POWERS)
    assert_same([f"** {e}" for e in POWERS], SPECIAL, expected[:count], got[:count])
    assert packed(expected[count:]) == packed(got[count:])


@pytest.mark.parametrize("exponent", [e for e in POWERS if e < 100])
def test_powers_of_ordinary_numbers(exponent: float) -> None:
    """Last bits: pow(x, 2) is not always x * x, and what counts is what this interpreter computes."""
    draw = random.Random(5)
    options = _options(("gcc", "tcc", "python")[POWERS.index(exponent) % 3] if exponent != 2 else "gcc")
    bases = [draw.uniform(0.01, 10.0) for _ in range(3000)]

    def step(xs: Any) -> Any:
        return [x**exponent for x in xs]

    got = mgjit.compile(**options)(step)(bases)
    assert_same([f"** {exponent}"], bases, step(bases), got)
    values = [Value(x) for x in bases]
    assert_same([f"Value ** {exponent}"], bases, step(values), got)


def test_powers_of_float32_are_those_of_pow() -> None:
    """Rounded to float32, every formula gives what the function of float64 gives."""
    draw = random.Random(5)
    special = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 2.0**-149, -(2.0**-149), 2.0**127, -(2.0**127))
    for exponent in (2.0, 1.0, -1.0, 0.5, 2.5, 0.0):
        some = [struct.unpack("<f", struct.pack("<I", draw.getrandbits(32)))[0] for _ in range(2000)]
        for x in (*special, *some):
            got, expected = float32(arithmetic.power_of_float32(x, exponent)), float32(arithmetic.power(x, exponent))
            assert struct.pack("<f", got) == struct.pack("<f", expected) or (got != got and expected != expected)
