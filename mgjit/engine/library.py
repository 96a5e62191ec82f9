"""The functions of `math` that CPython takes from the C library, so that calling them in C gives the same bits.

1. `FUNCTIONS` lists them, with their arity, and the result of C where Python raises an error.
2. `library_function(name)` is the function with the results of C: an infinity or nan where Python raises.
3. `is_exact(name)` compares the C library with the interpreter before a function is used, because which functions
   CPython implements itself depends on its version (`erf` before 3.11), and PyPy implements some others.

Functions that CPython always implements itself (`hypot`, `gamma`, `lgamma`, `fsum`, `dist`) are not listed.
"""

from __future__ import annotations

import functools
import math
import random
import struct
from typing import Callable, NamedTuple

from .libm import mapped_libm

_INFINITY = math.inf


class Function(NamedTuple):
    """A function of the C library.

    Attributes:
        arity: the number of its operands.
        poles: the operands for which it is infinite, with the result.
        grows: the sign of the result on overflow: 1, or 0 for the sign of the operand.
    """

    arity: int = 1
    poles: tuple[tuple[float, float], ...] = ()
    grows: int = 1


FUNCTIONS = {
    **{name: Function() for name in ("sin", "cos", "tan", "asin", "acos", "atan", "cosh", "asinh", "acosh")},
    **{name: Function() for name in ("exp2", "expm1", "erf", "erfc")},
    "sinh": Function(grows=0),
    "cbrt": Function(),
    "atanh": Function(poles=((1.0, _INFINITY), (-1.0, -_INFINITY))),
    "log1p": Function(poles=((-1.0, -_INFINITY),)),
    "log2": Function(poles=((0.0, -_INFINITY),)),
    "log10": Function(poles=((0.0, -_INFINITY),)),
    **{name: Function() for name in ("floor", "ceil", "trunc", "rint")},
    **{name: Function(arity=2) for name in ("atan2", "fmod", "copysign")},
}

#: Functions that give ints in Python, and floats in C.
_WHOLE: dict[str, Callable[[float], float]] = {
    "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "rint": round,
}  # fmt: skip
#: How many random operands are compared for each magnitude.
_COMPARED = 300


def is_available(name: str) -> bool:
    """Whether this version of Python has a function: `exp2` and `cbrt` came with 3.11."""
    return name in _WHOLE or hasattr(math, name)


@functools.cache
def library_function(name: str) -> Callable[..., float]:
    """A function of the C library on plain numbers, which never raises."""
    if name in _WHOLE:
        return _whole(_WHOLE[name])
    known, original = FUNCTIONS[name], getattr(math, name, None)
    poles = dict(known.poles)

    def function(*operands: float) -> float:
        try:
            result: float = original(*operands)  # type: ignore[misc]
        except OverflowError:
            return _INFINITY if known.grows else math.copysign(_INFINITY, operands[0])
        except ValueError:
            return poles.get(operands[0], math.nan)
        return result

    function.__name__ = name
    return function


def _whole(original: Callable[[float], float]) -> Callable[[float], float]:
    def function(x: float) -> float:
        return math.copysign(float(original(x)), x) if x - x == 0.0 else x

    return function


@functools.cache
def is_exact(name: str) -> bool:
    """Whether the C library and the interpreter agree on a function, on many operands."""
    import ctypes  # which PyPy takes long to load

    if not hasattr(math, name) and name not in _WHOLE:
        return False
    path = mapped_libm()
    try:
        function = getattr(ctypes.CDLL(path), name)
    except (OSError, AttributeError):  # not found: assumed to agree, which verification will check
        return path is None
    function.argtypes = [ctypes.c_double] * FUNCTIONS[name].arity
    function.restype = ctypes.c_double
    ours = library_function(name)
    return all(_bits(function(*operands)) == _bits(ours(*operands)) for operands in _operands(FUNCTIONS[name].arity))


def _operands(arity: int) -> list[tuple[float, ...]]:
    draw = random.Random(1)  # noqa: S311 - no secrets
    special = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, _INFINITY, -_INFINITY, math.nan, 5e-324, 1e308, -1e308, 710.5]
    sizes = (1.0, 1e-3, 3.0, 30.0, 1e3, 1e18, 1e-300)
    found = special + [draw.uniform(-size, size) for size in sizes for _ in range(_COMPARED)]
    if arity == 1:
        return [(x,) for x in found]
    others = found[:]
    draw.shuffle(others)
    return [*zip(found, others), *((x, y) for x in special for y in special)]


def _bits(number: float) -> bytes:
    return b"nan" if number != number else struct.pack("d", number)
