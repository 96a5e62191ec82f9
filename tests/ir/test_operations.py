"""The operations: total functions that agree with the engine, with Python and with IEEE 754."""

from __future__ import annotations

import math
import struct
from itertools import product
from typing import Any

import pytest

import mgjit
from mgjit.engine.library import is_available
from mgjit.engine.precision import FLOAT32, FLOAT64, float32
from mgjit.ir import opcodes
from mgjit.ir.operations import EXACT, FUNCTIONS, compute

NUMBERS = [0.0, -0.0, 1.0, -1.5, 2.0, 0.5, math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324, 1000.0, -745.2]
IN_PYTHON = {
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y, "power": lambda x, y: x**y, "maximum": max, "minimum": min,
    "less": lambda x, y: 1.0 * (x < y), "less_equal": lambda x, y: 1.0 * (x <= y),
    "equal": lambda x, y: 1.0 * (x == y), "not_equal": lambda x, y: 1.0 * (x != y),
    "negate": lambda x: -x, "absolute": abs, "exp": math.exp, "log": math.log, "tanh": math.tanh, "sqrt": math.sqrt,
}  # fmt: skip


def bits(x: Any) -> bytes:
    return b"nan" if x != x else struct.pack("<d", x)


def test_01_every_operation_has_a_function() -> None:
    """Except those that are not computations."""
    special = {"store", "backward", "take"}
    missing = {name for name in opcodes.LIBRARY_CODES if not is_available(name)}
    assert set(FUNCTIONS) == set(opcodes.OPERATIONS) - special - missing


@pytest.mark.parametrize("name", sorted(IN_PYTHON))
def test_02_as_python_where_python_answers(name: str) -> None:
    """Bit for bit, and a float instead of an exception elsewhere."""
    arity = 1 if getattr(opcodes, name.upper()) in opcodes.UNARY else 2
    answered = 0
    for operands in product(NUMBERS, repeat=arity):
        got = FUNCTIONS[name](*operands)
        assert isinstance(got, float)
        try:
            expected = IN_PYTHON[name](*operands)  # type: ignore[operator]
        except (ArithmeticError, ValueError):
            continue
        if not isinstance(expected, complex):
            answered += 1
            assert bits(got) == bits(expected), operands
    assert answered >= 5


@pytest.mark.parametrize("name", sorted(set(IN_PYTHON) - {"divide", "less", "less_equal", "equal", "not_equal"}))
def test_03_as_the_engine(name: str) -> None:
    """The Value of the same operation has the same data."""
    methods = {"add": "__add__", "subtract": "__sub__", "multiply": "__mul__", "power": "__pow__", "negate": "__neg__",
               "absolute": "__abs__"}  # fmt: skip
    arity = 1 if getattr(opcodes, name.upper()) in opcodes.UNARY else 2
    for operands in product(NUMBERS, repeat=arity):
        first, *rest = operands
        value = getattr(mgjit.Value(first), methods.get(name, name))(*rest)
        assert bits(value.data) == bits(FUNCTIONS[name](*operands)), operands


def test_04_select_and_relu() -> None:
    """nan selects the first; relu keeps nan and -0.0."""
    select, relu = FUNCTIONS["select"], FUNCTIONS["relu"]
    assert [select(c, 1.0, 2.0) for c in (1.0, 0.0, -0.0, math.nan, -3.0)] == [1.0, 2.0, 2.0, 1.0, 1.0]
    assert [bits(relu(x)) for x in (-1.0, 2.0, -0.0, math.nan, -math.inf)] == [
        bits(x) for x in (0.0, 2.0, -0.0, math.nan, 0.0)
    ]


def test_05_float32() -> None:
    """Operands and result are float32 numbers; what is called exact needs no rounding."""
    numbers = [float32(x) for x in NUMBERS]
    for name, function in FUNCTIONS.items():
        is_unary = opcodes.OPERATIONS.index(name) in opcodes.UNARY
        arity = 3 if name in ("select", "link", "link_divided") else 1 if is_unary else 2
        for operands in product(numbers, repeat=arity):
            got = compute(name, operands, FLOAT32)
            assert bits(got) == bits(float32(got))
            if name in EXACT:
                assert bits(got) == bits(function(*operands)) == bits(compute(name, operands, FLOAT64))
    assert compute("add", (1.0, 2.0**-24), FLOAT32) == 1.0
    assert compute("multiply", (1e30, 1e30), FLOAT32) == math.inf
    assert compute("exp", (1.0,), FLOAT32) == float32(math.e)
