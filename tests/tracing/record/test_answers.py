"""Answers: what a step is told about numbers in a trace, and what a kernel tests of it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.errors import PlainWarning

TABLE = {0: 0.5, 1: 0.25, 2: 2.0}
WEIGHT = mgjit.Value(0.75)


def _gradient(x: float) -> Any:
    WEIGHT.data, WEIGHT.grad = 0.75, 0.0
    loss = (WEIGHT * x).tanh().exp() - WEIGHT * WEIGHT
    loss.backward()
    n = 0
    while abs(WEIGHT.grad) > 0.2:
        WEIGHT.grad *= 0.5
        n += 1
    return WEIGHT.grad, n, loss.data


def _kept(x: float) -> Any:
    found = []
    for y in (x, -x, 2.0 * x):
        found.append(y)
        if not y > -0.5:
            break
    return found


def _handled(x: float) -> Any:
    try:
        if x > 0.0:
            raise ValueError
        return x
    except ValueError:
        return 2.0 * x


STEPS: dict[str, Callable[[float], Any]] = {
    "a loop until a number is small": lambda x: next(k for k in range(20) if abs(x) * 0.5**k < 0.1),
    "a key of a dict": lambda x: TABLE[int(abs(x) * 2.5) % 3],
    "a slice": lambda x: [1.0, 2.0, 3.0][: round(abs(x) * 2.0)],
    "a length": lambda x: [x] * int(abs(x) * 3.0),
    "a number in a list": lambda x: 0.5 in (x, 2.0 * x),
    "a place in a list": lambda x: [0.25, x, 1.0].index(max(x, 0.25, 1.0)),
    "the greatest by a key": lambda x: max(range(4), key=lambda k: (k - 1.5 - x) ** 2),
    "the first of equal ones": lambda x: (max(range(3), key=lambda k: 0.0 * x), min(range(3), key=lambda k: x - x)),
    "an order": lambda x: sorted((x, 0.3, -0.2, 2.0 * x)),
    "an order by a key": lambda x: sorted("abc", key={"a": x, "b": 0.3, "c": x * x}.get),  # type: ignore[arg-type]
    "an order of pairs": lambda x: sorted([(x, 1), (0.3, 2), (0.3, 1)]),
    "a list that sorts itself": lambda x: (found := [x, 0.3, -x], found.sort())[0],
    "what an engine's gradient says": _gradient,
    "what was found so far": _kept,
    "what is raised and handled": _handled,
    "a floor": lambda x: "abcd"[math.floor(x) % 4],
}


@pytest.mark.parametrize("name", STEPS)
def test_1_as_plain_python(name: str) -> None:
    """All of them are compiled."""
    step = mgjit.compile(background=False, backend="python")(STEPS[name])
    draw = random.Random(1)
    for x in (0.5, -0.5, 0.25, *(draw.uniform(-1.5, 1.5) for _ in range(12))):
        assert repr(step(x)) == repr(STEPS[name](x))
    assert step.stats.plain_calls == 0


def test_2_what_was_read_before_it_changed() -> None:
    """An answer is about the number as it was."""
    state = mgjit.state([1.0])

    def function(x: float) -> Any:
        before = state[0]
        state[0] = x
        first = "more" if before > 1.5 and print(end="") is None else "less"
        return first, [5.0, 6.0, 7.0][int(before)], state[0]

    step = mgjit.compile(background=False, backend="python")(function)
    found = [step(x) for x in (2.0, 0.5, 1.0, 2.0, 2.0)]
    state[0] = 1.0
    assert found == [function(x) for x in (2.0, 0.5, 1.0, 2.0, 2.0)]
    assert step.stats.plain_calls == 0


def test_3_more_than_there_may_be() -> None:
    """A step that goes on for very long is plain."""

    @mgjit.compile(background=False)
    def step(x: float) -> int:
        n = 0
        while n * x < 3000.0:
            n += 1
        return n

    with pytest.warns(PlainWarning, match="more than 1000 numbers on its way"):
        assert step(1.0) == 3000


def test_4_of_a_test_whose_sides_cannot_be_computed() -> None:
    """The answer decides where one of them draws."""
    one, other = random.Random(1), random.Random(1)

    def function(draw: random.Random, x: float) -> float:
        return draw.random() if x > 0.0 else x

    step = mgjit.compile(background=False, backend="python")(lambda x: function(one, x))
    for x in (0.5, -0.5, 0.25, -1.0, 1.0):
        assert step(x) == function(other, x)
    assert one.getstate() == other.getstate()
    assert (len(step._kernels), step.stats.plain_calls) == (2, 0)
