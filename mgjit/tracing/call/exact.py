"""Exact keys for constants that shape a trace, since `==` does not distinguish enough.

1 equals 1.0 and True, 0.0 equals -0.0, and a nan equals nothing.  `exact_key` returns a key that is equal only for
things of the same types and bits, and for ranges with the same bounds.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Hashable
from typing import Any

from ...base.lookup import variables

#: Types whose `==` is exact between things of that very type.
PLAIN = frozenset({str, bytes, int, bool, type(None)})
_BITS = struct.Struct("d").pack


def exact_key(thing: Any) -> Hashable:
    """The key of a constant; None for what is known by its identity only."""
    kind = type(thing)
    if kind in PLAIN:
        return kind, thing
    if kind is float:
        return kind, _BITS(thing)
    if kind is complex:
        return kind, _BITS(thing.real), _BITS(thing.imag)
    if kind is range:
        return kind, thing.start, thing.stop, thing.step
    if isinstance(thing, enum.Enum) or variables(thing):
        return None  # there is one of each, or it has more to it
    if isinstance(thing, (tuple, frozenset)):
        keys = list(map(exact_key, thing))
        if None in keys:
            return None
        return kind, tuple(keys) if isinstance(thing, tuple) else frozenset(keys)
    plain: Any
    for plain in (str, bytes, int, float, complex):
        if isinstance(thing, plain):
            return kind, exact_key(plain(thing))
    return None


def exact_keys(argument: dict[Any, Any]) -> list[Hashable]:
    """The keys of a dict, in order, by type and bits, or identity."""
    found = [(exact_key(key), key) for key in argument]
    return [("object", id(key)) if exact is None else exact for exact, key in found]


def have_same_keys(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    """Whether dicts have the same keys, in order, by type and bits, or identity."""
    if set(map(type, one)) == set(map(type, other)) <= {str}:
        return list(one) == list(other)
    return exact_keys(one) == exact_keys(other)
