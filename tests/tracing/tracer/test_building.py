"""tracer/building.py: what a step builds and leaves is there after a call, as plain Python leaves it."""

from __future__ import annotations

import warnings
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

import mgjit
from mgjit.kernels import factory
from tests.fuzz.building import looked_at

Record = namedtuple("Record", "x h")


@dataclass
class Cache:
    x: Any
    h: Any


class Thing:
    def __init__(self, x: Any, h: Any) -> None:
        self.x, self.h = x, h


def doubled(x: Any) -> Any:
    return [v * 2.0 for v in x]


def two_names(net: Any, x: Any) -> Any:
    net.a = net.b = doubled(x)
    return net.a


def in_one_another(net: Any, x: Any) -> Any:
    h = doubled(x)
    net.a = (x, h)
    net.b = {"h": h, "both": net.a, "n": len(h)}
    return h, net.b


def objects(net: Any, x: Any) -> Any:
    net.a = [Cache(x, x[0] * 2.0), Thing(x[1], doubled(x)), Record(x, [x[0]])]
    return net.a[0].h


def filled_anew(net: Any, x: Any) -> Any:
    net.acts.clear()
    for k in range(3):
        net.acts.append([v * k for v in x])
    return sum(net.acts[1])


def an_element(net: Any, x: Any) -> Any:
    net.pair[0] = (x[0] * 3.0, doubled(x))
    net.w[0] += net.pair[0][1][0]
    return net.w[0]


def entries(net: Any, x: Any) -> Any:
    net.table["h"] = [doubled(x) for _ in range(2)]
    net.table["n"] += 1
    return sum(net.table["h"][0])


def changed_afterwards(net: Any, x: Any) -> Any:
    net.a = [0.0] * len(x)
    net.b = [[0.0] * 2 for _ in x]
    for k, v in enumerate(x):
        net.a[k] += v * net.w[0]
        net.b[k][1] -= v
    return net.a[0]


def ints_and_flags(net: Any, x: Any) -> Any:
    net.a = (x[0] > 0.0, len(x), int(x[1]), None, "text", 1.5)
    net.b = x[0] > 1.0
    return x[0]


STEPS: list[Callable[[Any, Any], Any]] = [
    two_names, in_one_another, objects, filled_anew, an_element, entries, changed_afterwards, ints_and_flags,
]  # fmt: skip


def net() -> Any:
    return SimpleNamespace(a=None, b=None, acts=[[0.0]], pair=[None, 1.0], table={"h": None, "n": 0}, w=[0.5, 1.5])


@pytest.mark.parametrize("function", STEPS, ids=[function.__name__ for function in STEPS])
def test_01_as_plain_python(function: Callable[[Any, Any], Any]) -> None:
    """With which names mean one object, also of arguments, and of what was there in the call before."""
    mine, theirs = net(), net()
    step = mgjit.compile(lambda x: function(mine, x), backend="python")
    before: tuple[list[Any], list[Any]] = [], []
    for k in range(6):
        xs = [0.5 + k, -1.5], [0.5 + k, -1.5]
        found, wanted = step(xs[0]), function(theirs, xs[1])
        assert looked_at([mine, xs[0], found, before[0]], {}) == looked_at([theirs, xs[1], wanted, before[1]], {})
        for one, kept in zip((mine, theirs), before):
            kept += [one.a, one.pair[0], one.table["h"]]
    assert step.stats.plain_calls <= 1
    assert len(step.stats.retraces) <= 1  # where the first call finds a list of another length


def test_02_what_is_read_is_not_out_of_sight() -> None:
    """Its type, its length, whether it is there: such a step has no place that it builds."""
    asks: list[Callable[[Any], Any]] = [
        lambda a: a is None, lambda a: a is not None, bool, lambda a: len(a or ()), lambda a: isinstance(a, tuple),
        lambda a: type(a) is tuple, lambda a: a == 1.0, str, lambda a: [a][0] is None, lambda a: a in (1, None),
    ]  # fmt: skip
    for ask in asks:
        mine, theirs = net(), net()

        def plain(one: Any, x: float, ask: Callable[[Any], Any] = ask) -> Any:
            was = ask(one.a)
            one.a = (x, x * 2.0)
            return was, x

        step = mgjit.compile(lambda x, one=mine, plain=plain: plain(one, x), backend="python", refuse="plain")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for k in range(5):
                assert step(0.5 * k) == plain(theirs, 0.5 * k)
                assert mine.a == theirs.a


def test_03_rows_of_a_loop() -> None:
    """The last row leaves its own."""
    mine, theirs = net(), net()
    rows = [[0.5 * k, 1.0] for k in range(20)]
    step = mgjit.compile(lambda x: in_one_another(mine, x)[0], backend="python")
    step.loop(rows)
    for row in rows:
        in_one_another(theirs, row)
    assert looked_at([mine], {}) == looked_at([theirs], {})


def test_04_the_program_puts_something_else_there() -> None:
    mine, theirs = net(), net()
    step = mgjit.compile(lambda x: filled_anew(mine, x), backend="python")
    for k in range(6):
        for one in (mine, theirs):
            one.a = [9.0]
            if k == 3:
                one.acts.append(1.0)
        assert step([1.0, 0.5 * k]) == filled_anew(theirs, [1.0, 0.5 * k])
        assert looked_at([mine], {}) == looked_at([theirs], {})


def test_places_that_mean_the_same_are_found_to_be_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tuples of a list, of a dict, and of objects of a class: three traces of a call, not one for each of them."""
    traces = []
    trace_call = factory.trace_call
    monkeypatch.setattr(factory, "trace_call", lambda *given: traces.append(given) or trace_call(*given))
    in_list, in_dict = [(0.5 * k, 1.0) for k in range(20)], {k: (0.5 * k, 1.0) for k in range(20)}
    objects = [Thing((0.5 * k, 1.0), None) for k in range(20)]

    def moved(x: Any, v: Any, dt: Any) -> Any:
        return x + dt * (v - 0.5 * x), v - 0.5 * x

    def step_of_list(dt: float) -> None:
        for k, both in enumerate(in_list):
            in_list[k] = moved(*both, dt)

    def step_of_dict(dt: float) -> None:
        for k in in_dict:
            in_dict[k] = moved(*in_dict[k], dt)

    def step_of_objects(dt: float) -> None:
        for each in objects:
            each.x = moved(*each.x, dt)

    for step in (step_of_list, step_of_dict, step_of_objects):
        before = len(traces)
        compiled = mgjit.compile(step, background=False)
        compiled(0.1)
        compiled(0.1)
        assert (compiled.stats.calls, len(traces) - before <= 4) == (2, True)
    assert in_list == list(in_dict.values()) == [each.x for each in objects]
    assert in_list[4] == moved(*moved(2.0, 1.0, 0.1), 0.1)


def test_7_lists_that_change_places_are_left_to_python_at_once() -> None:
    """That one of them is read shows when the step has ended."""
    rows = [[0.1 * k, 1.0] for k in range(4)]
    one, other = rows[:2]

    def step(x: float) -> float:
        rows[0], rows[1] = rows[1], rows[0]
        return rows[0][0] * x

    compiled = mgjit.compile(step, background=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [compiled(2.0), compiled(3.0), compiled(4.0)] == [0.2, 0.0, 0.4]
    assert (rows[0] is other, rows[1] is one) == (True, True)
