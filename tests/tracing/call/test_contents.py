"""Changes of containers are seen by their contents before and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from mgjit.tracing.autograd.chosen import Gatherer
from mgjit.tracing.call.contents import contents, has_grown
from mgjit.tracing.record.recorder import Recorder
from mgjit.tracing.record.values import traced_types


@dataclass
class Box:
    parts: list[Any]


@pytest.fixture
def numbers() -> Callable[[int], list[Any]]:
    types = traced_types(Recorder(), Gatherer())
    return lambda count: [types.input_number(k) for k in range(count)]


@pytest.mark.parametrize("change", [
    lambda x: x.__setitem__(1, 2.0),
    lambda x: x.__setitem__(1, x[0]),
    lambda x: x.reverse(),
    lambda x: x.append(x[0]),
    lambda x: x.append(1.0),
    lambda x: x.clear(),
    lambda x: x.__setitem__(0, [x[0]]),
])  # fmt: skip
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("around", [lambda x: x, lambda x: [x, [x]], lambda x: {"a": x}, Box])
def test_what_has_changed(
    numbers: Callable[[int], list[Any]], change: Callable[[Any], Any], mixed: bool, around: Callable[[Any], Any]
) -> None:
    x = [*numbers(3), *(["text"] if mixed else [])]
    argument = around(x)
    before, length = contents(argument), len(x)
    assert contents(argument) == before
    assert not has_grown(before, contents(argument))
    change(x)
    assert contents(argument) != before
    assert has_grown(before, contents(argument)) == (len(x) != length)


def test_other_numbers_are_others(numbers: Callable[[int], list[Any]]) -> None:
    assert contents(numbers(3)) != contents(numbers(3))
    assert not has_grown(contents(numbers(3)), contents([1.0, 2.0, 3.0]))
    assert has_grown(contents(numbers(3)), contents([1.0, 2.0]))
