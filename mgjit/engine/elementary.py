"""Functions of one number over plain numbers, Values and tensors, each in one entry.

An entry is written once, with operators and the functions of `functions.py`, and everything else follows from it:

1. Of a plain number, traced or not, it is computed as it is written.
2. Of a Value, an entry with a derivative is one node, whose derivative is computed with it.  Without one, the entry
   consists of operations that have derivatives, and is computed of the Value itself.
3. Of an element of a tensor, the same operations are the steps of a loop nest (`ir/bodies.py`).

What has an instruction or vectors of its own is an operation instead (`operations.py`).
"""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple

from . import arithmetic
from .functions import _is_plain, _method, exp, log, where
from .library import library_function
from .value import Value


class Elementary(NamedTuple):
    """What defines a function.

    Attributes:
        value: what it computes.
        derivative: of what the C library computes, of the number and the result; None if it follows from `value`.
    """

    value: Callable[[Any], Any]
    derivative: Callable[[Any, Any], Any] | None


#: By name.
ELEMENTARY: dict[str, Elementary] = {}


def _define(
    name: str, what: str, value: Callable[[Any], Any], derivative: Callable[[Any, Any], Any] | None = None
) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if _is_plain(x):
            return value(float(x))
        if isinstance(x, Value):
            if derivative is None:
                return value(x)
            number = x.data
            found = value(number)
            return x._linked(found, derivative(number, found))
        if hasattr(x, "_as_float"):  # a traced number
            return value(x._as_float())
        return _method(x, name)()  # a tensor

    ELEMENTARY[name] = Elementary(value, derivative)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = what
    return function


def _in_library(name: str) -> Callable[[Any], Any]:
    """A function of the C library."""

    def value(x: Any) -> Any:
        return library_function(name)(x) if _is_plain(x) else x._library(name, (x,))

    return value


def _divide(x: Any, y: Any) -> Any:
    """x / y, an infinity or nan where y is zero."""
    return arithmetic.divide(x, y) if _is_plain(y) else x / y


def _softplus(x: Any) -> Any:
    return where(x > 0.0, x, 0.0) + log(1.0 + exp(where(x > 0.0, -x, x)))  # exp of nothing above 0


log1p = _define(
    "log1p",
    "log(1 + x), exact for small x as well; -inf at -1 and nan below.",
    _in_library("log1p"),
    lambda x, found: _divide(1.0, 1.0 + x),
)
softplus = _define("softplus", "log(1 + exp(x)), without overflow.", _softplus)
erf = _define(
    "erf",
    "The error function, that of `math`.",
    _in_library("erf"),
    lambda x, found: (2.0 / math.sqrt(math.pi)) * exp(-(x * x)),
)
