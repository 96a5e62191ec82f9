"""tracer/aftermath.py: what a step does besides computing: memory after all, an error, or a plain call."""

from __future__ import annotations

import warnings
from collections import OrderedDict, deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import mgjit
from mgjit.errors import LeakError, SideEffectWarning

#: What the step assigns, where it is, and whether kernels can do it.
NUMBERS: dict[str, tuple[Any, Callable[[Any, float], Any], bool]] = {
    "an entry of a dict": ({"m": 0.0}, lambda w, x: w.update(m=w["m"] + x), True),
    "an entry of an OrderedDict": (OrderedDict(m=0.0), lambda w, x: w.update(m=w["m"] + x), True),
    "an attribute by setattr": (SimpleNamespace(m=0.0), lambda w, x: setattr(w, "m", w.m + x), True),
    "an attribute by vars": (SimpleNamespace(m=0.0), lambda w, x: vars(w).update(m=w.m + x), True),
    "an element by a method": ([0.0], lambda w, x: w.__setitem__(0, w[0] + x), True),
    "an element of a deque": (deque([0.0]), lambda w, x: w.__setitem__(0, w[0] + x), False),
    "a list in a tuple": (([0.0],), lambda w, x: w[0].__setitem__(0, w[0][0] + x), True),
    "an int": ({"n": 0}, lambda w, x: w.update(n=w["n"] + 1), True),
    "a flag": ({"on": False}, lambda w, x: w.update(on=not w["on"]), False),
    "a text": ({"name": "a"}, lambda w, x: w.update(name=w["name"] + "a"), False),
    "a log": ([], lambda w, x: w.append("called"), True),
    "a stack": ([], lambda w, x: w.insert(0, "called"), False),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_01_what_the_step_changes(name: str) -> None:
    """As plain Python; by a kernel where the place can be memory."""
    place, change, by_kernel = NUMBERS[name]

    def made() -> tuple[Any, Any]:
        import copy

        w = copy.deepcopy(place)

        def step(x: float) -> float:
            change(w, x)
            return x * 2.0

        return w, step

    theirs, plain = made()
    mine, undecorated = made()
    step = mgjit.compile(undecorated, backend="python")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SideEffectWarning)
        for x in (1.0, -0.5, 3.0, 0.25, 7.0):
            assert step(x) == plain(x)
            assert repr(mine) == repr(theirs)
    assert (step.stats.plain_calls == 0) is by_kernel


def test_02_a_plain_call_is_said_when_it_stays_so() -> None:
    """Not for what happens once."""
    log: list[str] = []

    @mgjit.compile(backend="python")
    def step(x: float) -> float:
        log.insert(0, "called")
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(1.0)
        step(1.0)
    with pytest.warns(SideEffectWarning, match="the variable log"):
        step(1.0)
    assert log == ["called"] * 3
    assert "the variable log" in step.stats.plain_reasons[0]


def test_03_objects_of_the_trace_that_are_kept() -> None:
    """An error with the place; nothing stays there."""
    w = mgjit.Value(2.0)
    kept: dict[str, Any] = {"last": None, "all": []}

    def replaced(x: float) -> Any:
        kept["last"] = w * x
        return x

    def added(x: float) -> Any:
        kept["all"].append([w * x])
        return x

    for step, place in ((replaced, r"kept\['last'\]"), (added, r"kept\['all'\]")):
        with pytest.raises(LeakError, match=place):
            mgjit.compile(step, backend="python")(1.0)
    assert kept == {"last": None, "all": []}


class Vector(list):  # type: ignore[type-arg]
    """Of a class of the user's."""


def test_a_list_of_another_class_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It might do anything; the message says so, and that a list in its place is compiled."""
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)

    def trained(w: list[float]) -> Any:
        def step(x: float) -> float:
            error = w[0] * x + w[1] - 1.0
            w[0] -= 0.01 * error * x
            w[1] -= 0.01 * error
            return error

        compiled = mgjit.compile(step, background=False)
        for k in range(9):
            compiled(0.1 * k)
        return compiled.stats

    with pytest.warns(SideEffectWarning, match="changes elements of the variable w, a Vector"):
        assert trained(Vector([0.5, -0.5])).calls == 0
    assert trained([0.5, -0.5]).calls == 9
