"""Leave out powers whose result is known: `x ** 1.0` is x.

The derivative of `x ** 2` is `2 * x ** 1.0`, so this power stands in every backward pass of a squared error.
The C library's pow returns x for it, bit for bit: its error is far below half a unit of the last place, and x
is a double.  No other exponent but 0 has such a rule: `pow(x, 2.0)` is not always `x * x`.
"""

from __future__ import annotations

from ..ir.program import Constant, Program, statements


def leave_out_powers(program: Program) -> None:
    """Replace powers by what they are a copy of, in place."""
    for _, nodes in program.phases:
        for statement in statements(nodes):
            if statement.operation == "power" and not statement.update and statement.operands[1] == Constant(1.0):
                statement.operation, statement.operands = "copy", statement.operands[:1]
