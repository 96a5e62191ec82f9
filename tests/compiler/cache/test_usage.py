"""Counts of all processes: they add up, and damage costs counts only."""

from __future__ import annotations

import errno
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mgjit.base import files
from mgjit.compiler.cache import usage
from mgjit.compiler.cache.usage import Usage, append, compact, read


def made(hits: int = 2) -> Usage:
    return Usage(hits=hits, misses=1, puts=1, corrupt=0, hits_of=Counter({"key-one": hits}))


def test_01_lines_add_up(tmp_path: Path) -> None:
    """Of events and of keys."""
    assert read(str(tmp_path)) == Usage()
    for hits in (2, 3):
        append(str(tmp_path), made(hits))
    assert read(str(tmp_path)) == Usage(5, 2, 2, 0, Counter({"key-one": 5}))


@pytest.mark.parametrize(
    "line", [b"", b"\xff\xfe", b"[1, 2]", b"{}", b'[{"hits": "x"}, {}]', b"[" * 100_000, b'[{"hits": 1e999}, {}]']
)
def test_02_lines_that_make_no_sense(line: bytes, tmp_path: Path) -> None:
    """Are left out, the others count."""
    append(str(tmp_path), made())
    with open(tmp_path / usage.NAME, "ab") as file:
        file.write(line + b"\n")
    append(str(tmp_path), made())
    assert read(str(tmp_path)).hits == 4


def test_03_compact_keeps_the_sum(tmp_path: Path) -> None:
    """In one line, without the keys that are gone."""
    for _ in range(10):
        append(str(tmp_path), made())
    compact(str(tmp_path))
    assert (tmp_path / usage.NAME).read_bytes().count(b"\n") == 1
    assert read(str(tmp_path)) == Usage(20, 10, 10, 0, Counter({"key-one": 20}))
    compact(str(tmp_path), frozenset())
    assert read(str(tmp_path)) == Usage(20, 10, 10, 0)
    assert os.listdir(tmp_path) == [usage.NAME]


def test_04_the_file_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many processes there were."""
    monkeypatch.setattr(usage, "_MUCH", 500)
    for _ in range(100):
        append(str(tmp_path), made())
    assert (tmp_path / usage.NAME).stat().st_size < 700
    assert read(str(tmp_path)).hits == 200


@pytest.mark.parametrize("call", ["open", "read", "write", "replace", "unlink"])
def test_05_compact_fails_quietly(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts may be lost, nothing else."""
    append(str(tmp_path), made())

    def broken(*_args: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(files, call, broken)
    compact(str(tmp_path))
    monkeypatch.undo()
    append(str(tmp_path), made())
    assert read(str(tmp_path)).hits in (2, 4)


def test_06_threads_count() -> None:
    """No event is lost."""
    total = Usage()

    def count() -> None:
        for _ in range(2000):
            total.count("hits", "key")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total == Usage(hits=8000, hits_of=Counter({"key": 8000}))


def test_07_what_is_new() -> None:
    """Counts can be taken away again."""
    total = made(5)
    total.merge(made(5), -1)
    assert total.is_empty()
    assert b"key" not in total.line()
