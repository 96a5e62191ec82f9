"""Powers of float32 become other operations; those of float64 stay."""

from __future__ import annotations

import math

import pytest

from mgjit.compiler.simplify.powers import write_powers
from mgjit.engine.arithmetic import SQUARE_IS_PRODUCT, power
from mgjit.engine.precision import FLOAT32, FLOAT64, Precision
from mgjit.ir.interpreter import Interpreter
from mgjit.ir.program import Array, Block, Constant, Loop, Program, Statement, statements
from mgjit.ir.verify import verify
from tests.handmade import around, at, define, load
from tests.lowering import bits, numbers

X, Y = Array("x", "input", 9), Array("y", "output", 9)
NUMBERS = [0.0, -0.0, 1.5, -3.0, math.inf, -math.inf, math.nan, 2.0**-149, -(2.0**127)]


def powers(exponent: float, precision: Precision, block: bool = False) -> Program:
    """y[i] = x[i] ** exponent"""
    loop = Loop(9, [])
    power = define(at(Y, (loop, 1)), "power", load(X, (loop, 1)), Constant(exponent))
    return Program([around(loop, Block([power]) if block else power)], precision=precision)


def result(program: Program) -> list[bytes]:
    """The bits of y."""
    memory = {X: NUMBERS, Y: [0.0] * 9}
    Interpreter(program, memory).run()
    return [bits(y) for y in memory[Y]]


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("exponent", [2.0, 1.0, -1.0, 0.5])
def test_01_other_operations_with_the_same_result(exponent: float, block: bool) -> None:
    """Zeros, infinities and nan included; the last statement keeps the target."""
    program = powers(exponent, FLOAT32, block)
    expected = result(program)
    write_powers(program)
    verify(program)
    assert "power" not in {s.operation for s in statements(program.forward)}
    assert result(program) == expected


@pytest.mark.parametrize(("exponent", "precision"), [(3.0, FLOAT32), (-2.0, FLOAT32), (3.0, FLOAT64), (0.5, FLOAT64)])
def test_02_others_stay(exponent: float, precision: Precision) -> None:
    """Other exponents, and everything of float64."""
    program = powers(exponent, precision)
    write_powers(program)
    assert [s.operation for s in statements(program.forward)] == ["power"]


def test_03_squares_of_float64() -> None:
    """A product where the interpreter computes a product."""
    program = powers(2.0, FLOAT64)
    expected = result(program)
    write_powers(program)
    assert [s.operation for s in statements(program.forward)] == ["multiply" if SQUARE_IS_PRODUCT else "power"]
    assert result(program) == expected


@pytest.mark.parametrize("scale", [1.0, 2.0**-1060, 1e300])
def test_04_the_library_agrees_that_a_first_power_is_a_copy(scale: float) -> None:
    for number in [*NUMBERS, *(scale * x for x in numbers(1_000))]:
        assert bits(power(number, 1.0)) == bits(number)


def test_05_exponents_that_are_not_constants_stay() -> None:
    """Their formula is chosen when they are known."""
    program = Program([Statement("power", (load(X), load(X)), at(Y))], precision=FLOAT32)
    write_powers(program)
    assert [s.operation for s in statements(program.forward)] == ["power"]


@pytest.mark.parametrize("precision", [FLOAT32, FLOAT64])
@pytest.mark.parametrize("exponent", [3.0, 1.5, -0.5, -1.5, -2.0])
def test_06_products_where_last_bits_do_not_matter(exponent: float, precision: Precision) -> None:
    """Within three units in the last place, and what is 0, infinite or nan stays that."""
    program = powers(exponent, precision)
    memory = {X: [0.0, 1e-4, 0.3, 1.0, 7.0, 1e8, math.inf, math.nan, 5e-324], Y: [0.0] * 9}
    memory[X] = list(map(precision.rounded, memory[X]))
    Interpreter(program, memory).run()
    expected = list(memory[Y])
    write_powers(program, is_fast=True)
    verify(program)
    assert "power" not in {s.operation for s in statements(program.forward)}
    Interpreter(program, memory).run()
    unit = 2.0**-23 if precision is FLOAT32 else 2.0**-52
    assert memory[Y] == [pytest.approx(y, rel=3 * unit, abs=0.0, nan_ok=True) for y in expected]


@pytest.mark.parametrize("divisor", [255.0, -3.0, 0.0, math.inf, 2.0**-130])
def test_07_quotients_by_constants(divisor: float) -> None:
    """They are products in fast mode alone, and only where the inverse is an ordinary number."""
    quotient = define(at(Y), "divide", load(X), Constant(divisor))
    program = Program([quotient], precision=FLOAT32)
    write_powers(program)
    assert quotient.operation == "divide"
    write_powers(program, is_fast=True)
    verify(program)
    assert quotient.operation == ("multiply" if divisor in (255.0, -3.0) else "divide")
    memory = {X: [5.0] * 9, Y: [0.0] * 9}
    Interpreter(program, memory).run()
    if quotient.operation == "multiply":
        assert memory[Y][0] == pytest.approx(5.0 / divisor, rel=2.0**-22)
