"""Elementwise functions over tensors and numbers, broadcast together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ArgumentValueError, GradientError, described, user_location
from .apply import elementwise
from .bodies import COPY, ELEMENTWISE
from .dtypes import dtype_of
from .tensor import Tensor, require


def apply(name: str, *operands: Any) -> Tensor:
    """An operation of bodies.ELEMENTWISE."""
    return elementwise(name, ELEMENTWISE[name], operands)


def _unary(name: str, what: str) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        return apply(name, require(x, name))

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
logical_not = _unary("logical_not", "Whether it is 0")


def maximum(x: Any, y: Any) -> Tensor:
    """The greater of the two, x where they are equal; the gradient goes to the one that was taken."""
    return apply("maximum", x, y)


def minimum(x: Any, y: Any) -> Tensor:
    """The smaller of the two, x where they are equal; the gradient goes to the one that was taken."""
    return apply("minimum", x, y)


def logical_and(x: Any, y: Any) -> Tensor:
    """Whether neither is 0."""
    return apply("logical_and", x, y)


def logical_or(x: Any, y: Any) -> Tensor:
    """Whether one of them is not 0."""
    return apply("logical_or", x, y)


def where(condition: Any, x: Any, y: Any) -> Tensor:
    """`x` where the condition holds (is not 0), otherwise `y`."""
    return apply("where", condition, x, y)


def gelu(x: Tensor, approximate: str = "tanh") -> Tensor:
    """x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3))), as gelu(approximate="tanh") of PyTorch, of each element.

    Raises:
        ArgumentValueError: another formula is asked for.
    """
    if approximate != "tanh":
        raise ArgumentValueError(
            f"{user_location()}: gelu has approximate='tanh' only, not the {described(approximate)}."
        )
    return apply("gelu", require(x, "gelu"))


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x, times the slope below 0."""
    return apply("leaky_relu", require(x, "leaky_relu"), negative_slope)


def clip(x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    """x, not below `low` and not above `high` (`clamp` in PyTorch)."""
    found = require(x, "clip")
    found = found if low is None else maximum(found, low)
    return found if high is None else minimum(found, high)


def power(x: Any, exponent: Any) -> Tensor:
    """x ** exponent; gradients flow to x only.

    Raises:
        GradientError: the exponent requires a gradient.
    """
    if isinstance(exponent, Tensor) and exponent.requires_grad:
        raise GradientError(
            f"{user_location()}: power has no gradient for its exponent. Write exp(y * log(x)), or y.detach()."
        )
    return apply("power", x, exponent)


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
