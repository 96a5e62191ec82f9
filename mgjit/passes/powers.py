"""Leave out powers whose result is known: `x ** 1.0` is x.

1. The derivative of `x ** 2` is `2 * x ** 1.0`, so this power stands in every backward pass of a squared error.
   The C library's pow returns x for it, bit for bit: its error is far below half a unit of the last place, and
   x is a double.
2. PyPy computes `x ** 2.0` as a product.  Elsewhere it is a power and stays one: `pow(x, 2.0)` is not always
   `x * x`.
"""

from __future__ import annotations

from ..engine.arithmetic import SQUARE_IS_PRODUCT
from ..ir.program import Constant, Program, Statement, statements


def leave_out_powers(program: Program) -> None:
    """Replace powers by what they are equal to, in place."""
    for _, nodes in program.phases:
        for statement in statements(nodes):
            if statement.operation == "power" and not statement.update:
                _leave_out(statement)


def _leave_out(statement: Statement) -> None:
    base, exponent = statement.operands
    if exponent == Constant(1.0):
        statement.operation, statement.operands = "copy", (base,)
    elif exponent == Constant(2.0) and SQUARE_IS_PRODUCT:
        statement.operation, statement.operands = "multiply", (base, base)
