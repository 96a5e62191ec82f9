"""Hints for the author of a step: powers that have a faster spelling.

`x ** 2` is a call of the C library's pow, because that is what Python does, and pow is not always equal to `x * x`.
Only the author can decide which of the two to use, so `explain()` points it out, and nothing is changed.
"""

from __future__ import annotations

from ...engine.arithmetic import SQUARE_IS_PRODUCT
from ...engine.precision import FLOAT64
from ...ir.opcodes import NUMBER, leaf_index
from ...ir.trace import Trace

#: By exponent: the faster spelling; for plain numbers there are more, because `1 / x` of Values is a power as well.
_OF_VALUES = {2.0: "x * x", 3.0: "x * x * x", 4.0: "(x * x) * (x * x)", 0.5: "mgjit.sqrt(x)"}
_OF_NUMBERS = {**_OF_VALUES, -1.0: "1 / x", -2.0: "1 / (x * x)", -0.5: "1 / mgjit.sqrt(x)"}


def power_hints(trace: Trace) -> list[str]:
    """One line for each kind of power with a faster spelling, with the place where it is first written."""
    hints = []
    known = (2.0, 0.5, -1.0) if trace.precision is not FLOAT64 else (2.0,) if SQUARE_IS_PRODUCT else ()
    for (opcode, operand), location in trace.power_lines.items():
        exponent = trace.constants[leaf_index(operand)]
        spelling = (_OF_NUMBERS if opcode & NUMBER else _OF_VALUES).get(exponent)
        if spelling is None or exponent in known:  # those are no calls (simplify/powers.py)
            continue
        count = sum(1 for op, b in zip(trace.op, trace.b) if b == operand and op == opcode)
        if not count:  # a gradient crosses all of them by now
            continue
        hints.append(
            f"{location}: x ** {exponent:g} calls pow ({count:,} a step); "
            f"{spelling} is several times faster, and differs in the last bit for some x"
        )
    return hints
