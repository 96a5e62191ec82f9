"""Numbers, blocks of numbers and buffers among the arguments."""

from __future__ import annotations

import math
import struct
from array import array
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from mgjit.engine.precision import FLOAT32
from mgjit.errors import ArgumentError, ArgumentValueError, TraceError
from mgjit.runtime import vectorcall
from mgjit.tracing.call.in_c import in_c
from mgjit.tracing.call.inputs import BufferNode, NumberNode, NumbersNode, buffer_layout, check_exact, is_exact
from mgjit.tracing.call.node import Frame, Node
from mgjit.tracing.call.results import Result
from mgjit.tracing.record.traced_array import TracedArray
from tests.runtime.quick import use_extension

LIMIT = 2**53


def packed(node: Node, argument: Any, size: int = 4) -> list[float] | None:
    """The packed numbers, None when the argument does not fit."""
    frame = Frame(size, 2, 2)
    return list(frame.packed) if node.pack(argument, frame) else None


def make(place: int, integer: bool) -> tuple[int, bool]:
    """Stands for the number of a trace."""
    return place, integer


def test_01_numbers() -> None:
    """Integers are apart from floats, bools from both; classes derived from them may compute in their own way."""

    class Half(float):
        pass

    class Whole(int):
        pass

    real, integer = NumberNode(1, "x", False), NumberNode(2, "x", True)
    assert packed(real, -0.5) == packed(real, Result(-0.5)) == [0, -0.5, 0, 0]
    assert packed(integer, 7) == [0, 0, 7, 0]
    for node, others in (
        (real, [1, True, "1", None, [1.0], 1j, Whole(1), Half(-0.5)]),
        (integer, [1.0, False, Half(1.0), Whole(7), Result(1.0)]),
    ):
        assert all(packed(node, other) is None for other in others)
    assert (real.traced(make), integer.traced(make)) == ((1, False), (2, True))
    assert (real.describe(), integer.describe()) == ("number", "integer")


def test_02_integers_that_are_too_large() -> None:
    """The limit itself is exact; one more is an error, not another structure."""
    node = NumberNode(0, "x", True)
    for number in (LIMIT, -LIMIT):
        assert packed(node, number) == [number, 0, 0, 0]
        with pytest.raises(ArgumentValueError, match="argument x has the integer"):
            packed(node, number + (1 if number > 0 else -1))
    assert is_exact([LIMIT, -LIMIT])
    assert not is_exact([0, LIMIT + 1])
    assert not is_exact([-LIMIT - 1])
    check_exact([1e300, LIMIT], "x")
    assert packed(NumbersNode(0, (2,), (list,), int), [1, LIMIT + 1]) is None


def test_03_numbers_of_numpys() -> None:
    """Others than those of its own type are no input of a node, and arrays without a dimension never are."""
    numpy = pytest.importorskip("numpy")
    others = [numpy.float64(2.0), numpy.float32(2.0), numpy.float16(2.0), numpy.longdouble(2.0), numpy.int64(2)]
    for node in (NumberNode(0, "x", False), NumberNode(0, "x", True), NumberNode(0, "x", False, numpy.float32)):
        for other in (*others, numpy.array(2.0), numpy.array(2), numpy.bool_(True)):
            assert (packed(node, other) is not None) == (type(other) is node.type)
    assert packed(NumberNode(0, "x", False), Result(2.5)) == [2.5, 0, 0, 0]


def test_04_blocks_of_numbers() -> None:
    """Nested lists of one shape, in order; kinds and lengths are structure."""
    node = NumbersNode(1, (3, 2), (list, tuple), float)
    assert packed(node, [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)], 8) == [0, 1, 2, 3, 4, 5, 6, 0]
    assert packed(NumbersNode(0, (1, 2), (tuple, list), float), ([1.0, 2],)) == [1, 2, 0, 0]
    for other in (
        ((1.0, 2.0),) * 3,
        [(1.0, 2.0)] * 2,
        [(1.0, 2.0), (1.0,), (1.0, 2.0, 3.0)],
        [(1.0, "a")] * 3,
        [1.0] * 3,
        [(1, 2)] * 3,
        [(1.0, 2)] * 3,  # whose second numbers are ints
        [(True, 2)] * 3,
    ):
        assert packed(node, other, 8) is None
    assert node.traced(make) == [tuple((1 + 2 * row + k, False) for k in (0, 1)) for row in range(3)]
    assert node.describe() == "3 x 2 numbers in a tuple"
    integers = NumbersNode(0, (2,), (tuple,), int)
    assert packed(integers, (1, 2)) == [1, 2, 0, 0]
    assert packed(integers, (1, 2.0)) is None
    assert packed(integers, (1, True)) is None
    assert integers.describe() == "2 integers in a tuple"


class Saturated(float):
    """A float that would compute in its own way."""


class Floaty:
    """What is made into a float, without being one."""

    def __float__(self) -> float:
        return 2.0


@pytest.mark.parametrize("other", [Saturated(2.0), Floaty(), Fraction(1, 2), Decimal(2), None])
@pytest.mark.parametrize("first", [1.0, 1, True])
def test_04_other_objects_behind_numbers(first: Any, other: Any) -> None:
    """They may compute in their own way, whatever comes before them."""
    assert packed(NumbersNode(0, (3,), (list,), float), [first, 0.5, other]) is None
    assert packed(NumbersNode(0, (2, 2), (tuple, list), float), ([first, 0.5], [2.5, other])) is None
    assert packed(NumbersNode(0, (3,), (list,), float), [first, 0.5, 2]) == [1.0, 0.5, 2.0, 0.0]


def test_05_buffers() -> None:
    """Passed by address; format and length are structure."""
    node = BufferNode(1, 5, array("f", [1, 2, 3]), "x")
    frame = Frame(0, 2, 0)
    later = array("f", [4, 5, 6])
    assert node.pack(later, frame)
    assert frame.buffers[1] is later
    for other in (array("d", [1, 2, 3]), array("f", [1]), [1.0, 2.0, 3.0], b"abc"):
        assert not node.pack(other, frame)
    assert list(node.traced(make)) == [(5, False), (6, False), (7, False)]
    assert node.describe() == "array of 3 'f'"
    plain = BufferNode(0, 0, b"abc", "x")
    assert list(plain.traced(make)) == [(0, True), (1, True), (2, True)]
    assert plain.pack(b"xyz", frame)
    assert not plain.pack(bytearray(b"xyz"), frame)
    assert not plain.pack(b"xy", frame)


def test_06_buffers_with_gaps() -> None:
    """A view that is not contiguous is copied."""
    node = BufferNode(0, 0, memoryview(b"abcd")[::2], "x")
    frame = Frame(0, 1, 0)
    assert node.pack(memoryview(b"wxyz")[1::2], frame)
    assert bytes(frame.buffers[0]) == b"xz"


def test_07_formats() -> None:
    """Native numbers only; characters are small integers."""
    assert buffer_layout(memoryview(b"ab").cast("c"), "x") == ("B", (2,))
    assert buffer_layout(memoryview(bytes(48)).cast("d", [2, 3]), "x") == ("d", (2, 3))
    for wrong, message in (("text", "no usable buffer"), (memoryview(bytes(16)).cast("P"), "format 'P'")):
        with pytest.raises(ArgumentError, match=message):
            buffer_layout(wrong, "x")


def test_11_arrays_in_a_trace() -> None:
    """Nested lists with a shape and several indices; whole-array arithmetic is refused with a hint."""
    made: Any = BufferNode(0, 0, memoryview(bytes(48)).cast("d", [2, 3]), "x").traced(lambda place, integer: place)
    assert type(made) is TracedArray
    assert type(made[0]) is TracedArray
    assert made.shape == (2, 3)
    assert made[1, 2] == made[1][2] == 5
    for attempt in (lambda: made + 1, lambda: 2 * made, lambda: -made, lambda: made @ made, lambda: made.sum):
        with pytest.raises(TraceError, match=r"test_inputs\.py:\d+: arithmetic on a whole array"):
            attempt()
    assert not hasattr(made, "__array_interface__")


def test_numbers_of_a_float32_step() -> None:
    """Packed as float32: rounded, infinite beyond the largest; the limit of integers stays."""
    frame = Frame(5, 0, 0, FLOAT32)
    assert NumberNode(0, "x", False).pack(0.1, frame)
    assert NumberNode(1, "x", True).pack(2**24 + 1, frame)
    assert NumbersNode(2, (3,), (list,), float, FLOAT32).pack([1e39, -0.0, 1e-46], frame)
    assert list(map(str, frame.packed)) == ["0.10000000149011612", "16777216.0", "inf", "-0.0", "0.0"]
    with pytest.raises(ArgumentValueError):
        NumberNode(1, "x", True).pack(LIMIT + 1, frame)


@pytest.mark.parametrize("with_extension", [False, True])
def test_12_tables_as_bytes(monkeypatch: pytest.MonkeyPatch, with_extension: bool) -> None:
    """The same with functions in C and without them; what is no such table has none."""
    use_extension(monkeypatch, with_extension)
    monkeypatch.setattr(in_c, "extension", vectorcall.extension)
    rows = [[0.5, -0.0, 3], (math.inf, math.nan, 2**60 + 1)]
    node = NumbersNode(0, (2, 3), (list, list), float)
    assert node.table(rows) == struct.pack("6d", *rows[0], *rows[1])
    assert node.table([[1.0, True, 0.5], rows[0]]) == struct.pack("6d", 1.0, 1.0, 0.5, *rows[0])
    for other in (tuple(rows), [rows[0]], [rows[0], rows[1][:2]], [rows[0], [1.0, 2.0, "3"]], [[1, 2, 3]] * 2, 0.5):
        assert node.table(other) is None
    with pytest.raises((struct.error, OverflowError)):
        node.table([rows[0], [0.5, 2**2000, 1.0]])
