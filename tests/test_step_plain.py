"""Calls that run as plain Python, because a trace has found that a kernel cannot do what they do."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import pytest

import mgjit
from mgjit.base import garbage
from mgjit.engine.leaks import PlainCall, is_traced
from mgjit.errors import PlainWarning, UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore::mgjit.errors.BackendWarning")


def _plain_where_traced(x: Any) -> None:
    if is_traced(x):
        raise PlainCall("it is a test")


def test_such_a_call_gives_what_python_gives_and_changes_what_it_changes() -> None:
    weights = [1.0, 2.0]

    @mgjit.compile
    def step(x: float) -> float:
        weights[0] += x
        _plain_where_traced(x)
        return weights[0]

    assert [step(1.0), step(2.0), step(3.0)] == [2.0, 4.0, 7.0]
    assert weights == [7.0, 2.0]
    assert step.stats.plain_calls == 3
    assert step.stats.calls == 0
    assert step.stats.plain_reasons == ["it is a test"]


def test_the_reason_is_a_warning_once() -> None:
    @mgjit.compile
    def step(x: float) -> float:
        _plain_where_traced(x)
        return x

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(20):
            step(float(k))
    assert [(w.category, str(w.message)) for w in caught] == [(PlainWarning, "step runs as plain Python: it is a test")]


@pytest.mark.parametrize("fresh", [False, True])
def test_it_is_traced_again_now_and_then(fresh: bool) -> None:
    @mgjit.compile
    def step(x: float, thing: object) -> float:
        _plain_where_traced(x)
        return x

    seen = []
    kept = object()
    for k in range(100):
        step(float(k), object() if fresh else kept)
        seen.append(step.stats.plain_calls)
    assert seen == list(range(1, 101))
    assert 2 <= sum(known.traces for known in step._kernels.plain._structures.values()) <= 8


def test_other_arguments_are_compiled() -> None:
    @mgjit.compile
    def step(x: float, flag: bool) -> float:
        if flag:
            _plain_where_traced(x)
        return 2 * x

    assert [step(1.0, True), step(1.0, False), step(2.0, False)] == [2.0, 2.0, 4.0]
    assert step.stats.plain_calls == 1
    assert step.stats.calls == 2


@pytest.mark.skipif(not hasattr(gc, "get_threshold"), reason="this Python has no thresholds")
def test_the_garbage_collector_runs_rarely_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """And as often as before between the calls."""
    usual, seen = gc.get_threshold(), []
    monkeypatch.setattr(garbage, "_USUAL", {usual})

    @mgjit.compile
    def step(x: float) -> float:
        seen.append(gc.get_threshold())
        _plain_where_traced(x)
        return 2.0 * x

    assert step(1.0) == 2.0
    assert step(2.0) == 4.0
    assert seen[-1] == garbage._IN_A_CALL
    assert gc.get_threshold() == usual


def test_loops_run_row_by_row() -> None:
    @mgjit.compile
    def step(x: float) -> float:
        _plain_where_traced(x)
        return 2 * x

    assert list(step.loop([1.0, 2.0, 3.0])) == [2.0, 4.0, 6.0]


def test_exceptions_have_no_context_of_ours() -> None:
    @mgjit.compile
    def step(x: float) -> float:
        _plain_where_traced(x)
        raise KeyError("mine")

    with pytest.raises(KeyError) as raised:
        step(1.0)
    assert raised.value.__context__ is None


@pytest.mark.parametrize("phase", ["forward", "lower"])
def test_what_needs_a_kernel_says_why_there_is_none(phase: str) -> None:
    @mgjit.compile
    def step(x: float) -> float:
        _plain_where_traced(x)
        return x

    with pytest.raises(UnsupportedError, match="it is a test"):
        getattr(step, phase)(1.0)
