"""Powers that are copies, and those of float32 that are products, quotients and roots."""

from __future__ import annotations

import math

import pytest

import mgjit
from mgjit.engine.arithmetic import power
from mgjit.engine.precision import FLOAT32, FLOAT64, Precision
from mgjit.ir.interpreter import Interpreter
from mgjit.ir.program import Array, Block, Constant, Loop, Program, Statement, statements
from mgjit.ir.verify import verify
from mgjit.passes.powers import write_powers
from tests.handmade import SPECIAL, around, at, define, load, same_bits, update
from tests.lowering import Example, bits, numbers

X, T = Array("x", "parameter", 9), Array("t", "gradient", 9)
NUMBERS = [0.0, -0.0, 1.5, -3.0, math.inf, -math.inf, math.nan, 2.0**-149, -(2.0**127)]


def test_01_only_exponent_one() -> None:
    exponents = [1.0, 2.0, 0.0, -1.0]
    nodes = [define(at(T, base=k), "power", load(X), Constant(y)) for k, y in enumerate(exponents)]
    last = [define(at(T, base=4), "power", Constant(1.0), load(X)), update(at(T, base=5), "power", Constant(1.0))]
    program = Program([*nodes, *last])
    same_bits(program, write_powers)
    assert [s.operation for s in statements(program.forward)] == ["copy", *["power"] * 5]


def test_02_the_library_agrees() -> None:
    for number in [
        *SPECIAL,
        *numbers(2_000),
        *(x * 2.0**-1060 for x in numbers(500)),
        *(x * 1e300 for x in numbers(500)),
    ]:
        assert bits(power(number, 1.0)) == bits(number)


def test_03_squared_errors() -> None:
    """The backward pass of a square has no power any more."""
    w = [mgjit.Value(number) for number in numbers(5)]

    def step(x: list[float]) -> mgjit.Value:
        loss = sum((a - b) ** 2 for a, b in zip(w, x))
        loss.backward()
        return loss

    example = Example(step, numbers(5, 2))
    program = example.lower("dead statements")
    assert not any(s.operation == "power" for s in statements(program.backward))
    example.check(program)


def powers(exponent: float, precision: Precision, block: bool = False) -> Program:
    """t[i] = x[i] ** exponent"""
    loop = Loop(9, [])
    power = define(at(T, (loop, 1)), "power", load(X, (loop, 1)), Constant(exponent))
    return Program([around(loop, Block([power]) if block else power)], precision=precision)


def result(program: Program) -> list[bytes]:
    """The bits of t."""
    memory = {X: NUMBERS, T: [0.0] * 9}
    Interpreter(program, memory).run()
    return [bits(t) for t in memory[T]]


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("exponent", [2.0, 1.0, -1.0, 0.5])
def test_04_float32_has_other_operations_with_the_same_result(exponent: float, block: bool) -> None:
    """Zeros, infinities and nan included; the last statement keeps the target."""
    program = powers(exponent, FLOAT32, block)
    expected = result(program)
    write_powers(program)
    verify(program)
    assert "power" not in {s.operation for s in statements(program.forward)}
    assert result(program) == expected


@pytest.mark.parametrize(("exponent", "precision"), [(3.0, FLOAT32), (-2.0, FLOAT32), (2.0, FLOAT64), (0.5, FLOAT64)])
def test_05_others_stay(exponent: float, precision: Precision) -> None:
    """Other exponents, and all but one of float64."""
    program = powers(exponent, precision)
    write_powers(program)
    assert [s.operation for s in statements(program.forward)] == ["power"]


def test_06_exponents_that_are_not_constants_stay() -> None:
    """Their formula is chosen when they are known."""
    program = Program([Statement("power", (load(X), load(X)), at(T))], precision=FLOAT32)
    write_powers(program)
    assert [s.operation for s in statements(program.forward)] == ["power"]
