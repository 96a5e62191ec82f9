"""The functions of `math` for traced numbers, by name."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ...engine.arithmetic import to_degrees
from ...engine.leaks import is_traced, is_traced_number
from ...engine.library import FUNCTIONS as LIBRARY
from ...errors import TraceError, user_location
from .conditional import both, either
from .kinds import as_float, has_traced, to_float


def _of_number(name: str, original: Callable[..., Any], compute: Callable[..., Any]) -> Callable[..., Any]:
    def function(*arguments: Any, **options: Any) -> Any:
        if any(map(has_traced, (*arguments, *options.values()))):
            return compute(*map(as_float, arguments), **options)
        return original(*arguments, **options)

    function.__name__ = name
    return function


def _unknown(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def refuse(*arguments: Any, **_: Any) -> Any:
        if name in _OF_INTEGERS and all(isinstance(x, int) for x in arguments):
            return original(*map(operator.index, arguments))  # the step is traced for each value of them
        raise TraceError(
            f"{user_location()}: math.{name} of a traced number is not available{_INSTEAD.get(name, '')}. Most "
            "functions of math are; compute others outside of the step and pass the numbers as arguments."
        )

    return _of_number(name, original, refuse)


def _in_library(name: str) -> Callable[..., Any]:
    def compute(*operands: Any) -> Any:
        if len(operands) != LIBRARY[name].arity:
            return getattr(math, name)(*operands)  # which says what is wrong
        traced = next(filter(is_traced, operands))
        if not is_traced_number(traced):
            traced = traced.data
        return traced._library(name, operands)

    return compute


def _to_whole(name: str) -> Callable[[Any], Any]:
    return lambda x: getattr(type(x), f"__{name}__")(x)


def _is_close(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    # As CPython: equal, or both finite and near enough.
    difference = abs(b - a)
    near = either(difference <= abs(rel_tol * b), lambda: difference <= abs(rel_tol * a))
    near = either(near, lambda: difference <= abs_tol)
    return either(a == b, lambda: both(difference < math.inf, lambda: near))


def _logarithm(x: Any, base: Any = None) -> Any:
    of = math.log if not is_traced(x) else type(x).log
    if base is None:
        return of(x)
    return of(x) / (math.log(base) if not is_traced(base) else base.log())


def _product(items: Sequence[Any], *, start: Any = 1) -> Any:
    for item in items:
        start = start * item
    return start


_MATHEMATICS: dict[str, Callable[..., Any]] = {
    "exp": lambda x: x.exp(),
    "log": _logarithm,
    "sqrt": lambda x: x.sqrt(),
    "tanh": lambda x: x.tanh(),
    "fabs": lambda x: abs(to_float(x)),
    "pow": lambda x, y: to_float(x) ** to_float(y),
    "degrees": to_degrees,
    "radians": lambda x: x * (math.pi / 180.0),
    "isclose": _is_close,
    "isnan": lambda x: x != x,
    "isinf": lambda x: abs(x) == math.inf,
    "isfinite": lambda x: x - x == 0.0,
}

_MATHEMATICS.update({name: _in_library(name) for name in LIBRARY if hasattr(math, name)})
_MATHEMATICS.update({name: _to_whole(name) for name in ("floor", "ceil", "trunc")})

#: Functions of ints, whose arguments can be fixed for a trace.
_OF_INTEGERS = frozenset({"comb", "factorial", "gcd", "isqrt", "lcm", "perm"})
#: What to write instead of functions that CPython computes in its own way.
_INSTEAD = {
    "hypot": "; math.sqrt(x * x + y * y) is, also undecorated, whose last bits may differ",
    "dist": "; the square root of a sum is, also undecorated, whose last bits may differ",
    "fsum": "; sum(xs) is, also undecorated, whose last bits may differ",
    "sumprod": "; sum(x * y for x, y in zip(xs, ys)) is, also undecorated, whose last bits may differ",
    "modf": "; x - math.trunc(x) is",
    "ldexp": "; x * 2.0 ** n is",
}


def replacement_of(name: str) -> Any:
    """What stands for `math.name` in rewritten code."""
    original = getattr(math, name)
    if name == "prod":
        return _product
    if not callable(original):
        return original
    if name in _MATHEMATICS:
        return _of_number(name, original, _MATHEMATICS[name])
    return _unknown(name, original)
