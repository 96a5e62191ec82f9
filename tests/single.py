"""Numbers that round themselves to float32, and an engine that computes with them.

`with single_precision():` lets undecorated steps compute in float32: an oracle for steps of `dtype="float32"`
that shares nothing with the trace, the passes and the backends.  Where numpy is installed, the basic operations
are those of `numpy.float32`; elsewhere float64 operations are rounded.

It does not know Python's compensated `sum` of plain numbers, since 3.12 (see record/instrument.py).
"""

from __future__ import annotations

import inspect
import math
import operator
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
    """A float32 number whose arithmetic gives such numbers, and whose comparisons give Wholes."""

    __slots__ = ()

    def __new__(cls, number: Any) -> Single:
        return float.__new__(cls, rounded(number))


class Whole(int):
    """An int that takes part in float32 arithmetic: an input, or the outcome of a comparison."""


def _binary(function: Callable[[Any, Any], Any], reflected: bool, make: type) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        result = Single if isinstance(other, float) else make
        return result(function(other, self) if reflected else function(self, other))

    return method


def _unary(function: Callable[[Any], Any], plain: type, make: type) -> Callable[[Any], Any]:
    return lambda self: make(function(plain(self)))


def _comparison(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return Whole(function(rounded(self), rounded(other))) if isinstance(other, (int, float)) else NotImplemented

    return method


def _define_arithmetic() -> None:
    functions = {"add": add, "sub": subtract, "mul": multiply, "truediv": divide, "pow": power}
    for name, function in functions.items():
        for kind in (Single, Whole):
            make = Whole if kind is Whole and name in ("add", "sub", "mul") else Single
            setattr(kind, f"__{name}__", _binary(function, False, make))
            setattr(kind, f"__r{name}__", _binary(function, True, make))
    for name in ("neg", "abs", "pos"):
        Single_method, Whole_method = (
            _unary(getattr(operator, name), plain, make) for plain, make in ((float, Single), (int, Whole))
        )
        setattr(Single, f"__{name}__", Single_method)
        setattr(Whole, f"__{name}__", Whole_method)
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Single, f"__{name}__", _comparison(getattr(operator, name)))
        setattr(Whole, f"__{name}__", _comparison(getattr(operator, name)))


_define_arithmetic()
for _kind in (Single, Whole):
    _kind.__hash__ = lambda self: hash(float(self))  # type: ignore[method-assign, assignment]


class _Singles(list):  # type: ignore[type-arg]
    """The buffer of a State."""

    def __setitem__(self, index: Any, number: Any) -> None:
        super().__setitem__(index, Single(number))


def singles(argument: Any) -> Any:
    """An argument of a step with every float as a Single, every int as a Whole; buffers become lists."""
    if isinstance(argument, (bool, str, mgjit.Value)) or argument is None:
        return argument
    if isinstance(argument, (int, float)):
        return Single(argument) if isinstance(argument, float) else Whole(argument)
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


def _takes_part(*operands: Any) -> bool:
    """Whether this is a computation of the step: Python computes with constants alone as ever."""
    return any(isinstance(operand, (Single, Whole)) for operand in operands)


def _of(function: Callable[..., Any], single: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A function of the engine with operands and result in float32."""

    def result(*operands: Any) -> Any:
        if not _takes_part(*operands):
            return function(*operands)
        return Single((single or function)(*map(rounded, operands)))

    return result


def _where(condition: Any, chosen: Any, other: Any) -> Any:
    found = _original_where(condition, chosen, other)
    return Single(found) if _takes_part(condition, found) and isinstance(found, (int, float)) else found


def _one_hot(index: Any, n: int) -> list[Any]:
    found = _original_one_hot(index, n)
    return [Single(x) for x in found] if _takes_part(index) else found


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
_original_where, _original_one_hot = mgjit.where, mgjit.one_hot


def _number(name: str) -> property:
    def read(self: Any) -> Any:
        return getattr(self, name)

    def write(self: Any, number: Any) -> None:
        setattr(self, name, Single(_as_float(number)))

    return property(read, write)


@contextmanager
def single_precision() -> Iterator[None]:
    """Values and States that are made and used in the block compute in float32."""
    names = ("exp", "log", "tanh", "sqrt", "relu", "maximum", "minimum")
    patches = [mock.patch.object(arithmetic, name, _of(getattr(arithmetic, name))) for name in names]
    patches += [
        mock.patch.object(arithmetic, "power", _of(_power, power)),
        mock.patch.object(arithmetic, "divide", _of(arithmetic.divide, divide)),
        mock.patch.object(mgjit, "where", _where),
        mock.patch.object(mgjit, "one_hot", _one_hot),
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
