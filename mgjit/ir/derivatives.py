"""The derivative of each operation, as further operations: what a backward pass adds to the adjoint of each operand.

The rules are those of engine/value.py, expression by expression.  Who applies them, and to what, is the emitter's
business: statements of a Program (differentiate.py), or the loops of eager tensors (tensor/backward.py).
"""

from __future__ import annotations

from typing import Any, Callable

from ..engine.precision import Precision
from .program import Constant

#: A number of the emitter: what it computes with, or a Constant.
Operand = Any


class Emitter:
    """Emits the operations of one rule."""

    precision: Precision

    def emit(self, operation: str, *operands: Operand) -> Operand:
        """An operation; returns its result."""
        raise NotImplementedError

    def multiply(self, x: Operand, y: Operand) -> Operand:
        """x * y"""
        return self.emit("multiply", x, y)

    def negate(self, x: Operand) -> Operand:
        """-x"""
        return self.emit("negate", x)


#: (emitter, operands, result, its adjoint) -> the contribution to each operand
Rule = Callable[[Emitter, "list[Operand]", Operand, Operand], "list[Operand | None]"]


def _add(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [g, g]


def _subtract(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [g, e.negate(g)]


def _multiply(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [e.multiply(x[1], g), e.multiply(x[0], g)]


def _divide(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [e.emit("divide", g, x[1]), e.negate(e.emit("divide", e.multiply(g, out), x[1]))]


def _power(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    exponent = x[1]
    if isinstance(exponent, Constant):
        lower: Operand = Constant(e.precision.rounded(exponent.value - 1.0))
    else:
        lower = e.emit("subtract", exponent, Constant(1.0))
    return [e.multiply(e.multiply(exponent, e.emit("power", x[0], lower)), g)]


def _negate(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [e.negate(g)]


def _absolute(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    positive = e.emit("less", Constant(0.0), x[0])
    negative = e.emit("less", x[0], Constant(0.0))
    return [e.multiply(e.emit("subtract", positive, negative), g)]


def _relu(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [e.multiply(e.emit("less", Constant(0.0), out), g)]


def _exp(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [e.multiply(out, g)]


def _log(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [e.emit("divide", g, x[0])]


def _tanh(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [e.multiply(e.emit("subtract", Constant(1.0), e.multiply(out, out)), g)]


def _sqrt(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [e.emit("divide", g, e.multiply(Constant(2.0), out))]


def _sin(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [e.multiply(e.emit("cos", x[0]), g)]


def _cos(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [e.negate(e.multiply(e.emit("sin", x[0]), g))]


def _maximum(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    second = e.emit("less", x[0], x[1])
    return [e.emit("select", second, Constant(0.0), g), e.emit("select", second, g, Constant(0.0))]


def _minimum(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    second = e.emit("less", x[1], x[0])
    return [e.emit("select", second, Constant(0.0), g), e.emit("select", second, g, Constant(0.0))]


def _select(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [None, e.emit("select", x[0], g, Constant(0.0)), e.emit("select", x[0], Constant(0.0), g)]


def _link(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    derivative = x[2]
    is_one = isinstance(derivative, Constant) and derivative.value == 1.0
    return [g, g if is_one else e.multiply(derivative, g), None]


def _link_divided(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [g, e.emit("divide", g, x[2]), None]


def _copy(e: Emitter, x: list[Operand], out: Operand, g: Operand) -> list[Operand | None]:
    return [g]


RULES: dict[str, Rule] = {
    "add": _add, "subtract": _subtract, "multiply": _multiply, "divide": _divide, "power": _power, "negate": _negate,
    "absolute": _absolute, "relu": _relu, "exp": _exp, "log": _log, "tanh": _tanh, "sqrt": _sqrt,
    "sin": _sin, "cos": _cos,
    "maximum": _maximum, "minimum": _minimum, "select": _select, "link": _link,
    "link_divided": _link_divided, "copy": _copy,
}  # fmt: skip
