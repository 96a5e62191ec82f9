"""Traced numbers: they pass for floats and ints, and record what is not the same for every operand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.ir import opcodes as ops
from tests.lowering import Example


def operations(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """The names of the recorded operations, without assignments of results."""
    trace = Example(function, *arguments).trace
    return [name for name in map(ops.operation_name, trace.op) if name != "store"]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: 1 * x, []),
        (lambda x: x * 1.0, []),
        (lambda x: x / 1, []),
        (lambda x: x - 0, []),
        (lambda x: x**1, []),
        (lambda x: 0 + (0 + x), ["add"]),
        (lambda x: (x < 1) + 0.0, ["less"]),
        (lambda x: 0 + x, ["add"]),
        (lambda x: x + -0.0, ["add"]),
        (lambda x: x - -0.0, ["subtract"]),
        (lambda x: -1 * x, ["multiply"]),
        (lambda x: 1 / x, ["divide"]),
        (lambda x: 1 - x, ["subtract"]),
        (lambda x: 1**x, ["power"]),
        (lambda x: x * 0, ["multiply"]),
    ],
)
def test_01_neutral_operands(function: Callable[[Any], Any], expected: list[str]) -> None:
    """Only what gives every number back, -0.0 and nan included, is left out."""
    assert operations(function, 1.5) == expected
    step = mgjit.compile(function)
    for x in (1.5, 0.0, -0.0, math.inf, math.nan):
        try:
            wanted = float(function(x))
        except ZeroDivisionError:
            continue
        got = float(step(x))
        assert (got == wanted and math.copysign(1, got) == math.copysign(1, wanted)) or got != got != wanted


def test_02_they_pass_for_numbers() -> None:
    """isinstance, but not type(): so nothing in C takes them for a real float."""
    seen: list[Any] = []

    def look(x: Any, n: Any) -> Any:
        seen.extend([isinstance(x, float), isinstance(x, int), isinstance(n, int), isinstance(n, float)])
        seen.extend(
            [isinstance(x < 1, int), isinstance(x * n, float), isinstance(n + 1, int), isinstance(n / 2, float)]
        )
        return x

    Example(look, 1.5, 2)
    assert seen == [True, False, True, False, True, True, True, True]
    for use in (math.sin, math.hypot, lambda x: [1.0] * x, lambda x: memoryview(b"ab")[x]):
        with pytest.raises((TypeError, mgjit.errors.TraceError)):
            Example(lambda x, use=use: use(x), 1.5)


@pytest.mark.parametrize(
    "function",
    [
        lambda n, x: n * -2, lambda n, x: -n, lambda n, x: n - n, lambda n, x: (n + 1) * n, lambda n, x: -(n * 1.0),
        lambda n, x: (n * -2) * x, lambda n, x: -(n - 3) * 0, lambda n, x: (x < 0) * -1, lambda n, x: -(x > 9),
    ],
)  # fmt: skip
def test_03_ints_have_no_negative_zero(function: Callable[[Any, Any], Any]) -> None:
    """Integer arithmetic stays integer arithmetic; a float operand ends it."""
    step = mgjit.compile(function)
    for n in (0, 3, -3):
        for x in (1.5, -1.5, 0.0):
            got, expected = float(step(n, x)), float(function(n, x))
            assert got == expected
            assert math.copysign(1, got) == math.copysign(1, expected)


def test_04_comparisons_with_other_things() -> None:
    """As Python: unequal, and no order."""
    assert not mgjit.compile(lambda x: x == "text")(1.5)
    assert mgjit.compile(lambda x: x != None)(1.5)  # noqa: E711
    with pytest.raises(TypeError):
        mgjit.compile(lambda x: x < "text")(1.5)
