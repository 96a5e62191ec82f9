"""The functions of one number: on numbers, Values and tensors, in compiled steps of every back end."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import Value
from mgjit import tensor as T
from mgjit.base.ffi import PYPY
from mgjit.engine.elementary import ELEMENTARY
from tests.compiler.codegen.mathematics.lanes import same
from tests.gradients import assert_gradient
from tests.workload import BACKENDS, missing

#: What each function is, from the functions of `math`, where there is no overflow.
EXACTLY: dict[str, Callable[[float], float]] = {
    "log1p": math.log1p,
    "softplus": lambda x: max(x, 0.0) + math.log(1.0 + math.exp(-abs(x))),
    "erf": math.erf,
}
#: Inside of where all of them are defined.
POINTS = (0.0, -0.0, 0.3, -0.3, 0.7, -0.9, 1.5, 3, 1e-9, -1e-9, 5e-324, 40.0)
SPECIAL = (math.inf, -math.inf, math.nan, -1.0, -2.0, 1e308, -1e308, 800.0, -800.0)
#: PyPy computes erf in its own way, so that such steps run as plain Python.
COMPILED = [name for name in ELEMENTARY if not (PYPY and name == "erf")]


@pytest.mark.parametrize("name", ELEMENTARY)
def test_numbers_values_and_tensors_have_the_same_bits(name: str) -> None:
    function = getattr(mgjit, name)
    for x in POINTS:
        exact = EXACTLY[name](x)
        assert same(function(x), exact)
        assert same(function(Value(x)).data, exact)
        assert isinstance(function(x), float)
    found = function(T.asarray([float(x) for x in POINTS])).tolist()
    if name == "erf":  # of tensors it is the same on every interpreter
        assert all(abs(a - function(x)) < 5e-16 for a, x in zip(found, POINTS))
    else:
        assert all(same(a, function(x)) for a, x in zip(found, POINTS))


@pytest.mark.parametrize("name", ELEMENTARY)
def test_nothing_is_raised(name: str) -> None:
    function = getattr(mgjit, name)
    tensors = function(T.asarray(SPECIAL)).tolist()
    for x, of_tensor in zip(SPECIAL, tensors):
        value = Value(x)
        found = function(value)
        found.backward()
        assert same(found.data, function(x))
        assert same(found.data, of_tensor) or (name == "erf" and abs(found.data - of_tensor) < 5e-16)


@pytest.mark.parametrize("name", ELEMENTARY)
@pytest.mark.parametrize("x", [0.3, -0.4, 2.5])
def test_gradients_are_those_of_differences(name: str, x: float) -> None:
    function = getattr(mgjit, name)
    assert_gradient(function, (x,))
    assert_gradient(lambda a, b: function(a * b) * a + function(b), (x, 0.7))


@pytest.mark.parametrize("wrong", [None, "1", [1.0], 1j])
def test_what_is_no_number_is_refused(wrong: Any) -> None:
    for name in ELEMENTARY:
        with pytest.raises(TypeError, match=name):
            getattr(mgjit, name)(wrong)


def _example(name: str) -> tuple[list[Value], Callable[..., Any]]:
    function, weights = getattr(mgjit, name), [Value(0.3), Value(-0.2), Value(0.5)]

    def step(x: float, n: int, more: list[float]) -> Any:
        for w in weights:
            w.grad = 0.0
        hidden = [function(w * x) for w in weights]
        loss = sum(h * h for h in hidden) + function(x) + function(n) * weights[0] + function(weights[1])
        loss = loss + function(weights[2].data) * weights[0] + sum(function(a) for a in more)
        loss.backward()
        for w in weights:
            w.data -= 0.1 * w.grad
        return loss, function(x), function(n), hidden[0].data

    return weights, step


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("backend", ["python", "gcc", "clang -O2", "tcc"])
def test_compiled_steps_have_the_bits_of_plain_ones(name: str, backend: str) -> None:
    if missing(backend):
        pytest.skip(f"no {missing(backend)}")
    calls = [(0.4, 2, [0.1, 0.2]), (-0.3, 0, [0.5, -0.5]), (1.25, 7, [3.0, 0.0]), (0.0, 1, [-0.0, 1e-9])]
    plain, plain_step = _example(name)
    compiled, compiled_step = _example(name)
    step = mgjit.compile(**BACKENDS[backend])(compiled_step)
    for call in calls:
        expected, found = plain_step(*call), step(*call)
        assert same(expected[0].data, float(found[0]))
        assert all(same(a, b) for a, b in zip(expected[1:], found[1:]))
        assert all(same(p.data, q.data) and same(p.grad, q.grad) for p, q in zip(plain, compiled))
    assert step.stats.plain_calls == 0


@pytest.mark.parametrize("name", COMPILED)
def test_where_a_result_is_infinite_the_step_goes_on_as_plain_python_does(name: str) -> None:
    plain, plain_step = _example(name)
    compiled, compiled_step = _example(name)
    step = mgjit.compile(compiled_step)
    for call in [(0.4, 2, [0.1, 0.2]), (-1.0, 2, [0.1, -1.0]), (800.0, 2, [math.inf, -2.0]), (math.nan, 0, [0.0, 0.0])]:
        expected, found = plain_step(*call), step(*call)
        assert same(expected[0].data, float(found[0]))
        assert all(same(a, b) for a, b in zip(expected[1:], found[1:]))
        assert all(same(p.data, q.data) and same(p.grad, q.grad) for p, q in zip(plain, compiled))


@pytest.mark.parametrize("name", COMPILED)
def test_data_that_change_between_do_not_change_the_derivative(name: str) -> None:
    """It is that of the number which the function was computed of, as in plain Python."""
    function = getattr(mgjit, name)

    def make() -> tuple[Value, Callable[[float], Any]]:
        w = Value(0.3)

        def step(x: float) -> Any:
            w.grad = 0.0
            found = function(w)
            w.data = x
            found.backward()
            return found

        return w, step

    (p, plain), (q, compiled) = make(), make()
    step = mgjit.compile(compiled)
    for x in (0.5, 0.25, 0.125):
        assert same(plain(x).data, float(step(x)))
        if ELEMENTARY[name].derivative:
            assert same(p.grad, q.grad)


@pytest.mark.parametrize("name", COMPILED)
def test_rows_and_float32(name: str) -> None:
    function = getattr(mgjit, name)
    for dtype in ("float64", "float32"):
        w, v = Value(0.25), Value(0.25)

        def step(x: float, w: Value = w) -> Any:
            w.grad = 0.0
            loss = function(w * x)
            loss.backward()
            w.data -= 0.125 * w.grad
            return loss

        one = mgjit.compile(dtype=dtype)(step)
        many = mgjit.compile(dtype=dtype)(lambda x, v=v: step(x, v))
        xs = [0.5, 0.25, 1.5, 0.75]
        results = [float(one(x)) for x in xs]
        rows = [float(x) for x in many.loop(xs)]
        assert all(same(a, b) for a, b in zip(results, rows))
        assert same(w.data, v.data)
