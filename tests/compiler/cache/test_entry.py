"""Files of entries: what is read is what was written, or it is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mgjit.compiler.cache.entry import ContentError, Entry, encode, publish, read_entry

KEY = "a" * 32
ENTRY = Entry({"name": "café", "number": 3}, "/* é */ int a;\n", bytes(range(256)))

posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes of POSIX")


def written(directory: Path) -> Path:
    path = directory / (KEY + ".so")
    publish(str(path), encode(KEY, ENTRY))
    return path


def test_01_round_trip(tmp_path: Path) -> None:
    """And nothing else is left in the directory; reading counts as use."""
    path = written(tmp_path)
    os.utime(path, (1, 1))
    assert read_entry(str(path), KEY) == ENTRY
    assert path.stat().st_mtime > 1
    assert list(tmp_path.iterdir()) == [path]


def test_02_every_byte_and_every_length(tmp_path: Path) -> None:
    """No other content is believed."""
    path = written(tmp_path)
    good = path.read_bytes()
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 1 << position % 8
        path.write_bytes(bad)
        with pytest.raises(ContentError):
            read_entry(str(path), KEY)
    for length in range(len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(ContentError):
            read_entry(str(path), KEY)
    path.write_bytes(good + b"x")
    with pytest.raises(ContentError):
        read_entry(str(path), KEY)


@posix
def test_03_files_that_are_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody put them there when the directory was open to all."""
    path = written(tmp_path)
    path.chmod(0o662)
    with pytest.raises(ContentError, match="somebody else"):
        read_entry(str(path), KEY)
    path.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(path, 1234, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 987654)
    with pytest.raises(ContentError, match="somebody else"):
        read_entry(str(path), KEY)


@posix
def test_04_a_link_is_not_followed(tmp_path: Path) -> None:
    """Not even to a good entry."""
    path = written(tmp_path)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(ContentError, match="link"):
        read_entry(str(tmp_path / "link"), KEY)


def test_05_what_cannot_be_read_is_no_content_error(tmp_path: Path) -> None:
    """Such an entry must not be deleted."""
    with pytest.raises(FileNotFoundError):
        read_entry(str(tmp_path / "missing"), KEY)
