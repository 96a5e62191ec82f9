"""numpy's functions over traced numbers: `np.sqrt(x)`, `np.maximum(x, 0.0)`, `np.tanh(x)`.

numpy asks an operand that has `__array_ufunc__` and `__array_function__` to compute.  A traced number answers so:

1. A function that is exact in IEEE 754, or follows from exact ones, is recorded; the result is a float64.
2. Which of two zeros `np.maximum` and its like return differs between processors and releases: of the ways that there
   are, the one is recorded that gives what this numpy gives, for all special numbers (`_as_here`).
3. All else is numpy's: its exp, tanh and pow have last bits of their own, sums of arrays add in another order.  The
   call runs as plain Python, and the reason says which function of `math` is compiled.
"""

from __future__ import annotations

import functools
import itertools
import math
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ...engine.leaks import Traced
from ...engine.value import Value
from .numpy_numbers import NumpyTypes, as_plain, give_up, of_numpy
from .recorder import Recorder

Select = Callable[[Any, Any, Any], Any]

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b, "true_divide": lambda a, b: a / b,
    "negative": lambda a: -a, "positive": lambda a: +a, "absolute": abs, "fabs": abs,
    "square": lambda a: a * a, "reciprocal": lambda a: 1.0 / a, "sqrt": lambda a: a.sqrt(),
    "floor": lambda a: a._library("floor", (a,)), "ceil": lambda a: a._library("ceil", (a,)),
    "trunc": lambda a: a._library("trunc", (a,)), "rint": lambda a: a._library("rint", (a,)),
}  # fmt: skip
_TESTS: dict[str, Callable[..., Any]] = {
    "less": lambda a, b: a < b, "less_equal": lambda a, b: a <= b, "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b, "equal": lambda a, b: a == b, "not_equal": lambda a, b: a != b,
    "isnan": lambda a: a != a, "isfinite": lambda a: a - a == 0.0, "isinf": lambda a: abs(a) == math.inf,
}  # fmt: skip
#: Of ints they are floats, too.
_ALWAYS_FLOATS = frozenset({"sqrt", "divide", "true_divide"})


def _greatest(s: Select, a: Any, b: Any) -> Any:
    return s(a > b, a, b)


def _first_greatest(s: Select, a: Any, b: Any) -> Any:
    return s(a >= b, a, b)


def _least(s: Select, a: Any, b: Any) -> Any:
    return s(a < b, a, b)


def _first_least(s: Select, a: Any, b: Any) -> Any:
    return s(a <= b, a, b)


def _with_nan(s: Select, a: Any, b: Any, compute: Callable[..., Any]) -> Any:
    return s(a != a, a, s(b != b, b, compute(s, a, b)))


def _without_nan(s: Select, a: Any, b: Any, compute: Callable[..., Any]) -> Any:
    return s(a != a, b, s(b != b, a, compute(s, a, b)))


def _two(rule: Callable[..., Any], *choices: Callable[..., Any]) -> list[Callable[..., Any]]:
    return [functools.partial(_of_two, rule, choice) for choice in choices]


def _of_two(rule: Callable[..., Any], choice: Callable[..., Any], s: Select, a: Any, b: Any) -> Any:
    return rule(s, a, b, choice)


def _clipped(low: Callable[..., Any], high: Callable[..., Any], s: Select, a: Any, least: Any, most: Any) -> Any:
    return _with_nan(s, _with_nan(s, a, least, low), most, high)


def _sign(s: Select, a: Any) -> Any:
    return s(a > 0.0, 1.0, s(a < 0.0, -1.0, s(a == 0.0, 0.0, a)))


_GREATEST, _LEAST = (_greatest, _first_greatest), (_least, _first_least)
_WAYS: dict[str, list[Callable[..., Any]]] = {
    "maximum": _two(_with_nan, *_GREATEST), "minimum": _two(_with_nan, *_LEAST),
    "fmax": _two(_without_nan, *_GREATEST), "fmin": _two(_without_nan, *_LEAST),
    "clip": [functools.partial(_clipped, low, high) for low in _GREATEST for high in _LEAST],
    "sign": [_sign],
}  # fmt: skip
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan)
_FEW_SPECIAL = (0.0, -0.0, 1.0, -1.0, math.nan)
#: What is compiled instead of a function, where its name in `math` is another one.
_INSTEAD = {
    "arcsin": "math.asin", "arccos": "math.acos", "arctan": "math.atan", "arctan2": "math.atan2", "power": "x ** y",
    "float_power": "x ** y", "arcsinh": "math.asinh", "arccosh": "math.acosh", "arctanh": "math.atanh",
    "sum": "sum(xs)", "mean": "sum(xs) / len(xs)", "dot": "sum(a * b for a, b in zip(xs, ys))", "max": "max(xs)",
    "min": "min(xs)", "amax": "max(xs)", "amin": "min(xs)", "where": "`a if test else b`", "round": "round(x)",
    "around": "round(x)", "deg2rad": "math.radians", "rad2deg": "math.degrees", "prod": "math.prod(xs)",
    "mod": "x % y", "remainder": "x % y", "floor_divide": "x // y", "logical_not": "not x",
    "logical_and": "`a and b`", "logical_or": "`a or b`",
}  # fmt: skip


def _chosen(test: Any, chosen: Any, other: Any) -> Any:
    return chosen if test else other


@functools.lru_cache(maxsize=64)
def _as_here(name: str, arity: int, function: Any) -> Callable[..., Any] | None:
    """The way in which this numpy computes a function that selects; None if it is none of those known."""
    numbers = _SPECIAL if arity < 3 else _FEW_SPECIAL
    cases = list(itertools.product(numbers, repeat=arity))
    with of_numpy("errstate")(all="ignore"):
        wanted = [_bits(function(*case)) for case in cases]
    return next((way for way in _WAYS[name] if [_bits(way(_chosen, *case)) for case in cases] == wanted), None)


def _as_scalar(x: Any) -> Any:
    """The scalar of which numpy has made an array without dimensions, before it compares."""
    return x[()] if type(x).__name__ == "ndarray" and x.shape == () and x.dtype.kind in "fiu" else x


def _bits(number: Any) -> bytes:
    return b"nan" if number != number else struct.pack("d", number)


def instead(name: str) -> str:
    """What to write instead of a function of numpy's."""
    text = _INSTEAD.get(name) or (f"math.{name}" if hasattr(math, name) else "")
    call = f"{text}(x)" if text.startswith("math.") and "(" not in text else text
    return f"Write {call}, which is compiled" if text else "Compute it outside of the step, or with functions of math"


def numpy_methods(
    recorder: Recorder, from_operand: Callable[[int], Any], types: Callable[[], NumpyTypes]
) -> dict[str, Callable[..., Any]]:
    """The methods by which numpy asks traced numbers to compute, for one trace.

    Args:
        from_operand: makes a traced float. types: gives the classes of numpy's numbers.
    """

    def select(test: Any, chosen: Any, other: Any) -> Any:
        return _chosen(test, chosen, other) if type(test) is bool else test._select(test, chosen, other)

    def operands_of(name: str, inputs: Sequence[Any]) -> list[Any]:
        """The inputs as floats that are traced or not.

        Raises:
            PlainCall: there is an array among them, or numpy would compute with ints.
        """
        found = []
        has_float = name in _ALWAYS_FLOATS
        for x in map(_as_scalar, inputs):
            kind = type(x)
            if issubclass(kind, Value) or not (isinstance(x, (int, float)) or kind.__module__ == "numpy"):
                give_up(
                    f"numpy.{name} of a {x.__class__.__name__}. mgjit compiles what is computed with single numbers"
                )
            if hasattr(kind, "_kind") or getattr(x, "may_be_int", False):
                give_up(f"numpy.{name} of a number that is an int in some calls only")
            has_float |= isinstance(x, float)
            if isinstance(x, bool) and len(inputs) == 1:
                give_up(f"numpy.{name} of a bool")
            if issubclass(kind, Traced):
                found.append(from_operand(x._leaf))
            elif kind.__module__ == "numpy":
                found.append(as_plain(x))
            else:
                found.append(float(x))
        if not has_float:
            give_up(f"numpy.{name} of ints computes with ints of 64 bits. Write it in plain Python, or pass floats")
        return found

    def recorded(name: str, function: Any, inputs: Sequence[Any]) -> Any:
        """The result of a function that is exact.

        Raises:
            PlainCall: it is not.
        """
        if any(action in ("raise", "call", "print", "log") for action in of_numpy("geterr")().values()):
            give_up(f"numpy.{name} tells of infinities and nan, as numpy.seterr or errstate want")
        compute = _ARITHMETIC.get(name) or _TESTS.get(name)
        if compute is None:
            way = _as_here(name, len(inputs), function) if name in _WAYS else None
            if way is None:
                give_up(f"numpy.{name} computes in its own way, with its own last bits. {instead(name)}")
            compute = functools.partial(way, select)
        operands = operands_of(name, inputs)
        if not issubclass(type(operands[0]), Traced):
            operands[0] = from_operand(recorder.constant(operands[0]))
        result = compute(*operands)
        leaf = result._leaf if issubclass(type(result), Traced) else recorder.constant(result)
        return types().boolean_from_operand(leaf) if name in _TESTS else types().from_operand(leaf)

    def array_ufunc(self: Any, ufunc: Any, how: str, *inputs: Any, **options: Any) -> Any:
        name = ufunc.__name__
        if how != "__call__" or options or getattr(sys.modules["numpy"], name, None) is not ufunc:
            give_up(f"numpy.{name} with options or over whole arrays. {instead(name)}")
        return recorded(name, ufunc, inputs)

    def array_function(self: Any, function: Any, kinds: Any, arguments: Any, options: Any) -> Any:
        name = function.__name__
        if name == "clip" and not options and len(arguments) == 3:
            low, high = arguments[1:]
            if low is None or high is None:
                name, bound = ("minimum", high) if low is None else ("maximum", low)
                return recorded(name, of_numpy(name), (arguments[0], bound))
            return recorded(name, function, arguments)
        return give_up(f"numpy.{name} computes with whole arrays. {instead(name)}")

    def array(self: Any, *_: Any, **__: Any) -> Any:
        return give_up(
            "numpy makes an array of numbers of the step. mgjit compiles what is computed with single numbers: lists, "
            "sum(xs), math.exp(x)"
        )

    return {"__array_ufunc__": array_ufunc, "__array_function__": array_function, "__array__": array}
