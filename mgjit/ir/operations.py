"""What each operation computes: one Python function per name, used by the interpreter and the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..engine import arithmetic
from ..engine.operations import OPERATIONS, operations
from ..engine.precision import FLOAT64, Precision

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: one.function for name, one in OPERATIONS.items() if one.function is not None
}
#: Operations whose results need no rounding.
EXACT = operations(lambda one: not one.rounds)


_FUNCTIONS_OF_FLOAT32 = {**FUNCTIONS, "power": arithmetic.power_of_float32}


def compute(operation: str, operands: Sequence[float], precision: Precision) -> float:
    """The result of an operation on numbers of the given precision."""
    functions = FUNCTIONS if precision is FLOAT64 else _FUNCTIONS_OF_FLOAT32
    return precision.rounded(functions[operation](*operands))
