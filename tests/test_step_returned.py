"""What a step returns of what it was given or captures is the object itself, as in Python."""

from __future__ import annotations

import dataclasses
from array import array
from typing import Any

import pytest

import mgjit


@dataclasses.dataclass
class Box:
    numbers: list[float]


CASES: list[tuple[Any, Any]] = [
    (lambda xs, x: xs, [1.0, 2.0]),
    (lambda xs, x: xs, [[1.0, 2.0], [3.0, 4.0]]),
    (lambda xs, x: xs[1], [[1.0, 2.0], [3.0, 4.0]]),
    (lambda xs, x: (xs, xs[1], x), [[1.0], [3.0, 4.0], "text"]),
    (lambda xs, x: {"xs": xs[0], "x": x}, ([1.0, 2.0], 3.0)),
    (lambda xs, x: [xs["a"], x], {"a": [1.0, 2.0], "b": 3.0}),
    (lambda xs, x: (xs, xs.numbers), Box([1.0, 2.0])),
    (lambda xs, x: xs, array("d", [1.0, 2.0])),
    (lambda xs, x: [xs["b"][1], x * 2], {"b": (0.5, bytearray(b"abc"))}),
    (lambda xs, x: (xs, xs), []),
]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_arguments(case: tuple[Any, Any]) -> None:
    function, xs = case

    def step(xs: Any, x: float) -> Any:
        returned = function(xs, x)
        return [returned] if isinstance(returned, (list, array, Box)) else returned

    compiled = mgjit.compile(step)
    for k in range(6):
        wanted, got = step(xs, 0.5 + k), compiled(xs, 0.5 + k)
        named = compiled(x=0.5 + k, xs=xs)
        for one in (got, named):
            assert _same(one, wanted), (one, wanted)
    assert compiled.stats.traces == 1


def _same(one: Any, other: Any) -> bool:
    """Whether containers that are among the arguments are the same objects, and everything else is equal."""
    if one is other:
        return True
    if isinstance(one, (list, tuple)) and type(one) is type(other):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(_same, one.values(), other.values()))
    return isinstance(one, float) and repr(one) == repr(other)


def test_a_copy_is_a_copy() -> None:
    @mgjit.compile
    def step(xs: Any, x: float) -> Any:
        return list(xs), xs[:1], [*xs, x]

    xs = [1.0, 2.0]
    for k in range(5):
        got = step(xs, float(k))
        assert got == ([1.0, 2.0], [1.0], [1.0, 2.0, float(k)])
        assert got[0] is not xs


def test_an_argument_that_is_changed() -> None:
    @mgjit.compile
    def step(xs: Any, x: float) -> Any:
        xs[0] += x
        return xs

    xs = [1.0, 2.0]
    for _ in range(5):
        assert step(xs, 1.0) is xs
    assert xs == [6.0, 2.0]


def test_captured_lists_and_dicts() -> None:
    state, table, untouched = [1.0, 2.0], {"a": 1.0}, [[1.0], "text"]

    @mgjit.compile
    def step(x: float) -> Any:
        state[0] += x
        table["a"] -= x
        return state, table, untouched

    for k in range(5):
        one, two, three = step(1.0)
        assert one is state
        assert two is table
        assert three is untouched
        assert (state[0], table["a"]) == (2.0 + k, -float(k))


def test_columns_of_a_loop_are_numbers_all_the_same() -> None:
    state = [1.0, 2.0]

    @mgjit.compile
    def step(xs: Any, x: float) -> Any:
        state[0] += x
        return xs, state

    xs, now = step.loop([[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0])
    assert [list(column) for column in xs] == [[1.0, 3.0], [2.0, 4.0]]
    assert [list(column) for column in now] == [[2.0, 4.0], [2.0, 2.0]]


def test_rows_of_numpy_arrays() -> None:
    numpy = pytest.importorskip("numpy")

    @mgjit.compile
    def step(a: Any, x: float) -> Any:
        a[1, 0] = x
        return a, a[1]

    a = numpy.zeros((2, 2))
    for k in range(5):
        whole, row = step(a, float(k))
        assert whole is a
        assert row.base is a
        assert row.tolist() == [float(k), 0.0]


def test_rows_that_are_calls_of_their_own_keep_what_each_has_returned() -> None:
    state, w = [1.0, 2.0], mgjit.Value(3.0)

    def step(xs: Any, x: float) -> Any:
        state[0] += x
        w.data += x
        return xs, state, w

    compiled = mgjit.compile(step)
    xs, now, values = compiled.loop([[1.0, 2.0], state], [1.0, 2.0])
    assert [list(column) for column in xs] == [[1.0, 4.0], [2.0, 2.0]]
    assert [list(column) for column in now] == [[2.0, 4.0], [2.0, 2.0]]
    assert list(values) == [4.0, 6.0]


class Outcome:
    """What a step may return: no node of a graph."""

    def __init__(self, parts: Any, total: Any) -> None:
        self.parts, self.total = parts, total


def test_containers_of_numbers_in_a_returned_object() -> None:
    def step(x: float) -> Any:
        return Outcome([x, (x * 2.0, 1)], x + 1.0)

    compiled = mgjit.compile(step)
    for x in (3.0, -0.5):
        assert vars(compiled(x)) == vars(step(x))
