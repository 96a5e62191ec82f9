"""Huge pages for large arrays: that the system is asked for them, and for what."""

from __future__ import annotations

import sys
from array import array
from pathlib import Path
from typing import Any

import pytest

from mgjit.base import ffi
from mgjit.runtime import pages
from mgjit.runtime.pages import SIZE, use_huge_pages

pytestmark = pytest.mark.skipif(ffi.PYPY, reason="CPython's arrays")


def asked(monkeypatch: pytest.MonkeyPatch, buffer: Any) -> list[tuple[int, int, int]]:
    """What the system is asked for."""
    found: list[tuple[int, int, int]] = []
    monkeypatch.setattr(pages, "_advise", lambda: lambda *words: found.append(words))
    use_huge_pages(buffer)
    return found


@pytest.mark.parametrize("kind", "df")
def test_01_whole_pages_within_the_array(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Never a byte of another object."""
    numbers = array(kind, bytes(3 * SIZE + 8))
    begin, count = numbers.buffer_info()
    words = asked(monkeypatch, numbers) + asked(monkeypatch, memoryview(numbers))
    assert len(words) == 4
    for first, length, _ in words:
        assert first % SIZE == length % SIZE == 0
        assert length >= 2 * SIZE
        assert begin <= first < first + length <= begin + count * numbers.itemsize


def test_02_what_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays and views without a whole huge page, and nothing at all."""
    for buffer in (array("d", [0.0]), memoryview(array("d", bytes(4 * SIZE)))[:9], None):
        assert asked(monkeypatch, buffer) == []


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").is_dir() or not sys.platform.startswith("linux"),
    reason="the system has no huge pages",
)
def test_03_the_system_is_told() -> None:
    """The numbers stay, and the memory is marked."""
    numbers = array("d", range(4 * SIZE // 8))
    use_huge_pages(numbers)
    assert numbers == array("d", range(4 * SIZE // 8))
    middle = numbers.buffer_info()[0] + 2 * SIZE
    marked = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        word = line.split()[0]
        if "-" in word and ":" not in word:
            low, high = (int(part, 16) for part in word.split("-"))
            is_here = low <= middle < high
        elif word == "VmFlags:" and is_here:
            marked = "hg" in line.split()
    assert marked
