"""Work is told without a clock, and what branches is looked at early: refusals come at the same call in every run."""

from __future__ import annotations

import math
import sys
import warnings
from typing import Any

import pytest

import mgjit
from mgjit.base.ffi import PYPY
from mgjit.errors import PlainWarning
from mgjit.kernels.first_calls import effort
from mgjit.kernels.first_calls.earnings import Earnings
from mgjit.tensor.memory import Memory


@pytest.fixture(autouse=True)
def of_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """The defaults of users."""
    monkeypatch.delenv("MGJIT_REFUSE")
    monkeypatch.setenv("MGJIT_BACKGROUND", "1")
    monkeypatch.setattr("mgjit.kernels.first_calls.earnings._FIRST_SECONDS", 0.1)
    monkeypatch.setattr(Memory, "exists", False)  # steps over tensors are traced at their first call


def lines(count: int) -> float:
    total = 0.0
    for k in range(count):
        total += k
    return total


def test_lines_are_counted_the_same_every_time() -> None:
    found: list[float] = []
    for _ in range(3):
        assert effort.counted(lambda: lines(100), found.append) == lines(100)
    assert found[0] == found[1] == found[2]
    assert 100 * 50e-9 < found[0] < effort.LONG
    assert sys.gettrace() is None


def test_long_calls_are_not_counted_to_the_end() -> None:
    found: list[float] = []
    effort.counted(lambda: lines(1_000_000), found.append)
    assert found[0] >= effort.LONG


def test_who_traces_is_left_alone() -> None:
    found: list[float] = []
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        effort.counted(lambda: lines(3), found.append)
        assert sys.gettrace() is not None
    finally:
        sys.settrace(before)
    assert found == []


def test_an_exception_leaves_no_tracer() -> None:
    def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        effort.counted(fail, lambda seconds: None)
    assert sys.gettrace() is None


def test_the_first_trace_comes_at_a_call_that_no_clock_decides() -> None:
    found = []
    for seconds in (1e-6, 1e-4, 5e-4):  # as measured
        earnings = Earnings()
        assert earnings.calls_to_first("a") == math.inf
        earnings.effort = 1e-4
        earnings.note_plain("a", seconds, 1)
        found.append(earnings.calls_to_first("a"))
        earnings.note_plain("a", seconds, int(found[-1]) - 1)
        assert not earnings._may_pay(earnings._account("a"))
        earnings.note_plain("a", seconds, 1)
        assert earnings._may_pay(earnings._account("a"))
    assert found == [1009] * 3


@pytest.mark.skipif(PYPY, reason="the first seconds of calls are not traced")
def test_what_branches_is_said_at_the_second_call() -> None:
    def function(x: float) -> float:
        while x > 4.0:
            x = 0.5 * x
        return float(f"{x:.1f}")

    assert effort.may_be_refused(function)
    step, said = mgjit.compile(function), []
    for number in range(4):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert step(8.0) == 4.0
        said += [number for one in caught if one.category is PlainWarning]
    assert said == [1]
    assert not effort.may_be_refused(function)


def test_what_branches_and_can_be_traced_waits_like_others() -> None:
    def function(x: float, kept: Any = None) -> float:
        if kept is None:
            x = x * 2.0
        return x

    step = mgjit.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [step(x) for x in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]
    assert (step.stats.traces, step.stats.plain_calls, step.stats.waiting_calls) == (0, 0, 3)


def test_loops_do_not_branch() -> None:
    assert not effort.may_be_refused(lambda xs: [2.0 * x for x in xs])
