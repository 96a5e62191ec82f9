"""What each operation computes: one Python function a name, shared by the interpreter and its tests."""

from __future__ import annotations

import operator
from typing import Any, Callable

from ..engine import arithmetic


def _select(condition: float, chosen: float, other: float) -> float:
    return chosen if condition else other


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
}
