"""autograd/order.py: other orders of records."""

from __future__ import annotations

import random

import pytest

from mgjit.ir import opcodes as ops
from mgjit.ir.trace import Trace
from mgjit.tracing.autograd.flow import NoFlow
from mgjit.tracing.autograd.order import Arrangement
from mgjit.tracing.record.recorder import Recorder

X = ops.leaf(ops.INPUT, 0)


def recorder_of(operands: list[tuple[int, int]]) -> Recorder:
    """A trace of additions."""
    recorder = Recorder()
    for a, b in operands:
        recorder.emit(ops.ADD | ops.NUMBER, a, b)
    return recorder


def finished(recorder: Recorder) -> list[tuple[int, int]]:
    trace: Trace = recorder.finish()
    return list(zip(trace.a, trace.b))


def test_01_nothing_to_do() -> None:
    """The order stays where it is right, with conditions and without."""
    operands = [(X, X), (0, X), (1, 0), (X, 2)]
    recorder = recorder_of(operands)
    arrangement = Arrangement(recorder, 4)
    arrangement.keep_order([0, 2, 3])
    arrangement.apply()
    assert finished(recorder) == operands


def test_02_rows_stay_together() -> None:
    """Rows of products whose order is asked for element by element are moved as a whole."""
    rows = [[(X, X), (X, 4 * row), (X, 4 * row + 1), (X, 4 * row + 2)] for row in range(4)]
    recorder = recorder_of([record for row in rows for record in row])
    arrangement = Arrangement(recorder, 16)
    for k in range(4):  # rows 0, 2, 1, 3
        arrangement.keep_order([k, 8 + k, 4 + k, 12 + k])
    arrangement.apply()
    moved = [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15]
    place = {record: number for number, record in enumerate(moved)}
    flat = [record for row in rows for record in row]
    assert finished(recorder) == [(flat[r][0], place.get(flat[r][1], flat[r][1])) for r in moved]


def test_03_added_records_come_after_their_operands() -> None:
    """And not where they were added."""
    recorder = recorder_of([(X, X), (0, X), (1, X), (X, X), (X, X), (0, 0)])
    Arrangement(recorder, 5).apply()
    assert finished(recorder) == [(X, X), (0, 0), (0, X), (2, X), (X, X), (X, X)]


def test_04_what_cannot_be() -> None:
    """An order against operands, or across a change of memory."""
    recorder = recorder_of([(X, X), (0, X)])
    arrangement = Arrangement(recorder, 2)
    arrangement.keep_order([1, 0])
    with pytest.raises(NoFlow, match="before they are there"):
        arrangement.apply()
    recorder = recorder_of([(X, X), (X, X)])
    recorder.store(ops.leaf(ops.STATE, 0), 1)
    recorder.emit(ops.ADD | ops.NUMBER, X, X)
    arrangement = Arrangement(recorder, 4)
    arrangement.keep_order([0, 1, 3])
    with pytest.raises(NoFlow, match="in between"):
        arrangement.keep_order([3, 0])


def test_05_random_orders() -> None:
    """Every record comes once, after its operands and in the order asked for, whichever were added later."""
    draw = random.Random(5)
    for _ in range(300):
        count = draw.randrange(2, 40)
        operands = [
            tuple(draw.randrange(r) if r and draw.random() < 0.6 else X for _ in range(2)) for r in range(count)
        ]
        recorder = recorder_of(operands)  # type: ignore[arg-type]
        hidden = sorted(range(count), key=lambda record: draw.random())
        possible: list[int] = []  # a random order that is possible

        def place(record: int, operands: list = operands, possible: list[int] = possible) -> None:  # type: ignore[type-arg]
            for operand in operands[record]:
                if operand >= 0 and operand not in possible:
                    place(operand)
            if record not in possible:
                possible.append(record)

        for record in hidden:
            place(record)
        chains = [sorted(draw.sample(range(count), draw.randrange(1, count + 1)), key=possible.index) for _ in range(3)]
        arrangement = Arrangement(recorder, draw.choice((count, draw.randrange(count))))
        for chain in chains:
            arrangement.keep_order(chain)
        arrangement.apply(draw.choice(([], sorted(set().union(*chains), key=possible.index))))
        order = recorder.arrangements[0][1] if recorder.arrangements else list(range(count))
        assert sorted(order) == list(range(count))
        rank = {record: number for number, record in enumerate(order)}
        for record, pair in enumerate(operands):
            assert all(operand < 0 or rank[operand] < rank[record] for operand in pair)
        for chain in chains:
            assert [rank[record] for record in chain] == sorted(rank[record] for record in chain)
