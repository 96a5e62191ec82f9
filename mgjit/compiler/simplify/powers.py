"""Write powers as products, quotients and roots where these have the same bits: unlike `pow`, they vectorise.

    x ** 2  ->  x * x          x ** 1   ->  x
    x ** -1 ->  1 / x          x ** 0.5 ->  sqrt(x) + 0.0, but infinity for minus infinity

`x ** 1` is x for all numbers, since the C library's error before rounding is far below half a unit in the last place.
(It occurs in every backward pass of a squared error: the derivative of `x ** 2` is `2 * x ** 1.0`.)  The others are
for float32 only, with the formulas of `arithmetic.power_of_float32`; in float64 they differ from `pow` in last bits,
except that PyPy computes `x ** 2.0` as a product.

Where last bits do not matter (fast mode), these are for float64 as well, and there are more of them:

    x ** 3  ->  x * x * x      x ** 1.5 ->  x * sqrt(x)         x / c -> x * (1 / c) for constants c
    x ** -2 ->  1 / (x * x)    x ** -1.5 -> 1 / (x * sqrt(x))   x ** -0.5 -> 1 / sqrt(x)
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

from ...engine.arithmetic import SQUARE_IS_PRODUCT
from ...engine.precision import FLOAT64, Precision
from ...ir.program import Block, Constant, Loop, Node, Operand, Program, Register, Statement, statements

#: The exponents that are rewritten.
_OF_FLOAT32 = (2.0, 1.0, -1.0, 0.5)
_OF_FLOAT64 = (2.0, 1.0) if SQUARE_IS_PRODUCT else (1.0,)
_FAST = (*_OF_FLOAT32, 3.0, 1.5, -0.5, -1.5, -2.0)

_LARGEST = (2.0 - 2.0**-23) * 2.0**127


def write_powers(program: Program, is_fast: bool = False) -> None:
    """Rewrite a Program in place.

    Args:
        program: of a step.
        is_fast: whether results may differ in last bits.
    """
    exact = _OF_FLOAT64 if program.precision is FLOAT64 else _OF_FLOAT32
    for _, nodes in program.phases:
        nodes[:] = _written(nodes, _FAST if is_fast else exact)
        if is_fast:
            _divide_by_constants(nodes, program.precision)


def _written(nodes: Sequence[Node], exponents: Container[float]) -> list[Node]:
    done: list[Node] = []
    for node in nodes:
        if isinstance(node, (Loop, Block)):
            node.body = _written(node.body, exponents)
        elif isinstance(node, Statement) and node.operation == "power" and not node.update:
            base, exponent = node.operands
            if isinstance(exponent, Constant) and exponent.value in exponents:
                done += _write(node, base, exponent.value)
        done.append(node)
    return done


def _write(statement: Statement, base: Operand, exponent: float) -> list[Statement]:
    """Replace the operation of a power; returns the statements that must precede it."""
    if exponent == 2.0:
        statement.operation, statement.operands = "multiply", (base, base)
    elif exponent == 1.0:
        statement.operation, statement.operands = "copy", (base,)
    elif exponent == -1.0:
        statement.operation, statement.operands = "divide", (Constant(1.0), base)
    elif exponent == 0.5:
        origin = statement.origin
        root = Statement("sqrt", (base,), origin=origin)
        positive = Statement("add", (Register(root), Constant(0.0)), origin=origin)
        infinite = Statement("less", (base, Constant(-_LARGEST)), origin=origin)
        statement.operation = "select"
        statement.operands = Register(infinite), Constant(math.inf), Register(positive)
        return [root, positive, infinite]
    else:
        return _write_product(statement, base, exponent)
    return []


def _write_product(statement: Statement, base: Operand, exponent: float) -> list[Statement]:
    """Replace a power by a product of the base and its root, or by one over that."""
    before: list[Statement] = []

    def defined(operation: str, *operands: Operand) -> Operand:
        before.append(Statement(operation, operands, origin=statement.origin))
        return Register(before[-1])

    whole = int(abs(exponent))
    factors = [base] * whole + ([] if whole == abs(exponent) else [defined("sqrt", base)])
    while len(factors) > (2 if exponent > 0 else 1):
        factors[:2] = [defined("multiply", *factors[:2])]
    statement.operation, statement.operands = (
        ("multiply" if exponent > 0 else "divide"),
        (
            *([] if exponent > 0 else [Constant(1.0)]),
            *factors,
        ),
    )
    return before


def _divide_by_constants(nodes: Sequence[Node], precision: Precision) -> None:
    """Multiply by the inverse of a constant, which is then rounded twice, in place of a quotient."""
    smallest, largest = (2.0**-126, 2.0**126) if precision is not FLOAT64 else (2.0**-1022, 2.0**1022)
    for statement in statements(nodes):
        divisor = statement.operands[-1]
        if statement.operation != "divide" or not isinstance(divisor, Constant):
            continue
        if smallest <= abs(divisor.value) <= largest:
            inverse = Constant(precision.rounded(1.0 / divisor.value))
            statement.operation, statement.operands = "multiply", (*statement.operands[:-1], inverse)
