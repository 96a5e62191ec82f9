"""Scalar arithmetic with the results of C: the definition of each operation, for every layer of mgjit.

Python raises, or returns a complex number, where IEEE 754 has an answer (`1.0 / 0.0`, `math.exp(1000)`,
`(-8.0) ** 0.5`).  The engine, the reference interpreter and the Python backend share these functions, so that they
agree with the generated C on every input.  On ordinary inputs, each is exactly the Python operation.
"""

from __future__ import annotations

import math
import sys
from typing import Any

_IS_PYPY = sys.implementation.name == "pypy"

#: PyPy computes `x ** 2.0` as `x * x`; CPython calls the C library's `pow`, which rarely differs in the last bit.
#: Compiled code does what the interpreter does that it runs under.
SQUARE_IS_PRODUCT = _IS_PYPY

_INFINITY = math.inf


def to_degrees(x: Any) -> Any:
    """`math.degrees` of any kind of number: PyPy divides where CPython multiplies, and the last bit is another one."""
    return x / (math.pi / 180.0) if _IS_PYPY else x * (180.0 / math.pi)


def divide(x: float, y: float) -> float:
    """`x / y`; a zero divisor gives an infinity or nan, as in C."""
    try:
        return x / y
    except ZeroDivisionError:
        if x == 0.0 or x != x:
            return math.nan
        return math.copysign(_INFINITY, x) * math.copysign(1.0, y)


def power(x: float, y: float) -> float:
    """`x ** y`; overflow and a pole give infinities, a complex result gives nan, as C's `pow`."""
    try:
        result: float | complex = x**y
    except (OverflowError, ZeroDivisionError):
        if x < 0.0 and y % 1.0 != 0.0:
            return math.nan  # would be complex, if it did not overflow first
        negative = math.copysign(1.0, x) < 0.0 and y % 2.0 == 1.0
        return -_INFINITY if negative else _INFINITY
    if isinstance(result, complex):
        return math.nan
    return result


def power_of_float32(x: float, y: float) -> float:
    """`power` of float32 operands, not yet rounded to float32.

    The most frequent exponents, in steps and in their derivatives, are computed as products, quotients and square
    roots, which processors compute in vectors.  Rounded to float32, these equal any `pow` with an error below one unit
    in the last place of float64: the product is exact in float64, and a quotient or root of 24-bit numbers is never
    that close to a tie of float32.
    """
    if y == 2.0:
        return x * x
    if y == 1.0:
        return x
    if y == -1.0:
        return divide(1.0, x)
    if y == 0.5:  # unlike sqrt, pow(-0.0, 0.5) is 0.0, and pow(-inf, 0.5) is inf
        return _INFINITY if x == -_INFINITY else sqrt(x) + 0.0
    return power(x, y)


def exp(x: float) -> float:
    """`math.exp`, infinite where it overflows."""
    try:
        return math.exp(x)
    except OverflowError:
        return _INFINITY


def log(x: float) -> float:
    """`math.log`, -inf at zero and nan below."""
    if x > 0.0:
        return math.log(x)
    return -_INFINITY if x == 0.0 else math.nan


def sqrt(x: float) -> float:
    """`math.sqrt`, nan below zero."""
    if x < 0.0:
        return math.nan
    return math.sqrt(x)


def relu(x: float) -> float:
    """0.0 for negative `x`, otherwise `x` itself (also nan)."""
    return 0.0 if x < 0.0 else x


def maximum(x: float, y: float) -> float:
    """Python's `max(x, y)`: the first argument unless the second is greater."""
    return y if y > x else x


def minimum(x: float, y: float) -> float:
    """Python's `min(x, y)`: the first argument unless the second is smaller."""
    return y if y < x else x


tanh = math.tanh
