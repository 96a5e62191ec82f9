"""Which of the user's objects count as numbers, and the plain float or int with the same value.

A number is a float, an int, what a compiled step has returned, or one of numpy's float64 and integer scalars.  Bools
are flags, numpy's other scalars round differently, and whoever derives a class from float or int wants more of its
objects than their numbers: methods, attributes, or `isinstance`.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from ..base.lookup import package_of

#: The plain type for each type seen so far; None for types that are not numbers.
_plain_types: WeakKeyDictionary[type, type | None] = WeakKeyDictionary({float: float, int: int, bool: None})


def is_number(thing: Any) -> bool:
    """Whether something computes like a plain float or int."""
    return is_number_type(type(thing))


def is_number_type(kind: type) -> bool:
    """Whether objects of a type compute like a plain float or int."""
    if kind is float or kind is int:
        return True
    if kind not in _plain_types:  # by weak references: each trace has types of its own
        _plain_types[kind] = _plain_type(kind)
    return _plain_types[kind] is not None


def plain_number(thing: Any) -> float | int:
    """The float or int with the value of a number, or of a bool.

    Raises:
        TypeError: it is neither.
    """
    if type(thing) is bool:
        return int(thing)
    if not is_number(thing):
        raise TypeError(f"{type(thing).__name__} does not compute as a float or int does")
    made: float | int = (_plain_types[type(thing)] or float)(thing)
    return made


def _plain_type(kind: type) -> type | None:
    if kind.__module__ == "numpy":
        if kind.__name__ == "float64":
            return float
        return int if any(base.__name__ == "integer" for base in kind.__mro__) else None
    # Not the size of a tensor, which can be called.
    if package_of(kind) == "mgjit" and issubclass(kind, (float, int)) and "__call__" not in vars(kind):
        return float if issubclass(kind, float) else int
    return None


def counts_as_number(kind: type) -> bool:
    """Whether an argument of a type that is registered as a number is an input: numpy's are rounded then."""
    return is_number_type(kind) or kind is bool or kind.__module__ == "numpy"
