"""Lines about work that takes long: on a terminal, and in the log."""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Iterator

import pytest

from mgjit.base import announced
from mgjit.base.announced import Announced


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The end of a pipe at which what is written to the terminal comes out; nothing is too short to be told of."""
    reading, writing = os.pipe()
    monkeypatch.setattr(announced, "_terminal", lambda: writing)
    monkeypatch.setattr(announced, "PATIENCE", 0.0)
    yield reading
    os.close(reading)
    os.close(writing)


def written(terminal: int, seconds: float) -> str:
    """What comes out within so many seconds."""
    return os.read(terminal, 1000).decode() if select.select([terminal], [], [], seconds)[0] else ""


def test_a_terminal_gets_a_line_while_it_lasts_and_one_at_the_end(terminal: int) -> None:
    with Announced("train_step", "building its code") as one:
        assert written(terminal, 60.0) == "mgjit: train_step: building its code has taken 0 s so far\n"
    assert written(terminal, 0.0).startswith("mgjit: train_step: building its code took ")
    one.end()  # once more, as of a job that is given up
    assert written(terminal, 0.0) == ""


def test_nothing_else_gets_lines_but_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(announced, "PATIENCE", 0.0)
    monkeypatch.setattr(announced.settings.LOGGER, "info", lambda text, *parts: seen.append(text % parts))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert announced._terminal() is None
    with Announced("train_step", "building its code", "took at most"):
        pass
    assert [line.rpartition(" most ")[0] for line in seen] == ["train_step: building its code took at"]


def test_what_is_short_is_silent(terminal: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announced, "PATIENCE", 1000.0)
    with Announced("train_step", "building its code"):
        pass
    assert written(terminal, 0.0) == ""
