"""Which containers among the arguments have stand-ins in a trace, how a stand-in is made, and what it holds.

A stand-in is an object of the same class that holds traced numbers where the argument holds numbers.  To the step it is
the argument itself, as long as the class leaves it to Python how a container is read, and tells objects apart by what
they hold:

1. Lists, tuples and dicts always have one.
2. So have dataclasses, and objects of classes derived from list and tuple, such as named tuples, unless the class has
   one of the methods in `_HOOKS`, compares its objects by their identity, or keeps what Python cannot see.
3. All others, such as lists with attributes, and dicts of other classes, are known by their identity, as if the step
   captured them.

Everything here is read and made past the methods of the class: its `__init__` may have any parameters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, MemberDescriptorType
from typing import Any

from ...base.lookup import entries
from ...engine.leaks import Traced
from ...memory.live import field_of
from ..surroundings.shapes import attributes, for_each_class

_BUILTIN = frozenset({list, tuple, dict})
#: Methods with which a class reads its objects in its own way, or notices that there is another one.
_HOOKS = ("__getattribute__", "__class__", "__del__")
_SEQUENCE_HOOKS = (*_HOOKS, "__getitem__", "__iter__", "__len__")
#: The flag of classes that are made by a class statement, or look like it.
_HEAP_TYPE = 1 << 9


@for_each_class
def is_open(kind: Any) -> bool:
    """Whether all that objects of a class derived from list or tuple, or of a dataclass, hold can be read and made."""
    root = _root(kind)
    own = _above(kind, root)
    if not all(bool(base.__flags__ & _HEAP_TYPE) and not _is_made_in_c(base) for base in own):
        return False
    members = (member for base in own for member in entries(base).values())
    return root is object or not any(isinstance(member, MemberDescriptorType) for member in members)  # slots


def _is_made_in_c(base: type) -> bool:
    return type(entries(base).get("__new__")) is BuiltinFunctionType


def _root(kind: Any) -> type:
    return next((base for base in kind.__mro__ if base in (list, tuple)), object)


def _above(kind: Any, root: type) -> list[type]:
    return [base for base in kind.__mro__ if base not in root.__mro__]


@for_each_class
def _may_be_rebuilt(kind: Any) -> bool:
    """Whether objects of a class may have stand-ins."""
    root = _root(kind)
    if not is_open(kind) or (root is object and not dataclasses.is_dataclass(kind)):
        return False
    hooks = _HOOKS if root is object else _SEQUENCE_HOOKS
    if any(name in entries(base) for base in _above(kind, root) for name in hooks):
        return False
    return kind.__eq__ is not object.__eq__ and kind.__hash__ is not object.__hash__


def is_rebuilt(thing: Any) -> bool:
    """Whether an argument, or a part of one, has a stand-in; otherwise it is known by its identity."""
    kind = type(thing)
    if kind in _BUILTIN:
        return True
    if issubclass(kind, Traced) or not _may_be_rebuilt(kind):
        return False
    own = attributes(thing)
    return not own if isinstance(thing, (list, tuple)) else _computed(kind).isdisjoint(own)


@for_each_class
def _computed(kind: Any) -> frozenset[str]:
    """The names of a class that stand for something that it computes, or keeps elsewhere."""
    found = {name: it for base in reversed(kind.__mro__) for name, it in entries(base).items()}
    descriptors = (name for name, it in found.items() if not isinstance(it, MemberDescriptorType))
    return frozenset(name for name in descriptors if hasattr(type(found[name]), "__set__"))


def is_frozen(kind: type) -> bool:
    """Whether a class is a dataclass to whose fields nothing is assigned."""
    return bool(getattr(getattr(kind, "__dataclass_params__", None), "frozen", False))


def elements(thing: Any) -> Sequence[Any]:
    """The elements of a list or tuple of any class."""
    if type(thing) in (list, tuple):
        return thing  # type: ignore[no-any-return]
    return list((list if isinstance(thing, list) else tuple).__iter__(thing))


def sequence(kind: type, parts: Sequence[Any]) -> Any:
    """A list or tuple of a class, with these elements."""
    if kind is list or kind is tuple:
        return kind(parts)
    if issubclass(kind, tuple):
        return tuple.__new__(kind, parts)
    made: Any = list.__new__(kind)
    list.extend(made, parts)
    return made


def instance(kind: type, contents: Mapping[str, Any]) -> Any:
    """An object of a class, with these attributes."""
    made: Any = object.__new__(kind)
    for name, content in contents.items():
        field_of(kind, name).write(made, content)
    return made
