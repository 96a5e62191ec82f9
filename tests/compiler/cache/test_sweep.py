"""The limit of a directory: when it is looked through, what is deleted, and what is left alone."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mgjit.base import files
from mgjit.compiler.cache import sweep
from mgjit.compiler.cache.sweep import LEDGER, account, entries, remove_abandoned, temporary_path

NOW = time.time()


def fill(directory: Path, count: int, size: int = 100) -> list[Path]:
    """Files of this size, the first one used longest ago."""
    made = []
    for number in range(count):
        path = directory / f"{number:03d}.so"
        path.write_bytes(bytes(size))
        os.utime(path, (NOW - 5000 + number, NOW - 5000 + number))
        made.append(path)
    return made


def listed(directory: Path, suffix: str = ".so") -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name.endswith(suffix))


def test_01_what_was_used_longest_ago_goes(tmp_path: Path) -> None:
    """Down to 80 % of the limit; other files stay, and count for nothing."""
    fill(tmp_path, 10)
    os.utime(tmp_path / "000.so")
    (tmp_path / "notes.txt").write_bytes(bytes(5000))
    assert sweep.sweep(str(tmp_path), 1000, ".so") == (0, 0)
    assert sweep.sweep(str(tmp_path), 999, ".so") == (3, 300)
    assert listed(tmp_path) == ["000.so", *(f"{number:03d}.so" for number in range(4, 10))]
    assert (tmp_path / "notes.txt").exists()


def test_02_a_sweep_an_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all processes: the ledger knows the time."""
    swept = []
    real = sweep.sweep
    monkeypatch.setattr(sweep, "sweep", lambda *given: swept.append(given) or real(*given))
    now = time.time()
    for minutes in (0, 10, 59, 61, 62, 100, 122):
        monkeypatch.setattr(sweep.time, "time", lambda now=now + 60 * minutes: now)  # type: ignore[misc]
        account(str(tmp_path), 5, 1000, ".so")
    assert len(swept) == 3


def test_03_the_total_of_all_processes_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit there is a sweep at once, and not again before it is exceeded again."""
    swept = []
    fill(tmp_path, 5)
    account(str(tmp_path), 100, 1000, ".so")  # finds the 500 bytes there are
    real = sweep.sweep
    monkeypatch.setattr(sweep, "sweep", lambda *given: swept.append(given) or real(*given))
    for number in range(5, 10):
        (tmp_path / f"{number:03d}.so").write_bytes(bytes(100))
        account(str(tmp_path), 100, 1000, ".so")
    assert not swept
    (tmp_path / "last.so").write_bytes(bytes(100))
    account(str(tmp_path), 100, 1000, ".so")
    assert len(swept) == 1
    assert len(entries(str(tmp_path), ".so")) == 8
    account(str(tmp_path), 100, 1000, ".so")
    assert len(swept) == 1


@pytest.mark.parametrize("content", [b"", b"nonsense", b"1 2\n3\nx", b"\xff" * 50, b"1e999 0\n", b"9999999999999 5\n"])
def test_04_a_damaged_ledger_is_made_again(content: bytes, tmp_path: Path) -> None:
    """By looking through the directory."""
    fill(tmp_path, 3)
    (tmp_path / LEDGER).write_bytes(content)
    account(str(tmp_path), 100, 1000, ".so")
    swept, total = (tmp_path / LEDGER).read_text().split()
    assert abs(float(swept) - time.time()) < 100
    assert total == "300"


@pytest.mark.parametrize("call", ["open", "read", "write", "replace", "unlink", "listdir", "lstat", "close"])
def test_05_a_failure_is_no_failure_of_the_put(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no file stays behind, as far as files can be deleted."""
    fill(tmp_path, 20)

    def broken(*_args: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(files, call, broken)
    account(str(tmp_path), 100, 1000, ".so")
    monkeypatch.undo()
    assert listed(tmp_path, ".tmp") == []
    account(str(tmp_path), 100, 1000, ".so")
    assert len(listed(tmp_path)) == 8


def test_06_two_sweeps_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the other one has deleted is gone for this one as well: together they delete no more than one."""
    fill(tmp_path, 10)
    real = files.unlink

    def unlink(path: str) -> None:
        real(path)
        real(path)  # as if somebody had been faster

    monkeypatch.setattr(files, "unlink", unlink)
    assert sweep.sweep(str(tmp_path), 900, ".so") == (3, 300)
    assert len(listed(tmp_path)) == 7


@pytest.mark.skipif(os.name != "posix", reason="only there a process can be asked for")
def test_07_temporary_files_of_dead_processes(tmp_path: Path) -> None:
    """Those of living ones stay for an hour, of other machines as well, whatever their names are."""
    root = Path(__file__).resolve().parents[3]
    code = "import sys; from mgjit.compiler.cache.sweep import temporary_path; print(temporary_path(sys.argv[1]))"
    words = [sys.executable, "-c", code, str(tmp_path / ("key" * 20 + ".so"))]
    dead = Path(subprocess.run(words, cwd=root, check=True, capture_output=True, text=True).stdout.strip())
    mine = Path(temporary_path(str(tmp_path / "key.so")))
    elsewhere = tmp_path / dead.name.replace(sweep._machine(), "otherone")
    nonsense = tmp_path / ".x.tmp"
    old = tmp_path / ".old.tmp"
    for path in (dead, mine, elsewhere, nonsense, old):
        path.write_text("")
    os.utime(old, (NOW - 4000, NOW - 4000))
    assert remove_abandoned(str(tmp_path)) == 2
    assert sorted(tmp_path.iterdir()) == sorted([mine, elsewhere, nonsense])
    for path in tmp_path.iterdir():
        os.utime(path, (NOW - 4000, NOW - 4000))
    assert remove_abandoned(str(tmp_path)) == 3
