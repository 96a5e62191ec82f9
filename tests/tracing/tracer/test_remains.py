"""tracer/remains.py: nothing of a trace is alive when it has ended, wherever the step has put it."""

from __future__ import annotations

import gc
import math
import threading
from typing import Any

import pytest

import mgjit
from mgjit.base.ffi import PYPY
from mgjit.engine.leaks import Traced
from mgjit.errors import LeakError
from mgjit.tracing.tracer import remains
from tests.tracing.autograd import nodes

pytestmark = pytest.mark.skipif(PYPY, reason="PyPy counts no references")


def alive() -> int:
    gc.collect()
    return sum(isinstance(thing, Traced) for thing in gc.get_objects())


def test_01_garbage_in_cycles_is_no_remainder() -> None:
    """Nodes of a graph that refer to each other die with the trace."""

    class Node:
        def __init__(self, data: Any) -> None:
            self.data, self.me = data, self

    before = alive()
    step = mgjit.compile(lambda x: sum(Node(x * k).data for k in range(20)))
    assert step(1.0) == 190.0
    assert alive() == before


def test_02_what_cannot_be_put_back_is_an_error() -> None:
    """A thread of its own keeps what nothing around the step leads to."""
    inbox: list[Any] = []
    kept: list[Any] = []

    def keep() -> None:
        while not inbox:
            pass
        kept.append(inbox.pop())

    threading.Thread(target=keep, daemon=True).start()

    def step(x: float) -> float:
        inbox.append(x * 2.0)
        while inbox:
            pass
        return x

    with pytest.raises(LeakError, match="a list"):
        mgjit.compile(step)(1.0)
    assert kept == [None]


def test_03_a_failed_step_leaves_nothing() -> None:
    """An error of the user's own: what was changed is put back."""
    state: dict[str, Any] = {"m": 1.0, "log": [1.0]}

    def step(x: float) -> float:
        state["m"] += x
        state["new"] = x
        state["log"].append(x)
        raise KeyError("of the user")

    before = alive()
    with pytest.raises(KeyError, match="of the user"):
        mgjit.compile(step)(1.0)
    assert state == {"m": 1.0, "log": [1.0]}
    assert alive() == before


def test_04_a_trace_itself_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that references tell that all is gone, and nothing is collected where the step makes no cycles."""
    w = [nodes.Closures(0.1 * k) for k in range(4)]

    def step(x: float) -> Any:
        total = [0.0]
        for k, one in enumerate(w):
            one.data -= x * one.data
            total[0] += math.tanh(one.data) if k else one.data
        return total[0]

    def refuse(*_: int) -> None:
        raise AssertionError("something of the trace seems to be alive")

    nodes.Closures(1.0).backward()
    compiled = mgjit.compile(step, cache=False)
    monkeypatch.setattr(remains.gc, "collect", refuse)
    compiled.lower(0.5)


def test_05_classes_are_referred_to_by_their_instances_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of the classes of a trace is no reference, so that nothing is collected."""
    collected: list[tuple[int, ...]] = []
    step = mgjit.compile(lambda x, n: max(0, x) * min(n, 3) + min(x, n))
    monkeypatch.setattr(gc, "collect", lambda *generations: collected.append(generations))
    assert step.lower(1.5, 2) is not None
    monkeypatch.undo()
    assert not collected
    assert step(1.5, 2) == 4.5
