"""Questions about the user's objects that run none of the user's code.

`hasattr(thing, name)` asks a `__getattr__`, which may answer every name, raise anything, or do something.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import BuiltinFunctionType, MethodType
from typing import Any


def entries(kind: type) -> Mapping[str, Any]:
    """What is in a class itself, whatever its metaclass answers."""
    return _ENTRIES.__get__(kind)  # type: ignore[no-any-return]


def has(thing: Any, name: str) -> bool:
    """Whether the class of an object has a method or descriptor of this name, as Python looks up special methods."""
    return any(name in entries(base) for base in type(thing).__mro__)


def variables(thing: Any) -> dict[str, Any]:
    """The `__dict__` of an object; empty when it has none."""
    try:
        found = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}


def receiver(thing: Any) -> Any:
    """What a bound method, of Python or C, is bound to; None for everything else."""
    return thing.__self__ if issubclass(type(thing), _BOUND) else None


_ENTRIES: Any = type.__dict__["__dict__"]
_BOUND = (MethodType, BuiltinFunctionType)
