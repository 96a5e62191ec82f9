"""Powers of float32 become other operations; those of float64 stay."""

from __future__ import annotations

import math

import pytest

from mgjit.engine.arithmetic import SQUARE_IS_PRODUCT, power
from mgjit.engine.precision import FLOAT32, FLOAT64, Precision
from mgjit.ir.interpreter import Interpreter
from mgjit.ir.program import Array, Block, Constant, Loop, Program, Statement, statements
from mgjit.ir.verify import verify
from mgjit.passes.powers import write_powers
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
