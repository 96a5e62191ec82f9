"""The table of operations says what is true of their functions."""

from __future__ import annotations

import math
import struct
from itertools import permutations, product
from typing import Any

import pytest

from mgjit.engine.operations import OPERATIONS, Operation, operations

NUMBERS = [0.0, -0.0, 1.0, -1.5, 2.0, 0.1, 3.0, -7.0, math.inf, -math.inf, 1e308, 5e-324, 1000.25]
COMPUTED = {name: one.function for name, one in OPERATIONS.items() if one.function is not None}


def bits(x: Any) -> bytes:
    return b"nan" if x != x else struct.pack("<d", x)


def operands(one: Operation) -> list[tuple[float, ...]]:
    return list(product(NUMBERS, repeat=one.arity))


@pytest.mark.parametrize("name", sorted(COMPUTED))
def test_01_functions_are_total(name: str) -> None:
    assert all(isinstance(COMPUTED[name](*those), float) for those in operands(OPERATIONS[name]))


@pytest.mark.parametrize("name", sorted(operations(lambda one: not one.rounds) & COMPUTED.keys()))
def test_02_what_does_not_round_gives_an_operand_or_a_whole_number(name: str) -> None:
    for those in operands(OPERATIONS[name]):
        result = COMPUTED[name](*those)
        assert result != result or abs(result) in map(abs, those) or result.is_integer()


@pytest.mark.parametrize("name", sorted(operations(lambda one: one.arity == 2) & COMPUTED.keys()))
def test_03_arithmetic_that_commutes(name: str) -> None:
    same = all(bits(COMPUTED[name](x, y)) == bits(COMPUTED[name](y, x)) for x, y in permutations(NUMBERS, 2))
    assert same == (OPERATIONS[name].commutes or name in ("equal", "not_equal"))


@pytest.mark.parametrize("name", sorted(operations(lambda one: one.hides_sign or one.keeps_sign)))
def test_04_zeros_of_either_sign(name: str) -> None:
    one, function = OPERATIONS[name], COMPUTED[name]
    for those in operands(one):
        for place in range(one.arity):
            results = [function(*those[:place], zero, *those[place + 1 :]) for zero in (0.0, -0.0)]
            is_same = bits(results[0]) == bits(results[1])
            assert is_same or (one.keeps_sign and results[0] == results[1] == 0.0), those


@pytest.mark.parametrize("name", sorted(operations(lambda one: one.keeps_whole)))
def test_05_whole_numbers_stay_whole_and_grow_not(name: str) -> None:
    for number in range(-20, 20):
        result = COMPUTED[name](float(number))
        assert result.is_integer()
        assert abs(result) <= abs(number)


def test_06_each_operation_has_one_way_to_be_written() -> None:
    """Operators and functions exclude each other; the others are those that emitters know by name."""
    others = operations(lambda one: not (one.symbol or one.called))
    assert operations(lambda one: bool(one.symbol and one.called)) == frozenset()
    assert others == {
        "maximum", "minimum", "negate", "relu", "copy", "select", "link", "link_divided", "store", "backward", "take",
    }  # fmt: skip
