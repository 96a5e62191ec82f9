"""Functions of math and Python's own that are called by another name than theirs: they are compiled, as are their
successors."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

import mgjit

squash = math.tanh
TABLE = {"tanh": math.tanh, "size": abs, "exp": math.exp}
LAYERS = [(0.5, math.tanh), (-0.25, math.sin)]


class Unit:
    shape = math.tanh  # of the class: builtins are not bound

    def __init__(self, activation: Callable[[float], float]) -> None:
        self.weight, self.activation = 0.5, activation

    def __call__(self, x: float) -> float:
        return self.activation(self.weight * x)

    def shaped(self, x: float) -> float:
        return self.shape(self.weight * x)


def apply(function: Callable[[float], float], x: float) -> float:
    return function(x)


def with_default(x: float, function: Callable[[float], float] = math.cos) -> float:
    return function(x)


def chosen(name: str) -> Callable[[float], float]:
    return math.tanh if name == "tanh" else math.exp


def in_attribute(unit: Unit, x: float) -> float:
    return unit(x)


def in_class(unit: Unit, x: float) -> float:
    return unit.shaped(x)


def in_global(unit: Unit, x: float) -> float:
    return squash(unit.weight * x)


def in_local(unit: Unit, x: float) -> float:
    f, g = math.tanh, max
    return g(f(unit.weight * x), 0.1)


def in_dict(unit: Unit, x: float) -> float:
    return TABLE["tanh"](unit.weight * x) + TABLE["size"](x)


def in_list(unit: Unit, x: float) -> float:
    for weight, function in LAYERS:
        x = function(weight * x * unit.weight)
    return x


def as_argument(unit: Unit, x: float) -> float:
    return apply(math.tanh, unit.weight * x) + apply(abs, x)


def as_default(unit: Unit, x: float) -> float:
    return with_default(unit.weight * x)


def returned(unit: Unit, x: float) -> float:
    return chosen("tanh")(unit.weight * x)


def in_closure(unit: Unit, x: float) -> float:
    f = math.cos

    def inner(y: float) -> float:
        return f(y)

    return inner(unit.weight * x)


STEPS = [in_attribute, in_class, in_global, in_local, in_dict, in_list, as_argument, as_default, returned, in_closure]


def trained(step: Callable[[Unit, float], float], unit: Unit, x: float) -> float:
    error = step(unit, x) - 0.3
    unit.weight -= 0.1 * error * x
    return error


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_1_steps_that_call_them_are_compiled(step: Any) -> None:
    unit, other, numbers = Unit(math.tanh), Unit(math.tanh), random.Random(1)
    compiled: Any = mgjit.compile(lambda unit, x: trained(step, unit, x), background=False, refuse="error")
    for _ in range(20):
        x = numbers.uniform(-2.0, 2.0)
        assert compiled(unit, x) == trained(step, other, x)
    assert compiled.stats.calls > 15
    assert unit.weight == other.weight


def test_2_another_function_in_its_place_is_called() -> None:
    """It may be one that is replaced, or the user's own, or an object."""
    others = [math.tanh, math.sin, abs, lambda x: x * x, functools.partial(max, 0.25), Unit(math.exp), math.tanh]
    unit, other, numbers = Unit(math.tanh), Unit(math.tanh), random.Random(1)
    compiled: Any = mgjit.compile(lambda unit, x: trained(in_attribute, unit, x), background=False)
    for function in others:
        unit.activation = other.activation = function  # type: ignore[assignment]
        for _ in range(6):
            x = numbers.uniform(-2.0, 2.0)
            assert compiled(unit, x) == trained(in_attribute, other, x)
        assert unit.weight == other.weight
    assert compiled.stats.calls > 15
