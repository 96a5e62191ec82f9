"""Footguns of memory: captured numbers and objects that change, aliases, zeros, infinities, sums, deep graphs."""

# The lambdas are the steps under test; a step is a function, whatever it calls.
# ruff: noqa: PLW0108

from __future__ import annotations

import math
import random
from typing import Any, Callable

import pytest

import mgjit
from mgjit import Value, nn
from tests.refusals import BACKENDS, bits, both

pytestmark = [
    pytest.mark.keeps_traced,  # steps that let values of their trace escape
]

RATE = 0.5


@pytest.fixture
def w() -> Value:
    """A parameter of 2.0."""
    return Value(2.0)


# ---- captured numbers and objects ------------------------------------------------------------


def test_20_global_changed(w: Value) -> None:
    """A global learning rate that is assigned is seen, and the report says what changed."""
    global RATE

    def step(x: float) -> Any:
        return w * x * RATE

    compiled = mgjit.compile(step)
    try:
        assert compiled(3.0) == 3.0
        RATE = 2.0
        assert compiled(3.0) == 12.0
        assert "RATE" in compiled.stats.retraces[0]
        RATE = -0.0
        assert bits(compiled(3.0)) == bits(-0.0)
    finally:
        RATE = 0.5
    assert compiled(3.0) == 3.0


def test_21_closure_rebound(w: Value) -> None:
    """A closure variable that is assigned is seen, number or object."""
    rate, model = 0.5, nn.Neuron(2, nonlin=False)

    @mgjit.compile
    def step(x: list[float]) -> Any:
        return model(x) * rate

    x = [1.0, 2.0]
    assert step(x) == (model(x) * rate).data
    rate = 4.0
    assert step(x) == (model(x) * rate).data
    model = nn.Neuron(2, nonlin=False, generator=random.Random(8))
    assert step(x) == (model(x) * rate).data
    assert ["rate" in step.stats.retraces[0], "model" in step.stats.retraces[1]] == [True, True]


def test_22_a_function_redefined(w: Value) -> None:
    """A helper that is defined again, as in a notebook, is seen."""

    def helper(x: Any) -> Any:
        return x * 2.0

    step = mgjit.compile(lambda x: helper(w * x))
    assert step(1.0) == 4.0

    def helper(x: Any) -> Any:  # noqa: F811
        return x * 3.0

    assert step(1.0) == 6.0
    assert "helper" in step.stats.retraces[0]


def test_23_a_step_that_counts_its_calls(w: Value) -> None:
    """A captured number that the step itself changes: traced at every call, and right."""
    calls = 0

    @mgjit.compile
    def step(x: float) -> Any:
        nonlocal calls
        calls += 1
        return w * x * calls

    assert [float(step(1.0)) for _ in range(4)] == [2.0, 4.0, 6.0, 8.0]
    assert all("calls" in reason for reason in step.stats.retraces)


class Settings:
    """An object with a number that steps read."""

    rate = 0.5


def test_24_number_in_a_captured_container(w: Value) -> None:
    """A number in a captured dict, list or object is seen when it changes, or refused; never silently old."""
    table, items, holder = {"rate": 0.5}, [0.5], Settings()
    steps: list[tuple[str, Callable[[float], Any], Callable[[], None]]] = [
        ("dict", lambda x: w * x * table["rate"], lambda: table.update(rate=4.0)),
        ("list", lambda x: w * x * items[0], lambda: items.__setitem__(0, 4.0)),
        ("attribute", lambda x: w * x * holder.rate, lambda: setattr(holder, "rate", 4.0)),
        ("class", lambda x: w * x * Settings.rate, lambda: setattr(Settings, "rate", 4.0)),
    ]
    stale = []
    for name, plain, change in steps:
        step = mgjit.compile(plain)
        step(1.0)
        try:
            change()
            if step(1.0) != plain(1.0).data:
                stale.append(name)
        finally:
            Settings.rate = 0.5
    assert stale == []


def test_25_number_of_self(w: Value) -> None:
    """`self.rate` of a method is seen when it changes."""

    class Trainer:
        def __init__(self) -> None:
            self.rate = 0.5

        @mgjit.compile
        def step(self, x: float) -> Any:
            return w * x * self.rate

    trainer = Trainer()
    assert trainer.step(1.0) == 1.0
    trainer.rate = 4.0
    assert trainer.step(1.0) == 8.0


def test_26_parameter_replaced_in_a_model() -> None:
    """A Value that takes the place of another in a model is used after step.clear() (see surroundings/guard.py)."""
    model = nn.Neuron(2, nonlin=False)
    step = mgjit.compile(lambda x: model(x))
    step([1.0, 2.0])
    model.w[0] = Value(10.0)
    step.clear()
    assert step([1.0, 2.0]) == model([1.0, 2.0]).data


def test_27_default_arguments(w: Value) -> None:
    """A default is an argument like any other: a run-time input."""

    def plain(x: float, rate: float = 0.5) -> Any:
        return w * x * rate

    step = mgjit.compile(plain)
    assert [float(step(1.0)), float(step(1.0, 2.0)), float(step(1.0, rate=3.0))] == [1.0, 4.0, 6.0]
    assert step.stats.traces == 1


# ---- memory ------------------------------------------------------------


@BACKENDS
def test_40_aliasing(backend: str) -> None:
    """Numbers read before an assignment keep their old value, however often memory changes afterwards."""

    def make() -> tuple[Callable[..., Any], list[Value]]:
        a, b = Value(1.25), Value(-2.5)

        def step(x: float) -> Any:
            old, old_grad = a.data, a.grad
            a.data = b.data
            b.data = old + x
            older = a.data
            (a * b * x).backward()
            a.data, b.data = b.data, a.data
            a.grad = old_grad + a.grad
            return old, older, a.data - old, b.grad

        return step, [a, b]

    both(make, (0.25,), (0.5,), (-1.0,), backend=backend)


@BACKENDS
def test_41_state_aliasing(backend: str) -> None:
    """The same for State elements."""

    def make() -> tuple[Callable[..., Any], list[Value]]:
        s, w = mgjit.state([1.0, 2.0, 3.0]), Value(0.5)

        def step(x: float) -> Any:
            first = s[0]
            s[0], s[1] = s[1], s[0] + x
            s[-1] = first * s[-1]
            return (w * s[0] + s[1] * s[2], first, *s)

        return step, [w]

    both(make, (0.25,), (3.0,), backend=backend)


@BACKENDS
def test_42_the_same_operand_twice(backend: str) -> None:
    """`a + a`, `a * a`, `a - a`: both operands get their gradient, in order."""

    def make() -> tuple[Callable[..., Any], list[Value]]:
        a = Value(0.3)

        def step(x: float) -> Any:
            b = a * x
            loss = (a + a) * (b * b) + (b - b) + mgjit.maximum(b, b) + (b + b) * (a + b)
            loss.backward()
            return loss, b.grad

        return step, [a]

    both(make, (0.7,), (-1.1,), backend=backend)


@BACKENDS
def test_43_no_backward(backend: str) -> None:
    """A step without a backward pass leaves gradients alone."""

    def make() -> tuple[Callable[..., Any], list[Value]]:
        a = Value(0.3)
        a.grad = 7.0
        return (lambda x: a * x + 1.0), [a]

    both(make, (0.7,), (1.0,), backend=backend)


@BACKENDS
def test_44_loss_independent_of_a_parameter(backend: str) -> None:
    """Its gradient is 0, also when zero_grad is what sets it, and parameters update with it."""

    def make() -> tuple[Callable[..., Any], list[Value]]:
        a, b = Value(0.3), Value(-0.4)
        b.grad = 5.0

        def step(x: float) -> Any:
            a.grad = b.grad = 0.0
            unused = b * math.inf
            loss = a * x
            loss.backward()
            for p in (a, b):
                p.data -= 0.1 * p.grad
            return loss, unused

        return step, [a, b]

    both(make, (0.7,), (1.0,), backend=backend)


@BACKENDS
def test_45_nan_and_infinity_flow_through(backend: str) -> None:
    """As in Python: nothing is clipped, skipped or folded away; relu of nan is nan."""

    def make() -> tuple[Callable[..., Any], list[Value]]:
        a = Value(0.5)

        def step(x: float, y: float) -> Any:
            a.grad = 0.0
            loss = (a * x).relu() + (a - y) * 0.0 + mgjit.maximum(a * y, x) + mgjit.where(y > x, a * y, a)
            loss.backward()
            return loss, x * 0.0, x - y, -x, a.grad

        return step, [a]

    inf, nan = math.inf, math.nan
    both(
        make, (inf, 1.0), (-inf, 1.0), (nan, 1.0), (1.0, nan), (0.0, -0.0), (-0.0, inf), (5e-324, inf), backend=backend
    )


@BACKENDS
def test_46_deep_and_wide(backend: str) -> None:
    """A chain of 3,000 operations and a value with 3,000 uses: no recursion limit anywhere."""

    def make() -> tuple[Callable[..., Any], list[Value]]:
        a = Value(0.999)

        def step(x: float) -> Any:
            a.grad = 0.0
            y = a * x
            for _ in range(3000):
                y = y * a + 0.001
            for k in range(3000):
                y = y + a * (0.001 * k)
            y.backward()
            return y

        return step, [a]

    both(make, (0.7,), backend=backend)


def test_47_compensated_sum(w: Value) -> None:
    """`sum` of floats is compensated since Python 3.12; a traced one follows the interpreter that it runs under."""

    def make() -> tuple[Callable[..., Any], list[Value]]:
        a = Value(0.5)

        def step(xs: list[float], start: float) -> Any:
            return a * sum(xs), sum(xs), sum(xs, start), sum(x * x for x in xs), sum(xs[:1]), sum([start, 1, *xs])

        return step, [a]

    both(make, ([1.0, 1e100, 1.0, -1e100], 0.1), ([0.1] * 3 + [1e-17], -0.0), ([math.inf, 1.0, 2.0, -1.0], 1e16))
    both(make, ([0.1] * 10, 0.1))


@BACKENDS
def test_47b_sum_takes_its_items_one_by_one(backend: str) -> None:
    """Terms that a generator computes are created between the additions; the order of gradients depends on it."""

    def make() -> tuple[Callable[..., Any], list[Value]]:
        a = Value(0.3)

        def step(x: float, ws: list[float]) -> Any:
            h = a * x
            loss = sum(h * w if k % 2 else h for k, w in enumerate(ws))
            loss.backward()
            return loss, h.grad

        return step, [a]

    draw = random.Random(1)
    both(make, *[(0.7, [draw.uniform(-1.0, 1.0) for _ in range(9)]) for _ in range(50)], backend=backend)


def test_48_sum_of_integers_and_floats(w: Value) -> None:
    """Python sums ints exactly and floats in floats; a number of the step is a float from the beginning."""
    step = mgjit.compile(lambda xs: sum(xs) * w)
    assert step([1, 2, 3]) == 12.0
    assert step([1, 2.5, 3]) == 13.0
    assert step([4, 5.5, 6]) == 31.0
    assert step.stats.traces <= 2  # from Python 3.12 on, sum() treats ints and floats differently


def test_49_division_by_zero(w: Value) -> None:
    """Documented: compiled arithmetic never raises; it gives what IEEE 754 says."""
    step = mgjit.compile(lambda x, y: (x / y, w / y, mgjit.log(x), mgjit.exp(x)))
    assert [float(x) for x in step(1.0, -0.0)][:2] == [-math.inf, -math.inf]
    assert math.isnan(step(0.0, 0.0)[0])
    assert [float(x) for x in step(0.0, 1.0)][2] == -math.inf
    assert step(1000.0, 1.0)[3] == math.inf
