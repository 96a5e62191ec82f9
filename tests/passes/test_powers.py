"""Powers that are copies."""

from __future__ import annotations

import mgjit
from mgjit.engine.arithmetic import SQUARE_IS_PRODUCT, power
from mgjit.ir.program import Array, Constant, Program, statements
from mgjit.passes.powers import leave_out_powers
from tests.handmade import SPECIAL, at, define, load, same_bits, update
from tests.lowering import Example, bits, numbers

X, T = Array("x", "parameter", 9), Array("t", "gradient", 9)


def test_01_only_exponent_one() -> None:
    exponents = [1.0, 2.0, 0.0, -1.0]
    nodes = [define(at(T, base=k), "power", load(X), Constant(y)) for k, y in enumerate(exponents)]
    last = [define(at(T, base=4), "power", Constant(1.0), load(X)), update(at(T, base=5), "power", Constant(1.0))]
    program = Program([*nodes, *last])
    same_bits(program, leave_out_powers)
    square = "multiply" if SQUARE_IS_PRODUCT else "power"
    assert [s.operation for s in statements(program.forward)] == ["copy", square, *["power"] * 4]


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
