"""Numbers that round themselves to float32, and an engine that computes with them.

`with single_precision():` lets undecorated steps compute in float32: an oracle for steps of `dtype="float32"`
that shares nothing with the trace, the passes and the backends.  Where numpy is installed, the basic operations
are those of `numpy.float32`; elsewhere float64 operations are rounded.

It does not know Python's compensated `sum` of plain numbers, since 3.12 (see trace/instrument.py).
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import mgjit
from mgjit.engine import arithmetic, value
from mgjit.engine.state import State

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]


def rounded(number: Any) -> float:
    """The nearest float32, from the sizes of its parts: independent of any conversion in C."""
    number = float(number)
    if number == 0.0 or not math.isfinite(number):
        return number
    _, exponent = math.frexp(number)
    unit = max(exponent, -125) - 24  # of the last of 24 bits; subnormal numbers have fewer
    near = math.ldexp(float(round(math.ldexp(number, -unit))), unit)  # round() is to even
    near = math.copysign(near, number)
    return near if abs(near) < 2.0**128 else math.copysign(math.inf, number)


def _basic(name: str, total: Callable[[float, float], float]) -> Callable[[Any, Any], float]:
    """A basic operation of float32 operands."""
    if numpy is None:
        return lambda x, y: rounded(total(rounded(x), rounded(y)))
    function = getattr(operator, name)
    return lambda x, y: float(function(numpy.float32(rounded(x)), numpy.float32(rounded(y))))


add = _basic("add", operator.add)
subtract = _basic("sub", operator.sub)
multiply = _basic("mul", operator.mul)
divide = _basic("truediv", arithmetic.divide)
_power = arithmetic.power


def power(x: Any, y: Any) -> float:
    """The float64 function, rounded."""
    return rounded(_power(rounded(x), rounded(y)))


class Single(float):
    """A float32 number whose arithmetic gives such numbers."""

    __slots__ = ()

    def __new__(cls, number: Any) -> Single:
        return float.__new__(cls, rounded(number))


def _method(function: Callable[[Any, Any], float], reflected: bool) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        return Single(function(other, self) if reflected else function(self, other))

    return method


for _name, _function in (("add", add), ("sub", subtract), ("mul", multiply), ("truediv", divide), ("pow", power)):
    setattr(Single, f"__{_name}__", _method(_function, False))
    setattr(Single, f"__r{_name}__", _method(_function, True))
for _name in ("neg", "abs", "pos"):
    setattr(Single, f"__{_name}__", lambda self, exact=getattr(float, f"__{_name}__"): Single(exact(self)))


class _Singles(list):  # type: ignore[type-arg]
    """The buffer of a State."""

    def __setitem__(self, index: Any, number: Any) -> None:
        super().__setitem__(index, Single(number))


def singles(argument: Any) -> Any:
    """An argument of a step with every float as a Single; ints stay, buffers become lists."""
    if isinstance(argument, float):
        return Single(argument)
    if isinstance(argument, (bool, int, str, mgjit.Value)) or argument is None:
        return argument
    if isinstance(argument, dict):
        return {key: singles(part) for key, part in argument.items()}
    if isinstance(argument, tuple):
        parts = [singles(part) for part in argument]
        return type(argument)(*parts) if hasattr(argument, "_fields") else tuple(parts)
    return [singles(part) for part in argument] if hasattr(argument, "__len__") else argument


def with_singles(step: Callable[..., Any]) -> Callable[..., Any]:
    """The step over arguments, and defaults of arguments, that are Singles."""
    signature = inspect.signature(step)

    def call(*arguments: Any) -> Any:
        bound = signature.bind(*arguments)
        bound.apply_defaults()
        return step(*(singles(argument) for argument in bound.args))

    return call


def _of(function: Callable[..., float]) -> Callable[..., Single]:
    """A function of the engine with operands and result in float32."""
    return functools.wraps(function)(lambda *operands: Single(function(*map(rounded, operands))))


def _constant(number: Any) -> Any:
    leaf = value.Value.__new__(value.Value)
    leaf._data, leaf._grad, leaf._backward, leaf._trace = Single(value._as_float(number)), Single(0.0), None, None
    return leaf


def _make_value(self: Any, data: Any) -> None:
    _original_init(self, data)
    self._data, self._grad = Single(self._data), Single(0.0)


def _make_state(self: Any, numbers: Any) -> None:
    _original_state(self, numbers)
    self._buffer = _Singles(map(Single, self._buffer))


_original_init, _original_state, _as_float = value.Value.__init__, State.__init__, value._as_float


def _number(name: str) -> property:
    def read(self: Any) -> Any:
        return getattr(self, name)

    def write(self: Any, number: Any) -> None:
        setattr(self, name, Single(_as_float(number)))

    return property(read, write)


@contextmanager
def single_precision() -> Iterator[None]:
    """Values and States that are made and used in the block compute in float32."""
    patches = [mock.patch.object(arithmetic, name, _of(getattr(arithmetic, name)))
               for name in ("exp", "log", "tanh", "sqrt")]  # fmt: skip
    patches += [
        mock.patch.object(arithmetic, "power", lambda x, y: Single(power(x, y))),
        mock.patch.object(arithmetic, "divide", lambda x, y: Single(divide(x, y))),
        mock.patch.object(value, "_constant", _constant),
        mock.patch.object(value, "_as_float", lambda number: Single(_as_float(number))),
        mock.patch.object(value.Value, "__init__", _make_value),
        mock.patch.object(value.Value, "data", _number("_data")),
        mock.patch.object(value.Value, "grad", _number("_grad")),
        mock.patch.object(State, "__init__", _make_state),
    ]
    quiet = None if numpy is None else numpy.errstate(all="ignore")
    try:
        if quiet is not None:
            quiet.__enter__()
        for patch in patches:
            patch.start()
        yield
    finally:
        for patch in reversed(patches):
            patch.stop()
        if quiet is not None:
            quiet.__exit__(None, None, None)
