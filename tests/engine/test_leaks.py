"""What is recognised as belonging to a trace, what is refused, and what may pass."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import mgjit
from mgjit.engine.leaks import is_traced, leaked, leaked_class, refuse_hidden
from mgjit.errors import LeakError, TraceError
from mgjit.tracing.call.plan import plan_arguments
from mgjit.tracing.tracer.tracer import trace_call


def traced(function: Any) -> list[Any]:
    """What `function(number, value)` returns from inside a trace, as it was there and as it is after it."""
    kept: list[Any] = []
    weight = mgjit.Value(2.0)

    def step(arguments: Any) -> float:
        kept.extend(function(arguments[0], weight))
        return 0.0

    trace_call(step, plan_arguments(["x"], (1.5,), frozenset()), None)
    return kept


def test_01_recognised_inside_and_after() -> None:
    """Numbers and Values of a running trace, and what is left of them."""
    during: list[bool] = []

    def look(x: Any, w: Any) -> list[Any]:
        things = [x, x * 2.0, w * x, mgjit.Value(3.0)]
        during.extend(map(is_traced, things))
        return things

    things = traced(look)
    assert during[:3] == [True] * 3
    assert [is_traced(thing) for thing in things] == [True] * 4


def test_02_other_things_are_not() -> None:
    """Plain numbers, Values and anything else."""
    for thing in (1.0, None, mgjit.Value(1.0), [mgjit.Value(1.0)], "traced_types.x", mgjit.state([1.0]), is_traced):
        assert not is_traced(thing)


def test_03_a_leaked_value_refuses() -> None:
    """Reading and writing its numbers, and what needs them; looking at it is allowed."""
    (value,) = traced(lambda x, w: [mgjit.Value(1.5)])
    assert type(value) is leaked_class(mgjit.Value)
    assert repr(value) == "<a Value that was made inside a compiled step>"
    refused: list[Any] = [
        lambda: value.data, lambda: value.grad, lambda: setattr(value, "data", 1.0), lambda: setattr(value, "grad", 1.0)
    ]  # fmt: skip
    for attempt in refused:
        with pytest.raises(LeakError, match=r"test_leaks\.py:\d+: this Value was made inside"):
            attempt()


def test_04_parameters_are_none_of_them() -> None:
    """A Value from outside is itself again after the trace."""
    (weight,) = traced(lambda x, w: [w])
    assert type(weight) is mgjit.Value
    assert not is_traced(weight)
    assert weight.data == 2.0


def test_05_leaked() -> None:
    """Whatever it is called with, it raises with the place in the user's code."""
    for arguments in ((), (1, "two")):
        with pytest.raises(LeakError, match=r"test_leaks\.py:\d+: a value of an earlier trace"):
            leaked(*arguments)


def hiding(thing: Any) -> list[Any]:
    """Objects with something inside that cannot become a number."""

    def closure() -> Any:
        return thing

    return [
        {thing},
        frozenset([thing]),
        closure,
        SimpleNamespace(part=thing),
        iter([thing]),
        SimpleNamespace(i=iter([])),
    ]


@pytest.mark.parametrize("kind", range(6))
def test_06_hidden(kind: int) -> None:
    """Sets, closures, objects and generators around traced values."""

    def look(x: Any, w: Any) -> list[Any]:
        hidden = hiding(w * x)[kind]
        with pytest.raises(TraceError, match=f"the step returns a {type(hidden).__name__} around traced values"):
            refuse_hidden(hidden)
        return [True]

    assert traced(look) == [True]


def test_07_nothing_hidden() -> None:
    """The same around plain things; classes and numbers."""
    for plain in [*hiding(1.0)[:4], 1.0, None, "text", SimpleNamespace, set(), lambda: 1.0, object()]:
        refuse_hidden(plain)


class Weight(mgjit.Value):
    """With attributes of its own, so that its objects have another layout."""

    def __init__(self, data: float, name: str = "w") -> None:
        super().__init__(data)
        self.name = name


def test_08_values_of_derived_classes_may_be_made_inside_a_step() -> None:
    kept = Weight(0.5)

    @mgjit.compile(backend="python")
    def step(x: float) -> float:
        loss = Weight(0.25, "bias") + kept * x
        kept.grad = 0.0
        loss.backward()
        kept.data -= 0.1 * kept.grad
        return loss.data

    assert [step(1.0), step(1.0)] == [0.75, 0.25 + (0.5 - 0.1)]
    assert step.stats.plain_calls == 0

    (value,) = traced(lambda x, w: [Weight(1.5)])
    assert is_traced(value)
    with pytest.raises(LeakError, match="this Value was made inside"):
        value.data  # noqa: B018
