"""The kinds of numbers that traced numbers stand for: floats, ints, and numpy's type float64."""

from __future__ import annotations

import numbers
from typing import Any

#: What a traced number has to know of the type that it has in Python: other floats, ints, numpy's float64, numpy's
#: floats of fewer bits; and from NUMPY_INTEGER on, numpy's ints and bools, one kind for each format.
FLOAT, INTEGER, NUMPY_FLOAT, NARROW, NUMPY_INTEGER = range(5)
#: Struct codes of the elements of numpy's arrays of ints and bools.
INTEGER_FORMATS = "?bBhHiIlLqQ"


def number_kind(thing: Any) -> int:
    """FLOAT, INTEGER, NUMPY_FLOAT or NARROW, of a number."""
    return number_kind_of(thing.__class__)  # which of a traced number is the one in Python


def number_kind_of(kind: Any) -> int:
    """The same of a type."""
    if kind is float:
        return FLOAT
    if issubclass(kind, int):
        return INTEGER
    return NUMPY_FLOAT if is_float64(kind) else NARROW if is_narrow(kind) else FLOAT


def number_kind_of_scalar(kind: Any) -> int:
    """The same of the type of an argument: there, numpy's ints are kinds of their own."""
    if is_numpy_integer(kind):
        return NUMPY_INTEGER + INTEGER_FORMATS.index(kind(0).dtype.char)
    return number_kind_of(kind)


def is_numpy_integer(kind: Any) -> bool:
    """Whether a type is one of numpy's ints."""
    return bool(kind.__module__ == "numpy" and issubclass(kind, numbers.Integral))


def is_narrow(kind: Any) -> bool:
    """Whether a type is numpy's float32: floats that round to fewer bits than float64."""
    return bool(kind.__module__ == "numpy" and kind.__name__ == "float32")


def is_float64(kind: Any) -> bool:
    """Whether a type is numpy's float64."""
    return bool(kind.__module__ == "numpy" and kind.__name__ == "float64")
