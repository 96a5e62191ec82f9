"""Packing rows: whole columns and row by row, what is refused, what is a call of its own."""

from __future__ import annotations

import inspect
from array import array
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from mgjit import Value
from mgjit.errors import ArgumentValueError, ColumnError
from mgjit.ir.trace import IndexCheck
from mgjit.tracing.call.columns import Columns, read_columns
from mgjit.tracing.call.plan import ArgumentPlan, plan_arguments
from mgjit.tracing.call.rows import Rows, _pack_one_by_one, alike, pack_rows


class Pair(NamedTuple):
    """Two things."""

    a: Any
    b: Any


@dataclass
class Sample:
    """Two things, too."""

    a: Any
    b: Any


def read(*given: Any, static: frozenset[str] = frozenset(), **named: Any) -> Columns:
    """Columns of a step f(x, y=7.0, *rest, **named)."""

    def step(x: Any, y: Any = 7.0, *rest: Any, **named: Any) -> None:
        pass

    return read_columns(inspect.signature(step), given, named, static)


def planned(columns: Columns) -> tuple[ArgumentPlan, Any]:
    plan = plan_arguments(columns.names, columns.row(0), columns.static)
    frame = plan.frame()
    assert plan.pack(columns.row(0), frame)
    return plan, frame


def contents(rows: Rows) -> Any:
    """The packed numbers and the buffers of each row."""
    packed = rows.packed if rows.packed_stride else rows.packed * rows.count
    buffers = []
    for memory, stride in rows.buffers:
        data = memoryview(memory).tobytes()
        buffers.append(data if stride else data * rows.count)
    return packed, buffers, rows.separate


NUMBERS = [0.5, -0.0, float("inf"), 1e-300]

LISTS = [[0.1, 2.0], [3, 0.25], [5.5, 1], [True, 1.5]]


@pytest.mark.parametrize(
    "given",
    [
        (NUMBERS,), (NUMBERS, 3), (1.5, NUMBERS), (LISTS,), (LISTS, NUMBERS), (NUMBERS, LISTS),
        ([1, 2, 3, 2**53],), (range(4), NUMBERS), (b"abcd",), (array("f", [*NUMBERS[:3], 0.5]),),
        (memoryview(array("d", NUMBERS))[::-1], array("d", NUMBERS)), (bytearray(b"abcd"), array("h", range(4))),
        ([[k] * 9 for k in range(4)], [[0.5 * k] * 9 for k in range(4)]), ([[[k, 1], [2, k]] for k in range(4)],),
        ([((k, 1.0), [2, k]) for k in range(4)],), ([Pair(k, [0.5]) for k in range(4)],),
        ([Sample(k, b"xy") for k in range(4)], NUMBERS), ([{"a": k, "b": {"c": [1.0, k]}} for k in range(4)],),
        ([b"ab", b"cd", b"ef", b"gh"],), ([bytearray(b"ab")] * 4,), ([array("i", [k, 5]) for k in range(4)],),
        ([memoryview(b"abcd")[k::2] for k in (0, 1, 0, 1)],), (memoryview(bytes(range(24))).cast("B", (4, 3, 2)),),
        (NUMBERS, 1.0, NUMBERS, 2.0), (NUMBERS, 1.0, NUMBERS, b"abcd", LISTS), (["text"] * 4, NUMBERS),
        ([None] * 4, [True] * 4, NUMBERS), ([[], [], [], []], NUMBERS), (NUMBERS, {"a": [1.0, 2.0], "b": b"x"}),
        (NUMBERS, Pair(1, "a")), ([NUMBERS] * 4, array("b", [1] * 4)), ([[1, 2]] * 4, [(1, b"a")] * 4),
    ],
)  # fmt: skip
def test_01_whole_columns_and_row_by_row(given: tuple[Any, ...]) -> None:
    """The same memory."""
    columns = read(*given)
    plan, frame = planned(columns)
    assert contents(pack_rows(plan, frame, columns)) == contents(_pack_one_by_one(plan, columns))
    assert len(list(columns.rows())) == columns.length == 4


def test_02_numpy() -> None:
    """Arrays of every layout, scalars in lists, arrays in lists."""
    numpy = pytest.importorskip("numpy")
    base = numpy.arange(48.0).reshape(8, 6)
    for kind in ("f8", "f4", "u1", "i8"):
        whole = base.astype(kind)
        for x in (
            whole,
            whole[::2],
            whole[:, ::2],
            whole.T,
            whole[:, 1],
            list(whole),
            list(whole[:, 1]),
            whole[:4, :3],
        ):
            columns = read(x, numpy.float32(0.5))
            plan, frame = planned(columns)
            assert contents(pack_rows(plan, frame, columns)) == contents(_pack_one_by_one(plan, columns))


def test_03_contiguous_buffers_stay_where_they_are() -> None:
    """No copy; the distance of rows in bytes."""
    raw = memoryview(array("i", range(12))).cast("B").cast("i", (4, 3))
    columns = read(raw)
    rows = pack_rows(*planned(columns), columns)
    assert rows.buffers[0].memory is raw
    assert rows.buffers[0].stride == 12
    assert rows.packed_stride == 0
    assert rows.input_column(1 + 2) == [2, 5, 8, 11]  # the packed y comes first
    assert list(rows.input_column(0)) == [7.0]


@pytest.mark.parametrize(
    "column",
    [
        [0.5, 1], [1, 0.5], [1, True], [1.0, "a"], [1.0, [1.0]], [[1.0], 1.0], [[1.0], (1.0,)],
        [[[1.0]], [1.0]], [b"a", bytearray(b"a")], [b"a", "a"],
        [array("d", [1.0]), array("f", [1.0])], [(1.0, b"a"), (1.0, b"a", 1.0)],
        [{"a": 1.0}, {"b": 1.0}], [{"a": 1.0, "b": 1.0}, {"b": 1.0, "a": 1.0}], [Pair(1, 2), (1, 2)],
        [Sample(1, 2), Pair(1, 2)], ["a", "b"], [None, 1.0], [True, False], [1.0, Value(1.0)], [Value(1.0), 1.0],
        [[1.0, 2.0], [1.0, "x"]], [object(), object()],
    ],
)  # fmt: skip
def test_06_rows_of_another_structure(column: list[Any]) -> None:
    """Refused, with the row."""
    columns = read(column)
    plan, frame = planned(columns)
    with pytest.raises(ColumnError, match=r"test_rows\.py:\d+: .*another structure than row 0.*Row 1 "):
        pack_rows(plan, frame, columns)


@pytest.mark.parametrize(
    "column",
    [
        [[1.0], [1.0, 2.0]], [[[1.0]], [[1.0, 2.0]]], [[[1.0]], [[1.0], [2.0, 3.0]], [[]]], [[], [1.0]], [b"a", b"ab"],
        [(1.0, b"a"), (1.0, b"ab")], [{"a": [1.0]}, {"a": []}], [Sample(1.0, [2, 3]), Sample(2.0, [4])],
        [[1, 2], [0.5]], [[Value(1.0)], [Value(2.0), Value(3.0)]], [["a", "a"], ["a"]],
    ],
)  # fmt: skip
def test_06_rows_of_other_lengths_are_separate_calls(column: list[Any]) -> None:
    """Whatever contains what is longer."""
    columns = read(column)
    plan, frame = planned(columns)
    rows = pack_rows(plan, frame, columns)
    assert (rows.ragged, rows.separate) == (True, True)


@pytest.mark.parametrize(
    "column", [[[1.0], [1.0, 2.0], ["a"]], [[1.0, 2.0], [], [[1.0]]], [Pair(1, [2]), Pair([1], 2)]]
)
def test_06_a_row_that_differs_in_more_than_its_length(column: list[Any]) -> None:
    """Is refused, before and behind one that does not."""
    columns = read(column)
    plan, frame = planned(columns)
    with pytest.raises(ColumnError, match="another structure than row 0"):
        pack_rows(plan, frame, columns)


@pytest.mark.parametrize("column", [[1, 2**53 + 1], [[1], [2**60]], [[1, 1], [1, 10**400]]])
def test_07_integers_that_are_too_big(column: list[Any]) -> None:
    """As in a call."""
    columns = read(column)
    with pytest.raises(ArgumentValueError, match=r"2\*\*53.*Row 1 "):
        pack_rows(*planned(columns), columns)


def test_08_values() -> None:
    """The same in all rows, or rows that are calls of their own."""
    p, q = Value(1.0), Value(2.0)
    for column, separate in (([p, p], False), ([p, q], True), ([[p, q], [p, q]], False), ([[p, q], [q, p]], True)):
        columns = read(column, [1.0, 2.0])
        for is_slot in (None, lambda value: True):
            plan = plan_arguments(columns.names, columns.row(0), frozenset(), is_slot)
            frame = plan.frame()
            plan.pack(columns.row(0), frame)
            rows = pack_rows(plan, frame, columns)
            assert rows.separate is separate
            assert list(rows.packed) == [1.0, 2.0]


def test_09_lists_of_ints_among_lists_of_floats() -> None:
    """Such rows are calls of their own; ints and floats in one list are floats."""
    for column, separate in (
        ([[1.5, 2], [1, 2.5]], False),
        ([[1.5, 2], [1, 2]], True),
        ([[1, 2], [1, 2.5]], True),
        ([[[1.5], [2]], [[1], [2]]], True),
        ([(0.5, b"a"), (1.5, b"a")], False),
    ):
        columns = read(column, [1.0, 2.0])
        rows = pack_rows(*planned(columns), columns)
        assert rows.separate is separate


@pytest.mark.parametrize("kind", [bytes, "b", "B", "i", "Q"])
@pytest.mark.parametrize("allowed", [range(10), range(1, 256), range(-3, 9), range(2**24, 2**24 + 2)])
def test_10_all_checks_of_a_buffer_at_once(kind: Any, allowed: range) -> None:
    """They fail in any row; numbers that may be rounded, and parts of a buffer, are checked one by one."""
    for bad in (None, 0, 9, 10, 120):
        numbers = [5] * 12 if bad is None else [5] * 11 + [bad]
        flat = bytes(numbers) if kind is bytes else array(kind, numbers)
        column = memoryview(flat).cast("B").cast("B" if kind is bytes else kind, (3, 4))  # type: ignore[call-overload]
        columns = read(column)
        plan, frame = planned(columns)
        rows = pack_rows(plan, frame, columns)
        settled = allowed.stop <= 2**24
        assert rows.are_allowed(0, 4, allowed) is (settled and all(number in allowed for number in numbers))
        assert not rows.are_allowed(0, 3, allowed)
        assert not rows.are_allowed(-1, 4, allowed)


def test_11_checks_that_are_alike() -> None:
    """By buffer and range, the first of each input."""
    plan, _ = planned(read(memoryview(bytes(8)).cast("B", (2, 4)), [0.5, 1.5]))
    place = plan.buffers[0].place
    checks = [
        *(IndexCheck(place + k, 10, "first") for k in range(4)),
        IndexCheck(0, 10, "number"),
        IndexCheck(place, 10, "again"),
        IndexCheck(place + 1, 9, "other"),
    ]
    assert alike(checks, plan) == {
        (0, range(10)): checks[:4],
        (-1, range(10)): [checks[4]],
        (0, range(9)): [checks[6]],
    }


def test_12_the_callers_numbers_are_never_the_rows() -> None:
    """A kernel may be given a copy or another order, but not memory that can change after the checks."""
    for columns in (read(array("d", NUMBERS)), read(array("d", NUMBERS), array("d", NUMBERS))):
        plan, frame = planned(columns)
        rows = pack_rows(plan, frame, columns)
        assert all(rows.packed is not getattr(column, "buffer", None) for column in columns.columns)
