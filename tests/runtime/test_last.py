"""What `step.stats.last` says after calls of all kinds."""

from __future__ import annotations

import re
import warnings
from collections.abc import Hashable
from typing import Any

import pytest

import mgjit
from mgjit.engine.leaks import PlainCall, is_traced
from mgjit.kernels.first_calls.earnings import Earnings, Waiting


def test_a_step_that_was_never_called() -> None:
    step = mgjit.compile(lambda x: 2.0 * x)
    assert step.stats.last.made_by == ""
    assert str(step.stats.last) == "there has been no call"
    assert step.lower(1.0).explain().startswith("There has been no call.\n")


def test_a_kernel_and_its_tier() -> None:
    step = mgjit.compile(lambda x: 2.0 * x)
    for count in range(1, 5):  # the last ones by the fast path
        step(1.0)
        last = step.stats.last
        assert (last.made_by, last.kernel, last.reason) == ("kernel", "(x: number)", "")
        assert step.stats.calls == count
    assert last.tier == step.stats.compiler
    said = step.lower(1.0).explain().splitlines()[0]
    assert said == f"The last call was compiled: the kernel for (x: number), {last.tier}."


def test_generated_python() -> None:
    step = mgjit.compile(backend="python")(lambda x: 2.0 * x)
    step(1.0)
    assert step.stats.last.tier == "generated Python"


def test_plain_calls_between_compiled_ones() -> None:
    def function(x: float, flag: bool) -> Any:
        if flag and is_traced(x):
            raise PlainCall("it is a test")
        return 2 * x

    step, found = mgjit.compile(function), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for flag in (False, True, True, False, True, False, False):
            step(1.0, flag)
            found.append(step.stats.last.made_by)
    p, k = "plain Python", "kernel"
    assert found == [k, p, p, k, p, k, k]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step(1.0, True)
    assert step.stats.last.reason == "it is a test"
    assert step.lower(1.0, False).explain().startswith("The last call was plain Python: it is a test.\n")


def test_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGJIT_REFUSE")

    @mgjit.compile
    def step(x: float) -> float:
        while x > 4.0:
            x = 0.5 * x
        return float(f"{x:.1f}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step(8.0)
    assert not step.stats.last.is_waiting
    assert re.search(r"test_last.py:\d+: a traced value has no digits", step.stats.last.reason)


def test_calls_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGJIT_BACKGROUND", "1")

    def require(self: Earnings, key: Hashable, *_: Any, **__: Any) -> None:
        raise Waiting(key)

    monkeypatch.setattr(Earnings, "require", require)
    step = mgjit.compile(lambda x: 2.0 * x)
    step(1.0)
    assert step.stats.last.is_waiting
    too_few = "there have been too few calls like it for compiling to pay"
    assert str(step.stats.last) == f"the last call was plain Python: {too_few}"


def test_a_loop() -> None:
    step = mgjit.compile(lambda x: 2.0 * x)
    step.loop([1.0, 2.0, 3.0])
    assert step.stats.last.made_by == "kernel"


def test_printed_stats_say_how_calls_were_made() -> None:
    step = mgjit.compile(lambda xs: 2.0 * sum(xs))
    step([1.0])
    step([1.0, 2.0])
    told = str(step.stats)
    assert told.startswith("2 compiled calls, 0 plain ones before their code was there, 0 plain ones for another")
    assert "\ntraced again: xs was " in told
    assert told.endswith(step.stats.table())
