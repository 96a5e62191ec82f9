"""Write powers as the operations that they are: those can be executed side by side, and cost a fraction of `pow`.

    always:   x ** 1  ->  x
    float32:  x ** 2  ->  x * x        x ** -1  ->  1 / x        x ** 0.5  ->  sqrt(x) + 0.0, infinite at -infinity

1. The derivative of `x ** 2` is `2 * x ** 1.0`, so that power stands in every backward pass of a squared error.  The C
   library's pow returns x for it, bit for bit: its error is far below half a unit of the last place, and x is a double.
   No other exponent but 0 has such a rule in float64: `pow(x, 2.0)` is not always `x * x`.
2. In float32 the others are what powers are defined to be (`arithmetic.power_of_float32`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..engine.precision import FLOAT64
from ..ir.program import Block, Constant, Loop, Node, Operand, Program, Register, Statement

_LARGEST_FLOAT32 = (2.0 - 2.0**-23) * 2.0**127


def write_powers(program: Program) -> None:
    """Replace powers by other operations, in place."""
    for _, nodes in program.phases:
        nodes[:] = _written(nodes, program.precision is not FLOAT64)


def _written(nodes: Sequence[Node], in_float32: bool) -> list[Node]:
    done: list[Node] = []
    for node in nodes:
        if isinstance(node, (Loop, Block)):
            node.body = _written(node.body, in_float32)
        elif isinstance(node, Statement) and node.operation == "power" and not node.update:
            base, exponent = node.operands
            if exponent == Constant(1.0):
                node.operation, node.operands = "copy", (base,)
            elif in_float32 and isinstance(exponent, Constant):
                done += _write(node, base, exponent.value)
        done.append(node)
    return done


def _write(statement: Statement, base: Operand, exponent: float) -> list[Statement]:
    """Change the operation of a power of float32; returns what must be computed before."""
    if exponent == 2.0:
        statement.operation, statement.operands = "multiply", (base, base)
    elif exponent == -1.0:
        statement.operation, statement.operands = "divide", (Constant(1.0), base)
    elif exponent == 0.5:
        root = Statement("sqrt", (base,))
        positive = Statement("add", (Register(root), Constant(0.0)))
        infinite = Statement("less", (base, Constant(-_LARGEST_FLOAT32)))
        statement.operation = "select"
        statement.operands = Register(infinite), Constant(math.inf), Register(positive)
        return [root, positive, infinite]
    return []
