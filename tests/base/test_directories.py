"""Directories: who could put code there is what decides, for every directory on the way."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from mgjit.base import directories, files
from mgjit.base.directories import Directory, Refused, make, refusal_of, resolve, survey

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes of POSIX")

root_only = pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can give files away")


def state(mode: int, user: int, group: int = 99) -> os.stat_result:
    return os.stat_result((mode, 1, 1, 1, user, group, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("mode", "user", "expected"),
    [
        (0o700, 7, None), (0o755, 7, None), (0o755, 0, None), (0o1700, 7, None),
        (0o777, 7, "others may write"), (0o770, 7, "others may write"), (0o702, 7, "others may write"),
        (0o1777, 7, "others may write"), (0o777, 0, "others may write"), (0o700, 8, "belongs to user 8"),
    ],
)  # fmt: skip
def test_01_the_directory_itself(mode: int, user: int, expected: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mine or root's, and nobody else may write to it: stickiness does not keep others from adding files."""
    monkeypatch.setattr(os, "geteuid", lambda: 7)
    reason = refusal_of(state(stat.S_IFDIR | mode, user))
    assert (reason is None) == (expected is None)
    assert reason is None or (expected or "") in reason


@pytest.mark.parametrize(
    ("mode", "user", "group", "refused"),
    [
        (0o755, 7, 99, False), (0o755, 0, 0, False), (0o1777, 0, 0, False), (0o1775, 0, 50, False),
        (0o777, 7, 7, True), (0o777, 0, 0, True), (0o775, 7, 99, True), (0o775, 0, 50, True),
        (0o775, 7, 7, False), (0o755, 8, 8, True), (0o1777, 8, 8, True),
    ],
)  # fmt: skip
def test_02_directories_on_the_way(
    mode: int, user: int, group: int, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may rename in one of them could put another directory in place of mine; not in a sticky one."""
    monkeypatch.setattr(os, "geteuid", lambda: 7)
    monkeypatch.setattr(os, "getegid", lambda: 7)
    root = state(stat.S_IFDIR | 0o755, 0)
    assert (directories._swappable(state(stat.S_IFDIR | mode, user, group), root, is_link=False) is not None) == refused


def test_03_links_are_followed_one_by_one(tmp_path: Path) -> None:
    """Absolute, relative, through `..`; the result has none."""
    (tmp_path / "real" / "cache").mkdir(parents=True)
    (tmp_path / "absolute").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "relative").symlink_to("../real/cache")
    expected = os.path.realpath(tmp_path / "real" / "cache")
    for name in ("real/cache", "absolute/cache", "absolute/relative", "real/./relative"):
        assert resolve(str(tmp_path / name)) == expected
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OSError, match="loop") as caught:
        resolve(str(tmp_path / "loop"))
    assert caught.value.errno == errno.ELOOP
    with pytest.raises(FileNotFoundError):
        resolve(str(tmp_path / "missing"))
    assert resolve("/") == "/"


@pytest.mark.parametrize("place", ["parent", "grandparent", "behind a link"])
def test_04_a_parent_that_others_can_write_to(place: str, tmp_path: Path) -> None:
    """Named by the reason; made sticky it is harmless."""
    cache = tmp_path / "a" / "b" / "cache"
    cache.mkdir(parents=True, mode=0o700)
    asked = cache
    if place == "behind a link":
        asked = tmp_path / "link"
        asked.symlink_to(cache)
    assert Directory.open(str(asked)).path == os.path.realpath(cache)
    bad = tmp_path / "a" if place == "grandparent" else tmp_path / "a" / "b"
    bad.chmod(0o777)
    with pytest.raises(Refused, match=f"{bad}: others may replace what is in it"):
        Directory.open(str(asked))
    bad.chmod(0o1777)
    assert Directory.open(str(asked)).path == os.path.realpath(cache)


@root_only
def test_05_other_peoples_links_and_directories(tmp_path: Path) -> None:
    """Also a link that leads to a good directory: its owner can change it."""
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(cache)
    os.lchown(link, 1234, 1234)
    with pytest.raises(Refused, match="belongs to user 1234, who could replace"):
        Directory.open(str(link))
    os.chown(cache, 1234, 1234)
    with pytest.raises(Refused, match="belongs to user 1234"):
        Directory.open(str(cache))
    with pytest.raises(Refused, match="belongs to user 1234, who could replace"):
        Directory.open(str(cache / "below"))
    assert not (cache / "below").exists()


def test_06_what_is_made_is_private(tmp_path: Path) -> None:
    """Whatever the umask is, also the directories above."""
    before = os.umask(0)
    try:
        make(str(tmp_path / "a" / "b" / "c"))
    finally:
        os.umask(before)
    for path in (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"):
        assert path.stat().st_mode & 0o777 == 0o700
    make(str(tmp_path / "a" / "b" / "c"))


@pytest.mark.parametrize("below", [False, True])
def test_07_a_file_in_its_place(below: bool, tmp_path: Path) -> None:
    """Or above it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"[nN]ot a directory"):
        Directory.open(str(tmp_path / "file" / "cache" if below else tmp_path / "file"))


def test_08_states_of_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gone, made again, opened to all, read-only."""
    directory = Directory.open(str(tmp_path / "cache"))
    assert directory.writable
    directory.check()
    (tmp_path / "cache").rmdir()
    with pytest.raises(FileNotFoundError):
        directory.check()
    directory.make()
    directory.check()
    (tmp_path / "cache").chmod(0o722)
    with pytest.raises(Refused, match="others may write"):
        directory.check()
    (tmp_path / "cache").chmod(0o500)
    monkeypatch.setattr(files, "access", lambda path, mode: False)  # root may write everywhere
    assert not Directory.open(str(tmp_path / "cache")).writable


def test_09_survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would become of each candidate; nothing is made."""
    (tmp_path / "file").write_text("")
    for name in ("frozen", "good", "open"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / "open").chmod(0o777)
    real = files.access
    monkeypatch.setattr(files, "access", lambda path, mode: real(path, mode) and "frozen" not in path)
    before = sorted(tmp_path.iterdir())
    names = ["file", "open", "frozen/below/it", "frozen", "new/below", "good"]
    found = survey([tmp_path / name for name in names])
    assert [one.state for one in found] == ["refused", "refused", "refused", "read-only", "missing", "spare"]
    assert "not a directory" in found[0].reason
    assert "others may write" in found[1].reason
    assert "cannot be made" in found[2].reason
    assert [one.directory is not None for one in found] == [False, False, False, True, False, False]
    assert [one.state for one in survey([tmp_path / "good", tmp_path / "new"])] == ["used", "spare"]
    assert sorted(tmp_path.iterdir()) == before
