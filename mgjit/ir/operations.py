"""The meaning of each operation: one Python function per name, used by the interpreter and the tests."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Callable

from ..engine import arithmetic
from ..engine.library import FUNCTIONS as LIBRARY
from ..engine.library import is_available, library_function
from ..engine.precision import FLOAT64, Precision


def _select(condition: float, chosen: float, other: float) -> float:
    return chosen if condition else other


def _link(value: float, operand: float, derivative: float) -> float:
    """`value`; a link only declares its derivative by `operand` (link_divided: the reciprocal of the derivative)."""
    return value


#: Comparisons give 1.0 or 0.0.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": arithmetic.divide,
    "power": arithmetic.power,
    "maximum": arithmetic.maximum,
    "minimum": arithmetic.minimum,
    "less": lambda x, y: float(x < y),
    "less_equal": lambda x, y: float(x <= y),
    "equal": lambda x, y: float(x == y),
    "not_equal": lambda x, y: float(x != y),
    "negate": operator.neg,
    "absolute": abs,
    "relu": arithmetic.relu,
    "exp": arithmetic.exp,
    "log": arithmetic.log,
    "tanh": arithmetic.tanh,
    "sqrt": arithmetic.sqrt,
    "copy": float,
    "select": _select,
    "link": _link,
    "link_divided": _link,
    **{name: library_function(name) for name in LIBRARY if is_available(name)},
}

#: Operations whose result is an operand, its negative, 0 or 1, so that there is nothing to round.
EXACT = frozenset({
    "maximum", "minimum", "less", "less_equal", "equal", "not_equal", "negate", "absolute", "relu", "copy", "select",
    "link", "link_divided", "floor", "ceil", "trunc", "rint", "copysign",
})  # fmt: skip


_FUNCTIONS_OF_FLOAT32 = {**FUNCTIONS, "power": arithmetic.power_of_float32}


def compute(operation: str, operands: Sequence[float], precision: Precision) -> float:
    """The result of an operation on numbers of the given precision."""
    functions = FUNCTIONS if precision is FLOAT64 else _FUNCTIONS_OF_FLOAT32
    return precision.rounded(functions[operation](*operands))
