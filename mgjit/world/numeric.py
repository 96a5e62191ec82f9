"""Which of the user's objects count as numbers, and the plain float or int with the same value.

A number is anything that computes like a float64 or an int: floats, ints, subclasses that do not override arithmetic,
and numpy's float64 and integer scalars.  Bools are flags, and numpy's other scalars round differently.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

#: The methods that arithmetic calls; a subclass that overrides one of these computes differently.
_ARITHMETIC = (
    *(f"__{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")),
    *(f"__r{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")),
    *("__neg__", "__pos__", "__abs__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__", "__float__"),
)

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
    for plain in (float, int):
        if issubclass(kind, plain) and not issubclass(kind, bool):
            has_own = any(getattr(kind, name, None) is not getattr(plain, name, None) for name in _ARITHMETIC)
            return None if has_own else plain
    return None
