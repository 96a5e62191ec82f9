"""The operations of traces and Programs, each in one entry, with what all layers ask about it.

Opcodes are the places in this table (`opcodes.py`).  What is not here: derivatives, which are programs of operations
themselves (`ir/derivatives.py`), and the few operations that each emitter writes by rules of its own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import arithmetic
from .library import FUNCTIONS as LIBRARY
from .library import is_available, library_function


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        function: what it computes of numbers of float64, a total function; None if it computes no number, or if this
            version of Python has no such function.
        arity: how many operands it has.
        method: of Values and traced numbers, if it has one operand.
        symbol: of the operator, where C and Python have one; that of comparisons gives 1.0 or 0.0 here.
        compares: whether it is a comparison.
        called: the name of a function or macro of C that computes it.
        cost: of one vector of results, in additions.
        is_instruction: whether it is one for a vector, too.
        rounds: whether there is something to round: not if its result is an operand, its negative, 0 or 1.
        commutes: whether its two operands may change places; of arithmetic.
        raises: whether Python may raise an error, where it has a result here.
        hides_sign: whether operands 0.0 and -0.0 have the same result.
        keeps_sign: whether their results are the same, or zeros themselves.
        keeps_whole: whether the result for a whole number is one that is not farther from zero.
    """

    function: Callable[..., Any] | None
    arity: int = 2
    method: str = ""
    symbol: str = ""
    compares: bool = False
    called: str = ""
    cost: float = 1.0
    is_instruction: bool = False
    rounds: bool = True
    commutes: bool = False
    raises: bool = False
    hides_sign: bool = False
    keeps_sign: bool = False
    keeps_whole: bool = False


def _select(condition: float, chosen: float, other: float) -> float:
    return chosen if condition else other


def _link(value: float, operand: float, derivative: float) -> float:
    """`value`; a link only declares its derivative by `operand` (link_divided: the reciprocal of the derivative)."""
    return value


def _compared(symbol: str, function: Callable[[float, float], bool]) -> Operation:
    return Operation(
        lambda x, y: float(function(x, y)), symbol=symbol, compares=True, is_instruction=True, rounds=False,
        hides_sign=True,
    )  # fmt: skip


#: What rounds to whole numbers, and what gives one of its operands.
_WHOLE = ("floor", "ceil", "trunc", "rint")


def _of_library(name: str) -> Operation:
    return Operation(
        library_function(name) if is_available(name) else None, LIBRARY[name].arity, called=name, cost=25.0,
        rounds=name not in (*_WHOLE, "copysign"), raises=True, keeps_whole=name in _WHOLE,
    )  # fmt: skip


OPERATIONS: dict[str, Operation] = {
    "add": Operation(operator.add, symbol="+", is_instruction=True, commutes=True, keeps_sign=True),
    "subtract": Operation(operator.sub, symbol="-", is_instruction=True, keeps_sign=True),
    "multiply": Operation(operator.mul, symbol="*", is_instruction=True, commutes=True, keeps_sign=True),
    "divide": Operation(arithmetic.divide, symbol="/", cost=4.0, is_instruction=True, raises=True),
    "power": Operation(arithmetic.power, called="POWER", cost=25.0, raises=True),
    "maximum": Operation(arithmetic.maximum, is_instruction=True, rounds=False, keeps_sign=True),
    "minimum": Operation(arithmetic.minimum, is_instruction=True, rounds=False, keeps_sign=True),
    "less": _compared("<", operator.lt),
    "less_equal": _compared("<=", operator.le),
    "equal": _compared("==", operator.eq),
    "not_equal": _compared("!=", operator.ne),
    "negate": Operation(
        operator.neg, 1, "__neg__", is_instruction=True, rounds=False, keeps_sign=True, keeps_whole=True
    ),
    "absolute": Operation(
        abs, 1, "__abs__", called="ABSOLUTE", is_instruction=True, rounds=False, hides_sign=True, keeps_whole=True
    ),
    "relu": Operation(arithmetic.relu, 1, "relu", is_instruction=True, rounds=False, keeps_sign=True, keeps_whole=True),
    "exp": Operation(arithmetic.exp, 1, "exp", called="exp", cost=12.0, raises=True),
    "log": Operation(arithmetic.log, 1, "log", called="log", cost=12.0, raises=True),
    "tanh": Operation(arithmetic.tanh, 1, "tanh", called="tanh", cost=25.0, keeps_sign=True),
    "sqrt": Operation(
        arithmetic.sqrt, 1, "sqrt", called="SQUARE_ROOT", cost=5.0, is_instruction=True, raises=True, keeps_sign=True
    ),
    "copy": Operation(float, 1, "_copied", is_instruction=True, rounds=False, keeps_sign=True, keeps_whole=True),
    "select": Operation(_select, 3, is_instruction=True, rounds=False),
    "link": Operation(_link, 3, rounds=False),
    "link_divided": Operation(_link, 3, rounds=False),
    "store": Operation(None),
    "backward": Operation(None, 1),
    **{name: _of_library(name) for name in LIBRARY},
    "take": Operation(None),
}


def operations(has: Callable[[Operation], object]) -> frozenset[str]:
    """The names of the operations that have a property."""
    return frozenset(name for name, operation in OPERATIONS.items() if has(operation))


COMPARISONS = {name: one.symbol for name, one in OPERATIONS.items() if one.compares}
"""The symbols of comparisons, in C as in Python."""
