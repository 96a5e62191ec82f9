"""Inspect the user's objects, and derive from their classes, without running the user's code.

`hasattr(thing, name)` calls `__getattr__`, which may answer every name, raise anything, or have side effects.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

from .interruption import new_lock


def entries(kind: type) -> Mapping[str, Any]:
    """The entries of a class's own dict, whatever its metaclass says."""
    return _ENTRIES.__get__(kind)  # type: ignore[no-any-return]


def has(thing: Any, name: str) -> bool:
    """Whether the class of an object has a method or descriptor of this name, as Python looks up special methods."""
    for base in type(thing).__mro__:  # noqa: SIM110 - twice as fast as `any` of a generator, and asked of everything
        if name in _ENTRIES.__get__(base):
            return True
    return False


def variables(thing: Any) -> dict[str, Any]:
    """The `__dict__` of an object; empty if it has none."""
    try:
        found = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}


def copy_of(function: FunctionType, code: CodeType | None = None) -> FunctionType:
    """A copy of a function, which keeps its code, or has other code, whatever becomes of the code of the original."""
    made = FunctionType(
        code or function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def module_of(thing: Any) -> str:
    """The module that a class or function names, which may be anything at all in what other compilers have made."""
    name = thing.__module__
    return name if isinstance(name, str) else ""


def package_of(thing: Any) -> str:
    """The package of that module."""
    return module_of(thing).partition(".")[0]


def receiver(thing: Any) -> Any:
    """The object that a bound method (of Python or C) is bound to; None for anything else."""
    return thing.__self__ if issubclass(type(thing), _BOUND) else None


def derived_unnoticed(kind: type, members: Mapping[str, Any], *before: type) -> type:
    """A subclass of a user's class, of the same name and layout, of which the user's code hears nothing.

    Neither the metaclass is called, nor `__init_subclass__`, which may count subclasses or need arguments.

    Args:
        before: base classes that come first; objects of theirs hold nothing.
    """

    def make() -> type:
        return type.__new__(type(kind), kind.__name__, (*before, kind), {"__slots__": (), **members})

    name = "__init_subclass__"
    owner: Any = next(base for base in kind.__mro__ if name in entries(base))
    if owner is object:
        return make()
    with _deriving:
        original = entries(owner)[name]
        type.__setattr__(owner, name, classmethod(lambda cls: None))
        try:
            return make()
        finally:
            type.__setattr__(owner, name, original)


_deriving = new_lock()
_ENTRIES: Any = type.__dict__["__dict__"]
_BOUND = (MethodType, BuiltinFunctionType)


#: The type of methods that are written in C.
_IN_C = type(random.random)


def is_bound_draw(thing: Any) -> bool:
    """Whether something is a bound `random` or `getrandbits` of a generator: methods whose code cannot be replaced."""
    return (
        type(thing) is _IN_C
        and isinstance(receiver(thing), random.Random)
        and thing.__name__ in ("random", "getrandbits")
    )


#: Of the flags of a class: it was made when the program ran; and in C, so that it stays as it is.
_IS_MADE, _IS_FIXED = 1 << 9, 1 << 8


def classes_of(things: Iterable[Any]) -> tuple[type | None, ...]:
    """The classes of objects that programs have made classes for, such as models; None for others, such as numbers."""
    kinds = map(type, things)
    return tuple([kind if kind.__flags__ & (_IS_MADE | _IS_FIXED) == _IS_MADE else None for kind in kinds])
