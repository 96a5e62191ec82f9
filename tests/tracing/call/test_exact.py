"""Keys of constants."""

from __future__ import annotations

import enum
import itertools
import struct
from typing import Any

import pytest

from mgjit.tracing.call.exact import exact_key


class _Named(float):
    pass


_DIFFERENT: list[Any] = [
    0.0, -0.0, 0, False, 1, 1.0, True, "1", b"1", None, float("nan"), 0j, complex(-0.0, 0.0), complex(0.0, -0.0),
    range(0), range(1, 1), range(0, 4, 2), range(0, 3, 2), (), (1,), (1.0,), (True,), ((1, 0.0),), ((1, -0.0),),
    frozenset(), frozenset({1}), frozenset({1.0}), _Named(1.0), _Named(0.0), _Named(-0.0),
]  # fmt: skip


@pytest.mark.parametrize("pair", list(itertools.combinations(_DIFFERENT, 2)), ids=repr)
def test_what_python_tells_apart_has_different_keys(pair: tuple[Any, Any]) -> None:
    assert exact_key(pair[0]) != exact_key(pair[1])


@pytest.mark.parametrize("thing", _DIFFERENT, ids=repr)
def test_an_equal_constant_has_the_same_key(thing: Any) -> None:
    again = struct.unpack("d", struct.pack("d", thing))[0] if type(thing) is float else thing
    assert exact_key(again) == exact_key(thing) is not None
    assert hash(exact_key(again)) == hash(exact_key(thing))


def test_objects_are_known_by_identity() -> None:
    colour = enum.Enum("colour", "RED")
    named = _Named(1.0)
    named.name = "x"  # type: ignore[attr-defined]
    for thing in (object(), [1], {}, (1, []), frozenset({object()}), colour.RED, named):  # type: ignore[attr-defined]
        assert exact_key(thing) is None
