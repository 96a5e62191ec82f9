"""The environment variables: read when needed, and parsed without a shell."""

from __future__ import annotations

import _thread
import logging
import math
import os
import re
import threading
from pathlib import Path

import pytest

import mgjit
from mgjit.base import settings
from mgjit.errors import ArgumentValueError


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in settings.SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)


def test_01_every_variable_is_registered_once_and_documented() -> None:
    """`doctor` prints the registry, so it must be complete and readable."""
    names = [setting.name for setting in settings.SETTINGS]
    assert len(set(names)) == len(names)
    assert {"MGJIT_CC", "MGJIT_CFLAGS", "MGJIT_CACHE_DIR", "MGJIT_DISABLE", "MGJIT_LOG"} <= set(names)
    assert all(setting.meaning and setting.default for setting in settings.SETTINGS)


def test_01_the_table_for_users_is_the_registry() -> None:
    """docs/reference/settings.md has the same names, meanings and defaults, in the same order."""
    reference = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"
    rows = [line for line in reference.read_text(encoding="utf-8").splitlines() if line.startswith("| `MGJIT_")]
    assert rows == [f"| `{setting.name}` | {setting.meaning} | {setting.default} |" for setting in settings.SETTINGS]


def test_01_nothing_else_is_read() -> None:
    """No other variable of mgjit is named anywhere in the package."""
    package = Path(mgjit.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in package.rglob("*.py")]
    named = {name for text in texts for name in re.findall(r"MGJIT_[A-Z_]+", text)}
    assert named <= {setting.name for setting in settings.SETTINGS}


def test_02_defaults() -> None:
    """Without any variable mgjit chooses everything itself."""
    assert settings.compiler() is None
    assert settings.cflags() == ()
    assert not settings.disabled()
    assert not settings.cache_is_strict()
    assert settings.log_level() == logging.WARNING
    assert settings.cache_directory().name == "mgjit"
    assert settings.compile_seconds() == 60.0
    assert settings.compile_memory() == 8 << 30


@pytest.mark.parametrize(
    ("text", "expected"), [("1", True), ("yes", True), ("0", False), ("", False), (" Off ", False)]
)
def test_03_switches_are_read_at_call_time(monkeypatch: pytest.MonkeyPatch, text: str, expected: bool) -> None:
    """A variable set after import counts."""
    monkeypatch.setenv("MGJIT_DISABLE", text)
    assert settings.disabled() is expected


def test_04_flags_are_split_like_a_shell_would_but_by_no_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotes group words, and `$` and `;` mean nothing."""
    monkeypatch.setenv("MGJIT_CFLAGS", "-O3 '-I a b' ; $HOME")
    assert settings.cflags() == ("-O3", "-I a b", ";", "$HOME")
    monkeypatch.setenv("MGJIT_CFLAGS", "-D'open")
    with pytest.raises(ArgumentValueError, match="MGJIT_CFLAGS"):
        settings.cflags()


def test_05_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """MGJIT_CACHE_DIR is taken as it is, apart from `~`."""
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path / "with blank"))
    assert settings.cache_directory() == tmp_path / "with blank"
    monkeypatch.setenv("MGJIT_CACHE_DIR", "~no-such-user/cache")
    with pytest.raises(ArgumentValueError, match=r"MGJIT_CACHE_DIR='~no-such-user/cache'.*without ~"):
        settings.cache_directories()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MGJIT_CACHE_DIR", "~/here")
    if os.name == "posix":
        assert settings.cache_directory() == tmp_path / "here"


@pytest.mark.parametrize(
    ("text", "size"),
    [("", 1 << 30), ("4096", 4096), ("512M", 512 << 20), ("1.5g", 3 << 29), ("64 MiB", 64 << 20), ("2KB", 2048)],
)
def test_08_cache_size(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    """Bytes, or a number with a unit."""
    monkeypatch.setenv("MGJIT_CACHE_SIZE", text)
    assert settings.cache_size() == size


@pytest.mark.parametrize("text", ["0", "-1", "much", "1X", "1M2", "1e9", "inf", "M", "0.0001", "9" * 400, "٣M"])
def test_09_a_size_that_is_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Named, with how to write one."""
    monkeypatch.setenv("MGJIT_CACHE_SIZE", text)
    with pytest.raises(ArgumentValueError, match=r"MGJIT_CACHE_SIZE=.*64M"):
        settings.cache_size()


def test_10_cache_directories(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The one that is asked for, then private ones; without a home only those."""
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    places = settings.cache_directories()
    assert places[0] == tmp_path
    assert places[1] == Path("/run/user/7/mgjit")
    assert places[2].name.startswith("mgjit")
    assert len(places) == 3
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert len(settings.cache_directories()) == 2

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(settings, "cache_directory", nowhere)
    assert len(settings.cache_directories()) == 1


@pytest.mark.parametrize(("text", "level"), [("1", logging.INFO), ("debug", logging.DEBUG), ("?", logging.WARNING)])
def test_06_log_level(monkeypatch: pytest.MonkeyPatch, text: str, level: int) -> None:
    """Levels by number or name; nonsense does not break a run."""
    monkeypatch.setenv("MGJIT_LOG", text)
    assert settings.log_level() == level


@pytest.mark.parametrize(("text", "expected"), [("0", []), ("1", ["a decision"]), ("2", ["a detail", "a decision"])])
def test_06b_records(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, text: str, expected: list[str]
) -> None:
    """What MGJIT_LOG asks for, also in a program whose own records are of all levels."""
    monkeypatch.setenv("MGJIT_LOG", text)
    with caplog.at_level(logging.DEBUG):
        settings.LOGGER.debug("a detail")
        settings.LOGGER.info("a decision")
    assert caplog.messages == expected


def test_06c_records_without_handlers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Go to stderr."""
    monkeypatch.setenv("MGJIT_LOG", "1")
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    settings.LOGGER.info("a decision")
    assert capsys.readouterr().err == "a decision\n"


def test_06d_no_trace_of_records_that_nobody_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record adds the thread to those of `threading`, so that parameters would stay attached in plain calls."""
    monkeypatch.delenv("MGJIT_LOG", raising=False)
    ended = _thread.allocate_lock()
    ended.acquire()
    before = threading.active_count()

    def work() -> None:
        settings.LOGGER.info("a decision")
        ended.release()

    _thread.start_new_thread(work, ())
    assert ended.acquire(timeout=30)
    assert threading.active_count() == before


def test_07_scratch_directories_exist() -> None:
    """Only directories that exist, each once."""
    places = settings.scratch_directories()
    assert places
    assert len(set(places)) == len(places)
    assert all(os.path.isdir(place) for place in places)


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_11_scratch_directories_are_safe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Libraries are loaded from them: nobody else may be able to put others there."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert str(tmp_path) in settings.scratch_directories()
    tmp_path.chmod(0o777)
    assert str(tmp_path) not in settings.scratch_directories()
    tmp_path.chmod(0o1777)
    assert str(tmp_path) in settings.scratch_directories()


def test_12_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are still temporary directories."""

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(settings, "cache_directory", nowhere)
    assert settings.scratch_directories()


@pytest.mark.parametrize(("text", "seconds"), [("0.5", 0.5), ("1e3", 1000.0), ("0", math.inf), (" 7 ", 7.0)])
def test_13_time_for_compilers(monkeypatch: pytest.MonkeyPatch, text: str, seconds: float) -> None:
    """Seconds; none at all is no limit."""
    monkeypatch.setenv("MGJIT_COMPILE_SECONDS", text)
    assert settings.compile_seconds() == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1000", 1000),
        ("64K", 65536),
        ("512M", 512 << 20),
        ("2G", 2 << 30),
        ("2 GiB", 2 << 30),
        ("1tb", 1 << 40),
        ("1.5G", 3 << 29),
    ],
)
def test_14_memory_for_compilers(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    """Bytes, or binary multiples of them in the usual spellings."""
    monkeypatch.setenv("MGJIT_COMPILE_MEMORY", text)
    assert settings.compile_memory() == size


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf", "1e400", "1,5", "1 minute", "x" * 100_000])
def test_15_no_time(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """An error that names the variable, and does not repeat a hundred thousand characters."""
    monkeypatch.setenv("MGJIT_COMPILE_SECONDS", text)
    with pytest.raises(ArgumentValueError, match="MGJIT_COMPILE_SECONDS") as caught:
        settings.compile_seconds()
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("text", ["lots", "-1", "-1.5G", "G", "1X", "1GG", "0x10", "9" * 100_000 + "Q"])
def test_16_no_size(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """As above."""
    monkeypatch.setenv("MGJIT_COMPILE_MEMORY", text)
    with pytest.raises(ArgumentValueError, match="MGJIT_COMPILE_MEMORY") as caught:
        settings.compile_memory()
    assert len(str(caught.value)) < 400
