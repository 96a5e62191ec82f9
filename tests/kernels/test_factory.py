"""factory.py: how a trace, its code and a kernel are made."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

import pytest

import mgjit
from mgjit.kernels import factory
from mgjit.tracing.tracer.knowledge import Again


def test_2_traces_that_ask_for_another_one_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is the matter with them; the step is plain Python."""
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    monkeypatch.setattr(factory, "_MOST_TRIES", 5)
    traces = []

    def trace_call(*_: Any) -> NoReturn:
        traces.append(1)
        raise Again

    monkeypatch.setattr(factory, "trace_call", trace_call)
    step = mgjit.compile(lambda x: x * 2.0, background=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert step(1.5) == 3.0
    assert len(traces) == 5
    assert step.stats.plain_reasons == ["5 traces of it have each shown that another one is needed"]
