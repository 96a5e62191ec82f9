"""autograd/derivatives.py: which factors are the derivatives of which records."""

from __future__ import annotations

import pytest

from mgjit.ir import opcodes as ops
from mgjit.tracing.autograd.derivatives import Derivatives
from mgjit.tracing.record.recorder import Recorder

X, Y = ops.leaf(ops.PARAMETER, 0), ops.leaf(ops.PARAMETER, 1)
IN = ops.leaf(ops.INPUT, 0)


class Trace:
    """Records numbers."""

    def __init__(self) -> None:
        self.recorder = Recorder()

    def __call__(self, code: int, a: int, b: int = ops.NO_OPERAND) -> int:
        return self.recorder.emit(code | ops.NUMBER, a, b)

    def number(self, value: float) -> int:
        return self.recorder.constant(value)

    def names(self, record: int, *edges: tuple[int, int]) -> str | None:
        """The columns that edges belong to."""
        columns = Derivatives(self.recorder, {X, Y}).columns(record, [(None, *edge, False, 0) for edge in edges])
        if columns is None:
            return None
        return "".join("a" if column is self.recorder.a else "b" for column in columns)


def test_01_sums_and_products() -> None:
    """Both operands, in either order; one operand where the other one has no gradient."""
    t = Trace()
    one, minus_one = t.number(1.0), t.number(-1.0)
    assert t.names(t(ops.ADD, X, Y), (X, one), (Y, one)) == "ab"
    assert t.names(t(ops.ADD, X, Y), (Y, one), (X, one)) == "ba"
    assert t.names(t(ops.ADD, X, IN), (X, one)) == "a"
    assert t.names(t(ops.ADD, X, X), (X, one), (X, one)) == "ab"
    assert t.names(t(ops.SUBTRACT, X, Y), (X, one), (Y, minus_one)) == "ab"
    assert t.names(t(ops.SUBTRACT, X, X), (X, one), (X, minus_one)) == "ab"
    assert t.names(t(ops.SUBTRACT, X, X), (X, minus_one), (X, one)) is None  # (x - g) + g is not (x + g) - g
    assert t.names(t(ops.MULTIPLY, X, Y), (X, Y), (Y, X)) == "ab"
    assert t.names(t(ops.MULTIPLY, IN, Y), (Y, IN)) == "b"
    assert t.names(t(ops.NEGATE, X), (X, minus_one)) == "a"


def test_02_what_does_not_fit() -> None:
    """Other factors, missing edges, additional ones, other operands."""
    t = Trace()
    one, two = t.number(1.0), t.number(2.0)
    assert t.names(t(ops.ADD, X, Y), (X, two), (Y, one)) is None
    assert t.names(t(ops.ADD, X, Y), (X, one)) is None  # a gradient would go to Y, too
    assert t.names(t(ops.ADD, X, IN), (X, one), (Y, one)) is None
    assert t.names(t(ops.MULTIPLY, X, Y), (X, X), (Y, X)) is None
    assert t.names(t(ops.SUBTRACT, X, Y), (X, one), (Y, one)) is None
    assert t.names(t(ops.DIVIDE, X, IN), (X, one)) is None
    assert t.names(X, (X, one)) is None
    assert t.names(t.recorder.emit(ops.ADD, X, IN), (X, one)) is None  # a gradient crosses it already


@pytest.mark.parametrize("exponent", [2.0, 3.0, -1.0, 0.5, 1.0])
def test_03_powers(exponent: float) -> None:
    """n * x ** (n - 1), the factors in either order; nothing else."""
    t = Trace()
    n, less = t.number(exponent), t.number(exponent - 1.0)
    record, power = t(ops.POWER, X, n), t(ops.POWER, X, less)
    assert t.names(record, (X, t(ops.MULTIPLY, n, power))) == "a"
    assert t.names(record, (X, t(ops.MULTIPLY, power, n))) == "a"
    assert t.names(record, (X, power)) is None
    assert t.names(record, (X, t(ops.MULTIPLY, n, t(ops.POWER, Y, less)))) is None
    assert (t.names(record, (X, t(ops.MULTIPLY, n, X))) == "a") == (exponent == 2.0)


def test_04_functions() -> None:
    """exp with its result, computed once or twice; tanh with 1 - y * y, but not with y ** 2."""
    t = Trace()
    one = t.number(1.0)
    exp, tanh = t(ops.EXP, X), t(ops.TANH, X)
    assert t.names(exp, (X, exp)) == t.names(exp, (X, t(ops.EXP, X))) == "a"
    assert t.names(exp, (X, t(ops.EXP, Y))) is None
    assert t.names(tanh, (X, t(ops.SUBTRACT, one, t(ops.MULTIPLY, tanh, tanh)))) == "a"
    assert t.names(tanh, (X, t(ops.SUBTRACT, one, t(ops.POWER, tanh, t.number(2.0))))) is None


def test_05_relu() -> None:
    """`0 if x < 0 else x` with a test of x or of the result."""
    t = Trace()
    zero = t.number(0.0)
    for of_result in (True, False):
        record = t.recorder.select(t(ops.LESS, X, zero), zero, X, ops.NUMBER)
        factor = t(ops.LESS, zero, record if of_result else X)
        assert t.names(record, (X, t(ops.LESS, X, zero))) is None
        assert t.names(record, (X, factor)) == "a"
        assert t.recorder.op[record] == ops.RELU
    other = t.recorder.select(t(ops.LESS, zero, X), X, zero, ops.NUMBER)  # nan becomes 0 here
    assert t.names(other, (X, t(ops.LESS, zero, other))) is None
