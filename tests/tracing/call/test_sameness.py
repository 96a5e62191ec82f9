"""`a is b` of arguments in a compiled step: as in plain Python, for any order of calls."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import mgjit
from mgjit import tensor as T


@dataclass
class Point:
    x: float
    y: float


KNOWN = T.ones(2)
NUMBERS = [1.0, 2.0]


def _same(a: Any, b: Any) -> Any:
    return a[0] * (2.0 if a is b else 1.0) + (10.0 if a is not b else 20.0)


def _number(result: Any) -> float:
    return float(result)


def compared(step: Callable[..., Any], calls: Any, **options: Any) -> Any:
    """Calls of the step, compiled and not, have equal results; returns the compiled step."""
    compiled: Any = mgjit.compile(background=False, **options)(step)
    assert [_number(compiled(*call)) for call in calls] == [_number(step(*call)) for call in calls]
    return compiled


@pytest.mark.parametrize(
    "make",
    [lambda: T.asarray([1.0, 2.0]), lambda: [1.0, 2.0], lambda: (1.0, 2.0), lambda: array("d", [1.0, 2.0])],
    ids=["tensor", "list", "tuple", "array"],
)
def test_01_the_same_object_twice(make: Callable[[], Any]) -> None:
    """Also after calls with different ones, and again in the generated call."""
    x, y = make(), list(make()) if isinstance(make(), list) else make()
    if isinstance(x, tuple):
        y = tuple([1.0, 2.0][:])
        assert x is not y
    step = compared(_same, [(x, y), (x, x), (y, y), (x, y)] * 40)
    assert step.stats.traces <= 4
    assert step.stats.plain_calls == 0


def test_02_parts_of_containers() -> None:
    """Elements of lists and dicts, fields of dataclasses, rows, and whole containers."""

    def step(batch: Any, point: Any) -> Any:
        total = batch["x"][0][0] + batch["y"][0][1]
        total = total * (3.0 if batch["x"] is batch["y"] else 1.0)
        total = total * (5.0 if batch["x"][0] is batch["y"][0] else 1.0)
        return total + (0.5 if batch["p"] is point else 0.25) * point.x

    row, other = [1.0, 2.0], [1.0, 2.0]
    rows, p, q = [row, other], Point(1.0, 2.0), Point(1.0, 2.0)
    batches = [{"x": rows, "y": y, "p": p} for y in (rows, [row, other], [other, row])]
    compared(step, [(batch, point) for batch in batches for point in (p, q)] * 3)


@pytest.mark.parametrize("known", [KNOWN, NUMBERS], ids=["tensor", "list"])
def test_03_an_argument_and_an_object_that_the_step_captures(known: Any) -> None:
    """The step that only reads it takes it as an input, like any other."""

    def step(a: Any) -> Any:
        return a[0] * (2.0 if a is KNOWN or a is NUMBERS else 1.0)

    other = T.ones(2) if isinstance(known, T.Tensor) else [1.0, 2.0]
    compared(step, [(known,), (other,), (known,)] * 10)


def test_04_many_patterns() -> None:
    """Each is a structure of its own."""

    def step(rows: Any) -> Any:
        different: list[Any] = []
        for row in rows:
            if all(row is not one for one in different):
                different.append(row)
        return sum([row[0] for row in different], 0.0) * len(different)

    x, y, z = [1.0, 2.0], [2.0, 3.0], [3.0, 4.0]
    patterns = [[x, y, z], [x, x, y], [x, y, x], [y, x, x], [x, x, x], [z, y, x], [y, y, x]]
    assert compared(step, [(rows,) for rows in patterns * 2]).stats.traces < 20


def test_05_rows_of_loop() -> None:
    """Some rows may have the same object twice."""
    x, y = T.asarray([1.0, 2.0]), T.asarray([3.0, 4.0])
    step = mgjit.compile(_same, background=False)
    step(x, y)
    step(x, x)
    firsts, seconds = [x, x, y, y], [x, y, y, x]
    expected = [_number(_same(a, b)) for a, b in zip(firsts, seconds)]
    assert [_number(result) for result in step.loop(firsts, seconds)] == expected


def test_06_a_chain_and_what_python_calls() -> None:
    """`a is b is c`; methods of the user's classes."""

    class Net:
        def __init__(self) -> None:
            self.anchor = T.ones(2)

        def score(self, x: Any) -> Any:
            return x.sum() * (1.0 if x is self.anchor else -1.0)

    net = Net()

    def step(a: Any, b: Any, c: Any) -> Any:
        return net.score(a) + (100.0 if a is b is c else 0.0)

    x = T.ones(2)
    compared(step, [(x, x, x), (x, net.anchor, x), (net.anchor, x, x), (x, x, net.anchor)] * 3)


@pytest.mark.filterwarnings("ignore::mgjit.errors.BackendWarning")
def test_07_the_id_of_an_argument_is_left_to_plain_python() -> None:
    """It is another number in each call."""

    def step(a: Any, b: Any) -> Any:
        return a[0] * len({id(a), id(b)})

    x, y = [1.0, 2.0], [3.0, 4.0]
    compiled = compared(step, [(x, y), (x, x), (y, y)])
    assert "id() of an argument" in str(compiled.stats.plain_reasons)


def test_08_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison with plain Python sees the same pattern."""
    monkeypatch.setenv("MGJIT_VERIFY", "always")
    x, y = T.asarray([1.0, 2.0]), T.asarray([3.0, 4.0])
    step = compared(_same, [(x, x), (x, y)] * 4)
    assert step.stats.compared_calls
    assert not step.stats.mismatches


def test_09_what_is_compared_with_types_and_constants_asks_nothing() -> None:
    """There is no question, hence no other kernel."""

    def step(a: Any, b: Any = None) -> Any:
        return a[0] * (2.0 if b is None or type(a) is list else 1.0)

    x = [1.0, 2.0]
    compiled = compared(step, [(x,), (x, x), ([2.0, 3.0], x)])
    assert not compiled._kernels.maker.knowledge.questions
