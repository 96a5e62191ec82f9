"""How results are taken apart into parts, and put together again from others of the same kinds.

Containers are read and made past the methods of their classes (call/stand_ins.py): what the step has made has gone
through these methods already.  What has more to it than Python can see is not taken apart.
"""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Callable
from enum import Enum
from functools import partial
from operator import is_
from types import FunctionType
from typing import Any

from ...base.lookup import has, package_of
from ...engine.leaks import is_traced
from ...engine.state import State
from ...engine.value import Value
from ...memory.live import Field, field_of
from ..record.counters import Counted
from ..record.traced_array import TracedArray
from ..surroundings.ownership import is_of_user
from ..surroundings.shapes import attributes, is_bag, is_buffer, leads_nowhere, shape_of
from .stand_ins import elements, instance, is_open, sequence

#: What something is taken apart into: a function that makes such a thing of parts, and its parts.
Apart = tuple[Callable[[list[Any]], Any], list[Any]]


def taken_apart(returned: Any) -> Apart | None:
    """A function that rebuilds a container from its parts, and the parts; None if it is not a container."""
    kind = type(returned)
    if kind in (list, tuple):
        return kind, list(returned)
    if kind is TracedArray:
        return list, list(returned)
    if isinstance(returned, (list, tuple)):
        if not is_open(kind):
            return (list, list(returned)) if isinstance(returned, list) and not is_of_user(kind) else None
        return None if attributes(returned) else (partial(sequence, kind), list(elements(returned)))
    if kind is dict and any(type(key) is Counted for key in returned):
        return _dict_of_pairs, [(key, part) for key, part in returned.items()]
    if kind is dict:
        keys = list(returned)
        return lambda parts: dict(zip(keys, parts)), list(returned.values())
    if kind in (set, frozenset) and not any(is_traced(part) or isinstance(part, Value) for part in returned):
        return kind, list(returned)
    if dataclasses.is_dataclass(kind) and is_open(kind):
        own = attributes(returned)
        names = list(own)
        return lambda parts: instance(kind, dict(zip(names, parts))), list(own.values())
    return None


def holds_only_numbers(returned: Any) -> bool:
    """Whether something is a container of numbers and of containers of numbers: of these loops make columns."""
    found = taken_apart(returned)
    return found is not None and all(isinstance(part, (int, float)) or holds_only_numbers(part) for part in found[1])


def is_object(returned: Any) -> bool:
    """Whether something is an object of a class of the user's that holds traced numbers, such as a loss."""
    if not may_be_object(returned):
        return False
    own = attributes(returned)
    if any(map(is_traced, own.values())):
        return True
    kept = list(fields_to_return(returned).values())  # of others than those with numbers, nothing gets lost
    return len(kept) == len(own) and all(map(is_, kept, own.values())) and any(map(_has_traced, kept))


def _has_traced(part: Any) -> bool:
    """Whether there is a traced number in a container of numbers."""
    found = taken_apart(part)
    return found is not None and any(is_traced(inner) or _has_traced(inner) for inner in found[1])


def may_be_object(returned: Any) -> bool:
    """Whether something is an object of a class of the user's, and no class or iterator."""
    kind = type(returned)
    is_other = isinstance(returned, (State, Value, type, list, tuple)) or has(returned, "__next__")
    return not is_other and is_of_user(kind) and is_open(kind)


def is_new(returned: Any, is_known: Callable[[Any], bool]) -> bool:
    """Whether something that a step returns is another object in each call, which the program may change."""
    kind = type(returned)
    if is_known(returned) or leads_nowhere(kind) or isinstance(returned, (type, FunctionType, Enum)):
        return False
    shape = shape_of(kind)
    has_contents = is_buffer(returned) or (shape is not None and shape.restore is not None)
    return has_contents or (is_bag(kind) and (is_of_user(kind) or package_of(kind) in _OF_CONTAINERS))


#: Packages whose objects are containers, or hold attributes.
_OF_CONTAINERS = frozenset({"collections", "types"})


def is_number_like(returned: Any) -> bool:
    """Whether a class computes: then even a dataclass is no container, but a node of the user's graph."""
    return has(returned, "__add__") and is_object(returned)


def fields_to_return(returned: Any) -> dict[Field, Any]:
    """What of an object can leave the trace: numbers and the like, and containers of numbers; other ones are empty."""
    found: dict[Field, Any] = {}
    for name, part in attributes(returned).items():
        if type(part) is Counted or is_traced(part) or isinstance(part, (int, float, str, bytes, type(None))):
            found[field_of(type(returned), name)] = part
        elif type(part) in (list, tuple, set, dict, frozenset):
            found[field_of(type(returned), name)] = part if holds_only_numbers(part) else type(part)()
    return found


def _dict_of_pairs(parts: list[Any]) -> dict[Any, Any]:
    """Of columns there is one key, that of the first row."""
    return {key[0] if type(key) is array else key: part for key, part in parts}


def make_object(kind: type, fields: list[Field]) -> Callable[[list[Any]], Any]:
    """What makes an object of a class from the contents of its fields."""

    def make(parts: list[Any]) -> Any:
        made: Any = object.__new__(kind)
        for field, part in zip(fields, parts):
            field.write(made, part)
        return made

    return make
