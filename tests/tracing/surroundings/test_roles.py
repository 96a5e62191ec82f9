"""surroundings/roles.py: which numbers a step may change; every place has one role."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mgjit.tracing.surroundings.places import Attribute
from mgjit.tracing.surroundings.roles import LONGEST_LIST, assign_roles
from mgjit.tracing.surroundings.survey import Survey
from tests.programs.foreign.running import NAMES, loaded, parts


class Layer:
    """A size that `__init__` sets, and weights that a step assigns."""

    def __init__(self) -> None:
        self.size, self.rate, self.calls = 3, 0.5, 0
        self.weights = [0.1, 0.2, 0.3]
        self.sizes = [3, 3]

    def step(self, x: float) -> float:
        total = 0.0
        for k in range(self.size):
            total += self.weights[k] * x * self.rate
        self.weights[0] = total
        self.calls += 1
        return total + len(self.sizes)


def described(layer: Layer, variable: Any = ()) -> tuple[set[str], set[str]]:
    """The single numbers and the lists that may change."""
    roles = assign_roles(Survey(layer.step), variable)
    fields = {f.name for _, found in roles.objects for f in found}
    scalars = {place.describe() for place in roles.scalars} | fields
    return scalars, {place.describe() for place, _ in roles.lists}


def test_01_what_the_code_shows() -> None:
    """Attributes that are assigned outside of `__init__`, and lists beside assignments of elements."""
    scalars, lists = described(Layer())
    assert scalars == {"calls"}
    assert lists == {"Layer.weights"}


def test_02_what_a_trace_or_a_guard_has_shown() -> None:
    """A number that has been seen to change is no constant."""
    layer = Layer()
    scalars, lists = described(layer, {(Layer, "rate"), ("list", id(layer.sizes))})
    assert scalars == {"calls", "rate"}
    assert lists == {"Layer.weights", "Layer.sizes"}


def test_03_long_lists_are_copied() -> None:
    """To compare them at each call would take longer than most steps."""
    table = [0.5] * (LONGEST_LIST + 1)
    assert [place.name for place, _ in assign_roles(Survey(lambda k: table[k]), ()).lists] == ["table"]


@pytest.mark.parametrize("name", NAMES)
def test_04_one_role_for_each_place(name: str, tmp_path: Path) -> None:
    """In the programs that know nothing of mgjit."""
    with loaded(name, tmp_path) as module:
        for step in parts(module)[0]:
            roles = assign_roles(Survey(step), ())
            keys = [place.key for place in roles.scalars]
            keys += [Attribute(thing, f).key for things, fields in roles.objects for thing in things for f in fields]
            keys += [(id(content), None) for _, content in roles.lists]
            assert [key for key, count in Counter(keys).items() if count > 1] == []
            assert all(place in roles.scalars for place in roles.counters)
