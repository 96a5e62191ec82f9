"""What the footgun tests share: an error with all of its parts, and compiled against undecorated."""

from __future__ import annotations

import re
import struct
from typing import Any, Callable

import pytest

import mgjit
from mgjit import Value
from mgjit.errors import (
    MgjitError,
)

HERE = re.compile(r"(?:test_footguns\w*|refusals)\.py:\d+: ")


def bits(number: Any) -> bytes:
    number = float(getattr(number, "data", number))
    return b"nan" if number != number else struct.pack("<d", number)


def refused(
    error: type[MgjitError], why: str, function: Callable[..., Any], *arguments: Any, value: Value, **options: Any
) -> None:
    """`function` is refused with all three parts of a message; `value` is as it was and still works."""
    before = bits(value.data), bits(value.grad)
    step = mgjit.compile(**options)(function)
    for _ in range(2):  # a failed trace leaves nothing behind that makes the next one pass
        with pytest.raises(error, match=why) as caught:
            step(*arguments)
        assert HERE.search(str(caught.value)), str(caught.value)
    assert (bits(value.data), bits(value.grad)) == before
    assert mgjit.compile(lambda x: value * x)(3.0) == value.data * 3.0


def both(make: Callable[[], tuple[Callable[..., Any], list[Value]]], *calls: tuple[Any, ...], **options: Any) -> None:
    """Undecorated and compiled from equal beginnings: equal results, data and gradients after every call."""
    plain, plain_values = make()
    function, values = make()
    step = mgjit.compile(**options)(function)
    for arguments in calls:
        expected, got = plain(*arguments), step(*arguments)
        expected_parts = expected if isinstance(expected, tuple) else (expected,)
        got_parts = got if isinstance(got, tuple) else (got,)
        assert [bits(x) for x in got_parts] == [bits(x) for x in expected_parts]
        assert [bits(v.data) for v in values] == [bits(v.data) for v in plain_values]
        assert [bits(v.grad) for v in values] == [bits(v.grad) for v in plain_values]


BACKENDS = pytest.mark.parametrize("backend", ["auto", "python"])
