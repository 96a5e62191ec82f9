"""Debuggers see plain calls; tools that only measure see what there is."""

from __future__ import annotations

import bdb
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.base.ffi import PYPY
from mgjit.errors import PlainWarning
from mgjit.runtime.vectorcall import extension
from mgjit.tracing.source.debugging import is_debugged


@pytest.fixture(autouse=True)
def goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGJIT_REFUSE")


@pytest.fixture
def no_tracer() -> Iterator[None]:
    """Whatever measures the tests."""
    before = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(before)


def iter_frames(frame: Any) -> Iterator[Any]:
    """A frame and those that have called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def test_1_while_a_debugger_is_at_work_calls_are_plain(no_tracer: None) -> None:
    lines: list[int] = []
    depths: list[int] = []

    def tracer(frame: Any, event: str, argument: Any) -> Any:
        lines.extend([frame.f_lineno] if event == "line" and frame.f_code is function.__code__ else [])
        if event == "call" and frame.f_code is function.__code__:
            stack = [one.f_code.co_name for one in iter_frames(frame)]
            depths.append(stack.index("test_1_while_a_debugger_is_at_work_calls_are_plain"))
        return tracer

    def function(x: float) -> float:
        y = 2.0 * x
        return y + 1.0

    step = mgjit.compile(function)
    assert step.__code__ is function.__code__  # of which pdb's `break step` looks for the first line
    assert step(1.0) == 3.0
    sys.settrace(tracer)
    try:
        assert is_debugged()
        assert step(2.0) == 5.0
        assert step.loop([1.0, 2.0]).tolist() == [3.0, 5.0]
    finally:
        sys.settrace(None)
    first = function.__code__.co_firstlineno
    assert lines == [first + 1, first + 2] * 3
    assert depths[0] <= 4  # frames between the step and its caller, which `where` shows
    assert step.stats.calls == 1
    assert step(3.0) == 7.0
    assert step.stats.calls == 2


@pytest.mark.parametrize("in_c", [False, True])
def test_1_a_debugger_that_begins_beside_quick_calls(
    in_c: bool, no_tracer: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension, "make", None)
    monkeypatch.setattr(extension, "is_possible", in_c and extension.is_possible)
    extension.obtain()
    lines: list[int] = []

    def tracer(frame: Any, event: str, argument: Any) -> Any:
        lines.extend([frame.f_lineno] if event == "line" and frame.f_code is function.__code__ else [])
        return tracer

    def function(x: float) -> float:
        return 2.0 * x

    step = mgjit.compile(background=False)(function)
    for number in range(100):
        assert step(float(number)) == 2.0 * number
    compiled = step.stats.calls
    sys.settrace(tracer)
    try:
        assert step(3.0) == 6.0
    finally:
        sys.settrace(None)
    assert lines == [function.__code__.co_firstlineno + 1]
    assert step.stats.calls == compiled
    assert step(4.0) == 8.0
    assert len(lines) == 1


@pytest.mark.skipif(PYPY, reason="the tracer would be one of Python")
def test_1_a_tool_that_measures_is_no_debugger(no_tracer: None) -> None:
    class Collector:
        def trace(self, frame: Any, event: str, argument: Any) -> Any:
            return self.trace

    Collector.__module__ = "coverage.pytracer"
    step = mgjit.compile(lambda x: 2.0 * x)
    sys.settrace(Collector().trace)
    try:
        assert not is_debugged()
        assert [step(x) for x in (1.0, 2.0)] == [2.0, 4.0]
    finally:
        sys.settrace(None)
    assert step.stats.calls == 2


def asks(x: float) -> float:
    breakpoint()
    return 2.0 * x


def sets_a_trace(x: float) -> float:
    import pdb

    pdb.set_trace()
    return 2.0 * x


@pytest.mark.parametrize("function", [asks, sets_a_trace])
def test_2_a_step_that_stops_for_a_debugger_is_plain(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[str] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stops.append("breakpoint"))
    monkeypatch.setattr(bdb.Bdb, "set_trace", lambda *_: stops.append("set_trace"))
    step = mgjit.compile(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [step(x) for x in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]
    assert len(stops) == 3
    (warned,) = caught
    assert warned.category is PlainWarning
    assert function is sets_a_trace or f"{__file__}:" in str(warned.message)  # pytest has a set_trace of its own
    assert re.search(r"it stops for a debugger|set_trace\(\)", str(warned.message))


SCRIPT = """
import random, mgjit
from mgjit import nn
random.seed(0)
model = nn.MLP(2, [2, 1])
@mgjit.compile
def step(x):
    loss = model(x) ** 2
    model.zero_grad()
    loss.backward()
    breakpoint()
    for p in model.parameters():
        p.data -= 0.01 * p.grad
    return loss
for k in range(3):
    print("loss", step([1.0, float(k)]).data)
"""


@pytest.mark.parametrize("as_module", [False, True])
def test_2_pdb_is_used_as_ever(as_module: bool, tmp_path: Path) -> None:
    """Interactively, with the numbers of the step; or a script that runs under pdb."""
    file = tmp_path / "script.py"
    env, told = {**os.environ, "PYTHONPATH": str(Path(mgjit.__file__).parents[1])}, {}
    for decorator in ("", "@mgjit.compile"):
        file.write_text(SCRIPT.replace("@mgjit.compile", decorator))
        command = [sys.executable, "-W", "ignore", *(["-m", "pdb"] if as_module else []), str(file)]
        typed = "c\n" * as_module + "p loss.data\nn\np p.grad\nc\np loss.data\nc\np loss.data\nc\nq\n"
        run = subprocess.run(command, input=typed, capture_output=True, text=True, check=False, env=env)
        told[decorator] = run.stdout
        assert "mgjit" + "/" not in run.stdout + run.stderr
    assert told[""] == told["@mgjit.compile"]
    assert told[""].count("loss 0.") == 3


def test_profilers_change_nothing(no_tracer: None) -> None:
    calls: list[str] = []
    model = nn.MLP(2, [2, 1])
    step = mgjit.compile(lambda x: model([x, x]))
    wanted = [float(model([x, x]).data) for x in (1.0, 2.0, 3.0)]
    sys.setprofile(lambda frame, event, argument: calls.append(event))
    try:
        found = [float(step(x)) for x in (1.0, 2.0, 3.0)]
    finally:
        sys.setprofile(None)
    assert found == wanted
    assert calls
