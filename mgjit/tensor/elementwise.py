"""Elementwise functions over tensors and numbers, broadcast together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ArgumentValueError, described, user_location
from ..ir.bodies import COPY, ELEMENTWISE, divided_by
from .apply import elementwise, result_type
from .dtypes import dtype_of, int64
from .modes import gradients_are_on
from .tensor import Tensor, require


def apply(name: str, *operands: Any) -> Tensor:
    """An operation of bodies.ELEMENTWISE."""
    return elementwise(name, ELEMENTWISE[name], operands)


def _unary(name: str, what: str, body: str = "") -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        return apply(body or name, require(x, name))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{what}, of each element."
    return function


exp, log, tanh, sqrt = (_unary(*one) for one in (
    ("exp", "e**x"), ("log", "The natural logarithm: -inf at 0, nan below"), ("tanh", "The hyperbolic tangent"),
    ("sqrt", "The square root: nan below 0"),
))  # fmt: skip
relu, sigmoid, silu, softplus = (_unary(*one) for one in (
    ("relu", "max(0, x); nan stays"), ("sigmoid", "1 / (1 + exp(-x))"), ("silu", "x * sigmoid(x)"),
    ("softplus", "log(1 + exp(x))"),
))  # fmt: skip
square, reciprocal, floor, ceil, trunc, sin, cos = (_unary(*one) for one in (
    ("square", "x * x"), ("reciprocal", "1 / x"), ("floor", "The largest whole number that is not above x"),
    ("ceil", "The smallest whole number that is not below x"), ("trunc", "x without its fraction"),
    ("sin", "The sine"), ("cos", "The cosine"),
))  # fmt: skip
tan, asin, acos, atan, sinh, cosh = (_unary(*one) for one in (
    ("tan", "The tangent"), ("asin", "The inverse of the sine"), ("acos", "The inverse of the cosine"),
    ("atan", "The inverse of the tangent"), ("sinh", "The hyperbolic sine"), ("cosh", "The hyperbolic cosine"),
))  # fmt: skip
log1p, expm1, log2, log10, erf, rsqrt = (_unary(*one) for one in (
    ("log1p", "log(1 + x)"), ("expm1", "e**x - 1"), ("log2", "The logarithm to the base 2"),
    ("log10", "The logarithm to the base 10"), ("erf", "The error function"), ("rsqrt", "1 / sqrt(x)"),
))  # fmt: skip
round, sign, isnan, isinf, isfinite = (_unary(*one) for one in (
    ("round", "The nearest whole number, the even one of two", "rint"), ("sign", "-1, 0 or 1, as x is to 0"),
    ("isnan", "Whether it is not a number"), ("isinf", "Whether it is an infinity"),
    ("isfinite", "Whether it is neither an infinity nor not a number"),
))  # fmt: skip
logical_not = _unary("logical_not", "Whether it is 0")


def _binary(name: str, what: str, reverse: bool = False, body: str = "") -> Callable[[Any, Any], Tensor]:
    def function(x: Any, y: Any) -> Tensor:
        return apply(body or name, *((y, x) if reverse else (x, y)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{what}, of each pair of elements."
    return function


fmod = _binary("fmod", "x - trunc(x / y) * y")
mul = _binary("mul", "x * y", body="multiply")
eq, ne, lt, le, gt, ge = (_binary(*one) for one in (
    ("eq", "x == y", False, "equal"), ("ne", "x != y", False, "not_equal"), ("lt", "x < y", False, "less"),
    ("le", "x <= y", False, "less_equal"), ("gt", "x > y", True, "less"), ("ge", "x >= y", True, "less_equal"),
))  # fmt: skip


def remainder(x: Any, y: Any) -> Tensor:
    """x - floor(x / y) * y, with the sign of y, of each pair of elements: x % y"""
    return _divided("remainder", x, y)


def floor_divide(x: Any, y: Any) -> Tensor:
    """floor(x / y), of each pair of elements: x // y, which has no gradient."""
    return _divided("floor_divide", x, y)


def _divided(name: str, x: Any, y: Any) -> Tensor:
    """Whole numbers divided by an int are known to be no nan, and remainders to be below it."""
    if type(y) is not int or y == 0 or not isinstance(x, Tensor) or x.dtype is not int64:
        return apply(name, x, y)
    made = elementwise(name, divided_by(name, float(y)), (x,), int64)
    if name == "remainder" and y > 0:
        made._memory.limit = y
    return made


def add(x: Any, y: Any, alpha: Any = 1) -> Tensor:
    """x + alpha * y"""
    return apply("add", x, _times(x, y, alpha))


def sub(x: Any, y: Any, alpha: Any = 1) -> Tensor:
    """x - alpha * y"""
    return apply("subtract", x, _times(x, y, alpha))


def _times(x: Any, y: Any, alpha: Any) -> Any:
    """alpha * y, whole numbers being floats beside floats."""
    if isinstance(x, Tensor) and isinstance(y, Tensor) and x.dtype.is_floating and not y.dtype.is_floating:
        y = y.astype(x.dtype)
    return y if alpha == 1 else y * alpha


def div(x: Any, y: Any, rounding_mode: str | None = None) -> Tensor:
    """x / y

    Args:
        rounding_mode: "floor" or "trunc", to a whole number.
    """
    if rounding_mode == "floor":
        return apply("floor_divide", x, y)
    found = apply("divide", x, y)
    return found if rounding_mode is None else trunc(found).astype(result_type("add", (x, y)))


def neg(x: Tensor) -> Tensor:
    """-x"""
    return apply("negate", require(x, "neg"))


def abs(x: Tensor) -> Tensor:
    """The size of each element."""
    return apply("absolute", require(x, "abs"))


def maximum(x: Any, y: Any) -> Tensor:
    """The greater of the two, x where they are equal, nan if one is; the gradient goes to the one that was taken."""
    return _extreme("maximum", x, y)


def minimum(x: Any, y: Any) -> Tensor:
    """The smaller of the two, x where they are equal, nan if one is; the gradient goes to the one that was taken."""
    return _extreme("minimum", x, y)


def _extreme(name: str, x: Any, y: Any) -> Tensor:
    is_number = not y.dtype.is_floating if isinstance(y, Tensor) else isinstance(y, (int, float)) and y == y
    return elementwise(name, ELEMENTWISE[name if is_number else f"{name}_or_nan"], (x, y))


def logical_and(x: Any, y: Any) -> Tensor:
    """Whether neither is 0."""
    return apply("logical_and", x, y)


def logical_or(x: Any, y: Any) -> Tensor:
    """Whether one of them is not 0."""
    return apply("logical_or", x, y)


def where(condition: Any, x: Any, y: Any) -> Tensor:
    """`x` where the condition holds (is not 0), otherwise `y`."""
    return apply("where", condition, x, y)


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x/2 * (1 + erf(x / sqrt(2))), of each element.

    Args:
        approximate: "tanh" for x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3))), which is quicker.

    Raises:
        ArgumentValueError: another formula is asked for.
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentValueError(
            f"{user_location()}: gelu has approximate='none' or 'tanh', not the {described(approximate)}."
        )
    return apply("gelu" if approximate == "tanh" else "gelu_of_erf", require(x, "gelu"))


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x, times the slope below 0."""
    return apply("leaky_relu", require(x, "leaky_relu"), negative_slope)


def clip(x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    """x, not below `low` and not above `high`: numbers or tensors."""
    found = require(x, "clip")
    found = found if low is None else maximum(found, low)
    return found if high is None else minimum(found, high)


def masked_fill(x: Tensor, mask: Any, value: Any) -> Tensor:
    """x, but the value where the mask holds."""
    found = require(x, "masked_fill")
    return elementwise("where", ELEMENTWISE["where"], (mask, value, found), found.dtype)


def power(x: Any, y: Any) -> Tensor:
    """x ** y: nan where x is below 0 and y has a fraction; x ** 0 is 1, with a gradient of 0."""
    if isinstance(y, Tensor):
        body = "power_of_two" if y.requires_grad and gradients_are_on() else "power_or_one"
    else:
        body = "power" if isinstance(y, (int, float)) and y != 0 else "power_or_one"
    return elementwise("power", ELEMENTWISE[body], (x, y))


def astype(x: Tensor, dtype: Any) -> Tensor:
    """The elements as another type: rounded to float32; without their fraction to int64; `x != 0` to bool."""
    kind = dtype_of(dtype)
    if kind == x.dtype:
        return x
    if kind.name == "bool":
        return apply("as_bool", x)
    if kind.name == "int64":
        return elementwise("astype", ELEMENTWISE["trunc"], (x,), kind)
    return elementwise("astype", COPY, (x,), kind)
