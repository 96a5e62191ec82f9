"""Floats in whose place an int would be seen."""

from __future__ import annotations

import pytest

from mgjit.ir import opcodes as ops
from mgjit.tracing.record.recorder import Recorder
from mgjit.tracing.record.visible import visible_types

A, B, LR = ops.leaf(ops.STATE, 0), ops.leaf(ops.STATE, 1), ops.leaf(ops.INPUT, 0)


def visible(*records: tuple[int, int, int]) -> set[int]:
    """What the last operation shows of A and B, which may be ints; LR may not."""
    recorder = Recorder()
    for code, a, b in records:
        last = recorder.emit(code | ops.NUMBER, a, b)
    return visible_types(recorder, [last] if records else [A], lambda leaf: leaf != LR)


@pytest.mark.parametrize(
    ("records", "wanted"),
    [
        ([], {A}),
        ([(ops.ADD, A, B)], {A, B}),
        ([(ops.MULTIPLY, A, LR)], set()),
        ([(ops.MULTIPLY, LR, B), (ops.SUBTRACT, A, 0)], set()),
        ([(ops.MAXIMUM, LR, B)], {B}),
        ([(ops.MAXIMUM, LR, B), (ops.NEGATE, 0, ops.NO_OPERAND)], {B}),
        ([(ops.DIVIDE, A, B)], set()),
        ([(ops.EXP, A, ops.NO_OPERAND), (ops.MINIMUM, 0, B)], {B}),
    ],
)
def test_01_through_operations(records: list[tuple[int, int, int]], wanted: set[int]) -> None:
    """An operation with a float hides the type; a choice does not."""
    assert visible(*records) == wanted


def test_02_long_sums() -> None:
    """Need no recursion."""
    records = [(ops.ADD, A, B), *((ops.ADD, k, B) for k in range(50_000))]
    assert visible(*records) == {A, B}
    assert visible(*records, (ops.MULTIPLY, LR, len(records) - 1)) == set()
