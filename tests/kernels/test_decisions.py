"""What a step decides is told by the logger, where MGJIT_LOG asks for that."""

from __future__ import annotations

import logging

import pytest

import mgjit
from mgjit import Value


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if ", call " in record.getMessage()]


@pytest.mark.usefixtures("quick_compiler")
@pytest.mark.filterwarnings("ignore::mgjit.errors.PlainWarning")
def test_each_decision_is_a_line_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("MGJIT_LOG", "1")
    monkeypatch.delenv("MGJIT_REFUSE")
    w, texts = Value(2.0), [""]

    def step(x: object) -> object:
        if isinstance(x, list):
            texts[0] = f"{x[0]:.2f}"
            return 0.0
        return w * x

    compiled = mgjit.compile(background=False)(step)
    with caplog.at_level(logging.INFO, "mgjit"):
        for _ in range(3):
            compiled(1.0)
        for _ in range(3):
            compiled([1.0])
    kinds = [line.split(": ")[1] for line in told(caplog)]
    assert kinds == ["trace", "kernel", "trace", "trace in vain", "plain"]
    assert told(caplog)[1].startswith("step, call 1: kernel: for (x: number), ")
    assert "no digits to print" in told(caplog)[-1]


def test_nothing_is_told_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mgjit"):
        mgjit.compile(background=False)(lambda x: x)(1.0)
    assert told(caplog) == []
