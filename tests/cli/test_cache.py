"""`python -m mgjit cache`: what it shows, what it finds, what it deletes, and its exit codes."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mgjit.base import files, settings
from mgjit.cli.main import main
from mgjit.compiler.cache import usage
from mgjit.compiler.cache.entry import Entry
from mgjit.compiler.cache.store import Store

KEYS = [letter * 32 for letter in "abc"]


def about(number: int) -> dict[str, Any]:
    """As steps have it (cache/about.py)."""
    return {
        "step": f"step{number}", "created": int(time.time()) - 3600 * number, "mgjit": "9.9", "python": "CPython 3",
        "compiler": "/usr/bin/gcc", "version": "gcc 1.2.3", "flags": "-O2", "seconds": 0.5,
        "processor": {"model": "A Processor", "flags": ["avx", "sse"]},
        "key": {"compiler": "/usr/bin/gcc\n17:4", "mode": "strict", "structure": f"structure-{number}"},
    }  # fmt: skip


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only cache directory there is."""
    for setting in settings.SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)
    monkeypatch.setattr(settings, "cache_directories", lambda: [tmp_path / "cache"])
    return tmp_path / "cache"


@pytest.fixture
def filled(directory: Path) -> Path:
    """Three entries, of which the second was hit four times; the last one was used last."""
    store = Store(directory)
    for number, key in enumerate(KEYS):
        assert store.get(key) is None
        store.put(key, Entry({"about": about(number)}, "int a;\n", bytes(3000 + number)))
    for _ in range(4):
        store.get(KEYS[1])
    store.record()
    for number, key in enumerate(KEYS):
        moment = time.time() - 100 * (3 - number)
        os.utime(directory / f"{key}.so", (moment, moment))
    return directory


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """What a command prints."""
    assert main(["cache", *words]) == code
    return capsys.readouterr().out


def json_of(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    return json.loads(said(capsys, *words, "--json", code=code))


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)


# ---- nothing there ------------------------------------------------------------


@pytest.mark.parametrize("command", ["info", "list", "verify", "gc", "clear"])
@pytest.mark.parametrize("as_json", [False, True])
def test_01_before_the_first_entry(
    command: str, as_json: bool, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command works, and makes nothing."""
    out = said(capsys, command, *(["--json"] if as_json else []))
    assert out
    assert not as_json or json.loads(out) is not None
    assert not directory.exists()


@pytest.mark.parametrize("command", ["info", "list", "verify", "gc", "clear"])
def test_02_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the command itself."""
    with pytest.raises(SystemExit) as caught:
        main(["cache", command, "--help"])
    assert caught.value.code == 0
    assert f"example: python -m mgjit cache {command}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["what"], ["list", "--what"]])
def test_03_a_wrong_command_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Is an error with the usage."""
    with pytest.raises(SystemExit) as caught:
        main(["cache", *words])
    assert caught.value.code == 2
    assert "usage: python -m mgjit" in capsys.readouterr().err


# ---- looking ------------------------------------------------------------


def test_10_info(filled: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where, how much of what is allowed, and what all processes did."""
    monkeypatch.setenv("MGJIT_CACHE_SIZE", "64M")
    report = json_of(capsys, "info")
    size = sum(path.stat().st_size for path in filled.glob("*.so"))
    assert report["directories"] == [{"path": str(filled), "state": "used", "reason": ""}]
    assert (report["entries"], report["bytes"], report["limit"]) == (3, size, 64 << 20)
    assert [report[name] for name in ("hits", "misses", "puts", "corrupt")] == [4, 3, 3, 0]
    out = said(capsys, "info")
    assert f"{filled}: used" in out
    assert "of at most 64.0 MiB" in out
    assert "4 hits, 3 misses" in out
    assert "the newest 1 min ago, the oldest 5 min ago" in out


def test_11_list(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last used first, each with its age, hits and compiler."""
    lines = said(capsys, "list").splitlines()
    assert lines[0].split() == ["KEY", "STEP", "SIZE", "BUILT", "USED", "HITS", "COMPILER"]
    assert [line.split()[:2] for line in lines[1:]] == [[KEYS[n][:12], f"step{n}"] for n in (2, 1, 0)]
    assert lines[2].split()[4:] == ["1", "h", "3", "min", "4", "gcc", "1.2.3"]
    report = json_of(capsys, "list")
    assert [one["key"] for one in report] == KEYS[::-1]
    assert [one["hits"] for one in report] == [0, 4, 0]
    assert report[0]["about"]["key"]["structure"] == "structure-2"


def test_12_list_shows_what_a_key_is_made_of(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With -v, one part a line."""
    out = said(capsys, "list", "-v")
    rows = [line.split(None, 2) for line in out.splitlines()]
    assert [row for row in rows if row[:2] == ["key:", "structure"]] == [
        ["key:", "structure", f"structure-{number}"] for number in (2, 1, 0)
    ]
    assert "key: compiler   /usr/bin/gcc | 17:4\n" in out
    assert "A Processor: avx sse" in out
    assert "mgjit 9.9 on CPython 3" in out


def test_13_list_of_what_it_cannot_read(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged entry, one that says nothing about itself or nonsense: shown as far as possible."""
    (filled / f"{KEYS[0]}.so").write_bytes(b"x" * 500)
    Store(filled).put("d" * 32, Entry({}, "", b""))
    Store(filled).put("e" * 32, Entry({"about": {"created": "x", "key": 1, "processor": [], "step": None}}, "", b""))
    Store(filled).put("f" * 32, Entry({"about": [1]}, "", b""))
    assert said(capsys, "list").count(" ? ") >= 3
    assert KEYS[0] in said(capsys, "list", "-v")
    assert len(json_of(capsys, "list")) == 6


# ---- checking ------------------------------------------------------------


def test_20_verify_finds_damage(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, the file and the reason; nothing is deleted, used or counted by that."""
    assert "3 of 3 entries" in said(capsys, "verify")
    damage(filled / f"{KEYS[1]}.so")
    before = {path.name: path.stat().st_mtime for path in filled.glob("*.so")}
    out = said(capsys, "verify", code=1)
    assert f"{filled / KEYS[1]}.so: damaged: the checksum does not match" in out
    assert "2 of 3 entries" in out
    report = json_of(capsys, "verify", code=1)
    assert [one["path"] for one in report["damaged"]] == [str(filled / f"{KEYS[1]}.so")]
    assert report["deleted"] == []
    assert {path.name: path.stat().st_mtime for path in filled.glob("*.so")} == before


def test_21_verify_deletes_what_is_damaged(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only if it is asked to; then all is well."""
    damage(filled / f"{KEYS[1]}.so")
    assert "deleted" in said(capsys, "verify", "--delete", code=1)
    assert not (filled / f"{KEYS[1]}.so").exists()
    assert json_of(capsys, "verify", "--delete")["entries"] == 2


def test_22_what_cannot_be_read_is_not_damaged(
    filled: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And never deleted."""

    def broken(*_args: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(files, "open", broken)
    report = json_of(capsys, "verify", "--delete", code=1)
    assert (len(report["unreadable"]), report["damaged"], report["deleted"]) == (3, [], [])
    assert len(list(filled.glob("*.so"))) == 3


# ---- deleting ------------------------------------------------------------


def test_30_gc_keeps_the_limit(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The option before the variable; what was used longest ago goes, and counts of keys that are gone."""
    assert json_of(capsys, "gc")["deleted"] == 0
    (filled / ".left.tmp").write_text("")
    os.utime(filled / ".left.tmp", (1, 1))
    report = json_of(capsys, "gc", "--limit", "10000")
    assert (report["deleted"], report["left"], report["limit"]) == (1, 2, 10000)
    assert sorted(path.name for path in filled.glob("*.so")) == [f"{key}.so" for key in KEYS[1:]]
    assert not (filled / ".left.tmp").exists()
    assert usage.read(str(filled)).hits_of == {KEYS[1]: 4}
    assert "2 entries deleted" in said(capsys, "gc", "--limit", "0")
    assert usage.read(str(filled)).hits == 4
    assert not usage.read(str(filled)).hits_of


def test_31_a_limit_that_is_none(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An error of one line."""
    assert main(["cache", "gc", "--limit", "much"]) == 2
    assert "--limit='much' is not a size" in capsys.readouterr().err


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "deleted"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_32_clear_asks_at_a_terminal(
    typed: str, deleted: bool, filled: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anything but yes means no."""
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    out = said(capsys, "clear", code=0 if deleted else 1)
    assert f"Delete 3 entries (9.9 KiB) in {filled}?" in out
    assert (len(list(filled.glob("*.so"))) == 0) == deleted


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("yes", 0), ("n\n", 3), ("\n", 3), ("", 3), (None, 3)])
def test_33_clear_reads_the_answer_from_a_pipe(
    answer: str | None, left: int, filled: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing to read means no, and so does a process without a standard input."""
    monkeypatch.setattr(sys, "stdin", None if answer is None else io.StringIO(answer))
    out = said(capsys, "clear", code=1 if left else 0)
    assert out.splitlines()[1] == ("Nothing was deleted." if left else "3 entries deleted, 9.9 KiB.")
    assert len(list(filled.glob("*.so"))) == left


def test_33_clear_without_asking(
    filled: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --yes; other files stay."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    (filled / "notes.txt").write_text("mine")
    report = json_of(capsys, "clear", "--yes")
    assert (report["deleted"], report["left"]) == (3, 0)
    assert sorted(path.name for path in filled.iterdir()) == ["ledger", "notes.txt", "usage"]
    assert json_of(capsys, "info")["entries"] == 0


def test_34_clear_that_cannot_delete(
    filled: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Says so."""

    def broken(path: str) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(files, "unlink", broken)
    assert "3 could not be deleted" in said(capsys, "clear", "--yes", code=1)


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_40_a_directory_that_is_not_trusted(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is not touched, and `info` says why it is not used."""
    filled.chmod(0o777)
    assert "others may write to it" in said(capsys, "info")
    assert json_of(capsys, "clear", "--yes")["deleted"] == 0
    assert len(list(filled.glob("*.so"))) == 3
