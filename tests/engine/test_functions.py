"""mgjit.exp, maximum, where, one_hot, take, dot: on numbers, on Values, in compiled steps, on wrong input."""

from __future__ import annotations

import math
from typing import Any

import pytest

import mgjit
from mgjit import Value
from tests.gradients import assert_gradient

UNARY: dict[str, Any] = {
    "exp": math.exp,
    "log": math.log,
    "tanh": math.tanh,
    "sqrt": math.sqrt,
    "relu": lambda x: max(0.0, x),
}


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("x", [0.3, 1.0, 7, 1e-8])
def test_numbers_and_values_give_what_math_gives(name: str, x: float) -> None:
    function = getattr(mgjit, name)
    assert function(x) == function(Value(x)).data == UNARY[name](x)
    assert isinstance(function(x), (int, float))
    assert isinstance(function(Value(x)), Value)


@pytest.mark.parametrize("name", [*UNARY, "maximum", "minimum"])
@pytest.mark.parametrize("wrong", [None, "1", [1.0], 1j])
def test_what_is_not_a_number_is_refused(name: str, wrong: Any) -> None:
    function = getattr(mgjit, name)
    with pytest.raises(TypeError):
        function(*([wrong] if name in UNARY else [wrong, 1.0]))
    if name not in UNARY:
        with pytest.raises(TypeError):
            function(1.0, wrong)
        with pytest.raises(TypeError):
            function(Value(1.0), wrong)


@pytest.mark.parametrize(("x", "y"), [(1.0, 2.0), (2.0, 1.0), (1.5, 1.5), (0.0, -0.0), (-0.0, 0.0), (3, 2)])
def test_maximum_and_minimum_are_those_of_python_in_every_mixture(x: float, y: float) -> None:
    for function, python in ((mgjit.maximum, max), (mgjit.minimum, min)):
        for a in (x, Value(x)):
            for b in (y, Value(y)):
                result = function(a, b)
                number = result.data if isinstance(result, Value) else result
                assert math.copysign(1.0, number) == math.copysign(1.0, python(x, y))
                assert number == python(x, y)
                assert isinstance(result, Value) == (isinstance(a, Value) or isinstance(b, Value))


def test_maximum_of_equals_sends_the_gradient_to_the_first() -> None:
    for function in (mgjit.maximum, mgjit.minimum):
        a, b = Value(2.0), Value(2.0)
        function(a, b).backward()
        assert (a.grad, b.grad) == (1.0, 0.0)


def test_where_chooses_and_keeps_numbers_numbers() -> None:
    assert mgjit.where(1 < 2, 3.0, 4.0) == 3.0
    assert mgjit.where(False, 3.0, 4.0) == 4.0
    assert mgjit.where(Value(0.0), 3.0, 4.0) == 4.0
    chosen = mgjit.where(True, Value(3.0), 4.0)
    assert isinstance(chosen, Value)
    assert chosen.data == 3.0


@pytest.mark.parametrize("condition", [True, False])
def test_where_sends_the_gradient_to_what_was_taken(condition: bool) -> None:
    a, b = Value(2.0), Value(3.0)
    mgjit.where(condition, a * 2, b * 2).backward()
    assert (a.grad, b.grad) == ((2.0, 0.0) if condition else (0.0, 2.0))


def test_where_works_undecorated_after_a_step_was_compiled() -> None:
    p, q = Value(1.0), Value(2.0)
    mgjit.compile(backend="python")(lambda x: mgjit.where(p < q, p * x, q))(3.0)
    result = mgjit.where(True, p + q, q)
    result.backward()
    assert (result.data, p.grad, q.grad) == (3.0, 1.0, 1.0)


def test_one_hot() -> None:
    assert mgjit.one_hot(2, 4) == [0.0, 0.0, 1.0, 0.0]
    assert mgjit.one_hot(0.0, 1) == [1.0]


def test_take_looks_up_rows_and_elements() -> None:
    table = [[Value(1.0), Value(2.0)], [Value(3.0), Value(4.0)]]
    row = mgjit.take(table, 1)
    assert [x.data for x in row] == [3.0, 4.0]
    (row[0] * row[1] * mgjit.take([x for x, _ in table], 0)).backward()
    assert [x.grad for line in table for x in line] == [12.0, 0.0, 4.0, 3.0]
    assert mgjit.take([5.0, 6.0], 0) == 5.0
    assert mgjit.take((5.0, 6.0), 1.0) == 6.0


@pytest.mark.parametrize("index", [-1, 3, 10**9, 1.5, math.nan, math.inf, None, "1", [1]])
def test_an_index_that_is_none_is_refused(index: Any) -> None:
    for call in (lambda i: mgjit.one_hot(i, 3), lambda i: mgjit.take([1.0, 2.0, 3.0], i)):
        with pytest.raises((IndexError, TypeError)):
            call(index)


@pytest.mark.parametrize("index", [-1, 3, 1.5, math.nan, math.inf])
def test_an_index_that_is_none_is_refused_by_a_compiled_step_which_changes_nothing(index: Any) -> None:
    table = [Value(1.0), Value(2.0), Value(3.0)]

    @mgjit.compile(backend="python")
    def step(i: Any) -> Any:
        loss = mgjit.take(table, i) * 2
        loss.backward()
        for p in table:
            p.data -= p.grad
        return loss

    assert step(1) == 4.0
    before = [(p.data, p.grad) for p in table]
    with pytest.raises(IndexError, match=r"0 \.\. 2"):
        step(index)
    assert [(p.data, p.grad) for p in table] == before


def test_dot_adds_from_left_to_right() -> None:
    a, b = [0.1, 1e16, -1e16], [1.0, 1.0, 1.0]
    assert mgjit.dot(a, b) == ((0.0 + 0.1) + 1e16) + -1e16
    assert mgjit.dot([], []) == 0.0
    assert mgjit.dot([Value(2.0)], [3]).data == 6.0


@pytest.mark.parametrize(("a", "b"), [([1.0], []), ([], [1.0]), ([1.0, 2.0], [1.0])])
def test_dot_of_different_lengths_is_refused(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match="dot of"):
        mgjit.dot(a, b)


def test_gradient_of_a_composition() -> None:
    def f(a: Value, b: Value, c: Value) -> Any:
        row = mgjit.take([[a, b], [b, c]], 1)
        scores = [mgjit.tanh(mgjit.dot(row, [b, a])), mgjit.exp(a * c), mgjit.sqrt(b * b + 1)]
        top = mgjit.maximum(mgjit.maximum(scores[0], scores[1]), scores[2])
        return mgjit.log(sum(mgjit.exp(s - top) for s in scores)) + mgjit.where(a > b, abs(c), mgjit.relu(-c))

    assert_gradient(f, (0.3, 0.7, -0.4), backend="python")
    assert_gradient(f, (0.9, -0.7, 0.4), backend="c")
