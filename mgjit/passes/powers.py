"""Write powers as the operations that they are: those can be executed side by side, `pow` cannot.

    x ** 2  ->  x * x          x ** 1   ->  x
    x ** -1 ->  1 / x          x ** 0.5 ->  sqrt(x) + 0.0, but infinity for minus infinity

`x ** 1` is x for all numbers: the C library's error is far below half a unit of the last place, and x is one of its
numbers.  (It stands in every backward pass of a squared error: the derivative of `x ** 2` is `2 * x ** 1.0`.)  The
others are for float32 only, the formulas of `arithmetic.power_of_float32`; in float64 `pow` differs from them in last
bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..engine.precision import FLOAT64
from ..ir.program import Block, Constant, Loop, Node, Operand, Program, Register, Statement

_LARGEST = (2.0 - 2.0**-23) * 2.0**127


def write_powers(program: Program) -> None:
    """Rewrite a Program in place."""
    for _, nodes in program.phases:
        nodes[:] = _written(nodes, program.precision is FLOAT64)


def _written(nodes: Sequence[Node], only_first: bool) -> list[Node]:
    done: list[Node] = []
    for node in nodes:
        if isinstance(node, (Loop, Block)):
            node.body = _written(node.body, only_first)
        elif isinstance(node, Statement) and node.operation == "power" and not node.update:
            base, exponent = node.operands
            if isinstance(exponent, Constant) and (exponent.value == 1.0 or not only_first):
                done += _write(node, base, exponent.value)
        done.append(node)
    return done


def _write(statement: Statement, base: Operand, exponent: float) -> list[Statement]:
    """Change the operation of a power; returns what must be computed before."""
    if exponent == 2.0:
        statement.operation, statement.operands = "multiply", (base, base)
    elif exponent == 1.0:
        statement.operation, statement.operands = "copy", (base,)
    elif exponent == -1.0:
        statement.operation, statement.operands = "divide", (Constant(1.0), base)
    elif exponent == 0.5:
        root = Statement("sqrt", (base,))
        positive = Statement("add", (Register(root), Constant(0.0)))
        infinite = Statement("less", (base, Constant(-_LARGEST)))
        statement.operation = "select"
        statement.operands = Register(infinite), Constant(math.inf), Register(positive)
        return [root, positive, infinite]
    return []
