"""The hook: nothing is recorded without it, the traced thread's operations are, other threads compute."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import mgjit
from mgjit.engine import hook
from mgjit.tracing.call.plan import plan_arguments
from mgjit.tracing.tracer.tracer import trace_call


class Recording:
    """Notes the names of the operations of a thread."""

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.seen: list[str] = []
        names = ("__add__", "__mul__", "data", "data =", "grad", "state", "state =")
        self.methods = {name: lambda *_, name=name: self.seen.append(name) for name in names}


def operate(value: Any, state: Any) -> None:
    """One operation of each name."""
    value + value
    value * 2.0
    value.data  # noqa: B018
    value.data = 7.0
    value.grad  # noqa: B018
    state[0]
    state[0] = 7.0


@pytest.mark.parametrize("mine", [True, False])
def test_01_whose_operations_are_recorded(monkeypatch: pytest.MonkeyPatch, mine: bool) -> None:
    """Those of the thread that the recording names, instead of being computed."""
    value, state = mgjit.Value(1.0), mgjit.state([1.0])
    recording = Recording(threading.get_ident() + (not mine))
    monkeypatch.setattr(hook, "recording", recording)
    operate(value, state)
    monkeypatch.setattr(hook, "recording", None)
    assert recording.seen == (["__add__", "__mul__", "data", "data =", "grad", "state", "state ="] if mine else [])
    assert value.data == state[0] == (1.0 if mine else 7.0)


def test_02_only_during_a_trace() -> None:
    """None before and after, also after an error of the user; this thread's in between."""
    seen: list[Any] = []

    def step(arguments: Any) -> float:
        seen.append(hook.recording.thread)
        if len(seen) > 1:
            raise KeyError("the user's")
        return 0.0

    plan = plan_arguments(["x"], (1.5,), frozenset())
    assert hook.recording is None
    trace_call(step, plan, None)
    assert hook.recording is None
    with pytest.raises(KeyError):
        trace_call(step, plan, None)
    assert hook.recording is None
    assert seen == [threading.get_ident()] * 2
