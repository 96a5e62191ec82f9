"""Sizes, ages and other people's texts."""

from __future__ import annotations

import io
import sys

import pytest

from mgjit.cli.text import age_text, printable, size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (3 << 19, "1.5 MiB"),
        (1 << 30, "1.0 GiB"),
        (5 << 50, "5120.0 TiB"),
    ],
)
def test_01_sizes(size: int, text: str) -> None:
    """In the units that MGJIT_CACHE_SIZE takes."""
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0 s"), (0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min"), (7300, "2 h"), (86400 * 400, "400 d")],
)
def test_02_ages(seconds: float, text: str) -> None:
    """In one unit, never rounded up; a clock that went back makes nothing negative."""
    assert age_text(seconds) == text


def test_03_what_the_stream_cannot_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is escaped."""
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert printable("é/a\udcff") == "\\xe9/a\\udcff"
