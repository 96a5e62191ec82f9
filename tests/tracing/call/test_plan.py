"""Argument plans: what becomes an input, where it lies, when a later call fits."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Sequence
from typing import Any

import pytest

from mgjit import Value
from mgjit.errors import ArgumentError
from mgjit.tracing.call.inputs import buffer_layout
from mgjit.tracing.call.plan import ArgumentPlan, plan_arguments


def plan(*arguments: Any, static: Sequence[str] = (), slots: bool = False) -> ArgumentPlan:
    """A plan of arguments named a, b, c ..."""
    return plan_arguments(
        "abcdefgh"[: len(arguments)], arguments, frozenset(static), (lambda value: True) if slots else None
    )


def packed(made: ArgumentPlan, *arguments: Any) -> Any:
    """The packed numbers of a later call; None when it does not fit."""
    frame = made.frame()
    return list(frame.packed) if made.pack(arguments, frame) else None


def test_01_numbers_are_packed_in_order() -> None:
    """Single numbers, blocks and nested blocks share one array."""
    made = plan(1.5, [2, 3.0], {"k": (4.0, "text")}, ((5.0, 6.0), (7.0, 8.0)))
    assert packed(made, 1.5, [2, 3.0], {"k": (4.0, "text")}, ((5.0, 6.0), (7.0, 8.0))) == [1.5, 2, 3, 4, 5, 6, 7, 8]
    assert made.input_size == 8


@pytest.mark.parametrize(
    ("first", "fits", "others"),
    [
        (1.0, [2.0, -3.5], [True, None, "x", [1.0], 1j]),
        ([1.0, 2.0], [[3.0, 4.0]], [[1.0], [1.0, 2.0, 3.0], (1.0, 2.0), ["a", 2.0], [[1.0], [2.0]], 1.0]),
        ([[1.0], [2.0]], [[[3.0], [4.0]]], [[[1.0, 2.0], [3.0]], [[1.0]], [(1.0,), (2.0,), (3.0,)], [1.0, 2.0]]),
        ((1.0, 2), [(3.0, 4)], [(1.0, 2.0), (1, 2), (1, 2.0), [1.0, 2]]),
        ((1.0, 2.0), [(3.0, 4.0)], [(1.0, 2), (1, 2.0), (1, 2)]),
        ([(1.0, 2)], [[(3.0, 4)]], [[(1.0, 2.0)], [(1, 2.0)], [[1.0, 2]]]),
        ({"a": 1.0}, [{"a": 2.0}], [{"b": 1.0}, {"a": 1.0, "b": 2.0}, {"a": "x"}, {}]),
        ("text", ["text"], ["other", None, 1.0]),
        (True, [True], [False, 1.0, 1]),
        (None, [None], [False, 0.0]),
        (b"abc", [b"xyz"], [b"ab", bytearray(b"abc"), [1, 2, 3]]),
        (array("f", [1, 2]), [array("f", [3, 4])], [array("d", [1, 2]), array("f", [1]), [1.0, 2.0]]),
        (memoryview(b"abcd")[::2], [memoryview(b"wxyz")[1::2]], [memoryview(b"abc"), b"ab"]),
    ],
)
def test_02_what_fits(first: Any, fits: list[Any], others: list[Any]) -> None:
    """The same structure packs into the plan and has the same key; anything else does neither."""
    made = plan(first)
    for argument in [first, *fits]:
        assert packed(made, argument) is not None
        assert plan(argument).key == made.key
    for argument in others:
        assert packed(made, argument) is None
        with contextlib.suppress(ArgumentError):
            assert plan(argument).key != made.key


def test_03_a_refused_call_says_where() -> None:
    """The first difference, as a path."""
    base = plan([1.0, {"x": (1.0, "m")}], 2.0)
    for argument, expected in [
        ([1.0, {"x": (1.0, "n")}], "a[1]['x'][1] was 'm', is 'n'"),
        ([1.0, {"y": (1.0, "m")}], "a[1] was dict with keys ['x'], is dict with keys ['y']"),
        ([1.0], "a was list of length 2, is 1 number in a list"),
    ]:
        assert base.first_difference(plan(argument, 2.0)) == expected
    assert base.first_difference(plan([5.0, {"x": (6.0, "m")}], 7.0)) == "nothing in the arguments"
    one, other = (plan_arguments(["a"], [[1.0, 2.0]], frozenset("a")) for _ in range(2))
    assert one.first_difference(other) == "a is another object than before, [1.0, 2.0], and known by its identity"


def test_04_buffers_follow_the_packed_numbers() -> None:
    """Each is a region; their indices come after everything packed."""
    made = plan(b"abc", 1.0, array("d", [1.0, 2.0]))
    assert [(node.place, node.size, node.format) for node in made.buffers] == [(1, 3, "B"), (4, 2, "d")]
    assert made.input_size == 6
    traced = made.traced(lambda index, *_: index)
    assert [list(traced[0]), traced[1], list(traced[2])] == [[1, 2, 3], 0, [4, 5]]


def test_05_values() -> None:
    """By identity, or as slots."""
    p, q = Value(1.0), Value(1.0)
    assert plan(p).key == plan(p).key != plan(q).key
    assert plan(p, slots=True).key == plan(q, slots=True).key
    assert packed(plan(p), q) is None
    made = plan([p, 2.0], slots=True)
    frame = made.frame()
    assert made.pack(([q, 3.0],), frame)
    assert frame.values == [q]


def test_06_aliases_are_part_of_the_structure() -> None:
    """One Value twice is another structure than two Values."""
    p, q = Value(1.0), Value(1.0)
    assert plan(p, p, slots=True).key != plan(p, q, slots=True).key


def test_07_static() -> None:
    """Compared by value, of any size; objects by identity."""
    marker = object()
    assert plan(3, static="a").key == plan(3, static="a").key != plan(4, static="a").key
    assert plan(2**70, static="a").input_size == 0
    assert plan(1, static="a").key != plan(1.0, static="a").key
    assert packed(plan(marker), marker) == []
    assert packed(plan(marker), object()) is None


@pytest.mark.parametrize("argument", [{1.0}, frozenset({Value(1.0)}), 1j, iter([1.0]), (x for x in [1.0])])
def test_08_impossible(argument: Any) -> None:
    """Named with a path; a frozenset is a static thing."""
    if isinstance(argument, frozenset):
        assert plan(argument).input_size == 0
    else:
        with pytest.raises(ArgumentError, match=r"test_plan\.py:\d+: argument a\[0\]"):
            plan([argument, "x"])


def test_09_buffer_layouts() -> None:
    """Struct codes without byte order; shapes of views."""
    assert buffer_layout(array("i", [1, 2, 3]), "x") == ("i", (3,))
    assert buffer_layout(memoryview(bytes(12)).cast("B", (3, 4)), "x") == ("B", (3, 4))
    assert buffer_layout(memoryview(bytes(4)).cast("c"), "x") == ("B", (4,))
    with pytest.raises(ArgumentError, match="argument x"):
        buffer_layout(object(), "x")


def test_10_what_the_step_sees() -> None:
    """The same containers; buffers as nested lists that know their shape."""
    numpy = pytest.importorskip("numpy")
    made = plan(numpy.zeros((2, 3)), (1.0, [2.0]))
    matrix, pair = made.traced(lambda index, *_: index)
    assert matrix.shape == (2, 3)
    assert (matrix[1, 2], matrix[1][2], len(matrix), [len(row) for row in matrix]) == (7, 7, 2, [3, 3])
    assert pair == (0, [1])
    assert type(pair) is tuple


def test_11_dicts_keep_their_order() -> None:
    """Another order of keys is another structure: a step may depend on it."""
    assert packed(plan({"a": 1.0, "b": 2.0}), {"b": 2.0, "a": 1.0}) is None


def test_the_outline_leaves_out_arguments_that_are_not_given() -> None:
    assert plan(([1.0], {"rate": 0.5}), (), {}).outline() == "(a: (1 number in a list, {'rate': number}))"


def test_ints_like_those_of_one_row() -> None:
    """In all rows, wherever they lie; in a list of ints, all of them."""
    rows = [([0.5, 1.5], 3), ([0.25], 4), ([0.125, 2.0], 5)]
    plan = plan_arguments(["batch", "labels", "n"], [rows, [1, 2, 3], 7], set())
    assert plan.ints_like("batch[0][1]") == {"batch[0][1]", "batch[1][1]", "batch[2][1]"}
    assert plan.ints_like("labels[1]") == {"labels[0]", "labels[1]", "labels[2]"}
    assert plan.ints_like("n") == {"n"}
