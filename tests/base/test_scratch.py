"""Private directories: removed by whoever made them, or by the next process when that one was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mgjit.base import scratch, settings

ROOT = Path(__file__).resolve().parents[2]

locks = pytest.mark.skipif(not scratch.LOCKS, reason="no file locks on this system")


@pytest.fixture(autouse=True)
def _searched_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "_searched", set())


def holder(place: Path, then: str = "sys.stdin.read()") -> subprocess.Popen[str]:
    """A process that has a directory in `place` with a file in it, and says so."""
    code = f"""
        import os, sys
        sys.path.insert(0, {str(ROOT)!r})
        from mgjit.base import scratch
        with scratch.directory({str(place)!r}) as path:
            open(os.path.join(path, "step.c"), "w").close()
            os.mkdir(os.path.join(path, "deeper"))
            print(path, flush=True)
            {then}
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def told(child: subprocess.Popen[str]) -> Path:
    """The directory that a process says it has."""
    assert child.stdout is not None
    return Path(child.stdout.readline().rstrip("\n"))


def test_01_private_and_removed(tmp_path: Path) -> None:
    """Nobody else can read it; with what is in it, it goes at the end and after an exception."""
    with scratch.directory(str(tmp_path)) as path:
        assert Path(path).parent == tmp_path
        if os.name == "posix":
            assert os.stat(path).st_mode & 0o777 == 0o700
        (Path(path) / "deep").mkdir()
        (Path(path) / "deep" / "file").write_text("x")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyboardInterrupt), scratch.directory(str(tmp_path)):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_02_no_such_place(tmp_path: Path) -> None:
    """An OSError, for the caller to try another place."""
    with pytest.raises(OSError, match="missing"), scratch.directory(str(tmp_path / "missing")):
        pass


@locks
def test_03_after_sigkill(tmp_path: Path) -> None:
    """The next process removes what a killed one has left, and nothing of one that lives."""
    dead, living = holder(tmp_path), holder(tmp_path)
    abandoned, used = told(dead), told(living)
    dead.kill()
    dead.wait()
    assert abandoned.is_dir()
    with scratch.directory(str(tmp_path)) as own:
        assert set(tmp_path.iterdir()) == {used, Path(own)}
        assert (used / "deeper").is_dir()
    living.communicate()
    assert list(tmp_path.iterdir()) == []


@locks
def test_04_only_once_a_process_and_place(tmp_path: Path) -> None:
    """Looking through a temporary directory with a hundred thousand files must not be done for every step."""
    with scratch.directory(str(tmp_path)):
        pass
    left = tmp_path / f"{scratch.PREFIX}left"
    left.mkdir()
    with scratch.directory(str(tmp_path)):
        assert left.is_dir()
    scratch.remove_abandoned(str(tmp_path))
    assert not left.exists()


@locks
def test_05_links_and_strange_names_are_left_alone(tmp_path: Path) -> None:
    """A link with such a name is not followed, neither as the directory nor inside of one; others are not touched."""
    place, precious = tmp_path / "place", tmp_path / "precious"
    place.mkdir()
    precious.mkdir()
    (precious / "file").write_text("kept")
    (place / f"{scratch.PREFIX}link").symlink_to(precious)
    (place / f"{scratch.PREFIX}file").write_text("no directory")
    (place / "mgjit-other").mkdir()
    abandoned = place / f"{scratch.PREFIX}abandoned"
    abandoned.mkdir()
    (abandoned / "link").symlink_to(precious)
    scratch.remove_abandoned(str(place))
    assert not abandoned.exists()
    assert (precious / "file").read_text() == "kept"
    assert {path.name for path in place.iterdir()} == {
        f"{scratch.PREFIX}link", f"{scratch.PREFIX}file", "mgjit-other",
    }  # fmt: skip


@locks
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, to be two users")
def test_06_of_another_user(tmp_path: Path) -> None:
    """What is not ours is not removed, even by one who could."""
    other = tmp_path / f"{scratch.PREFIX}other"
    other.mkdir()
    os.chown(other, 12345, 12345)
    scratch.remove_abandoned(str(tmp_path))
    assert other.is_dir()


@locks
def test_07_removed_before_it_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may come between making and locking: before, while, or after it has the lock itself."""
    import fcntl

    opened, flock, rivals = scratch._open, fcntl.flock, []

    def gone_before(path: str) -> int:
        descriptor = opened(path)
        if not rivals:
            rivals.append(path)
            os.rmdir(path)
        return descriptor

    monkeypatch.setattr(scratch, "_open", gone_before)
    with scratch.directory(str(tmp_path)) as path:
        assert os.path.isdir(path)
        assert path not in rivals
    monkeypatch.setattr(scratch, "_open", opened)

    def held(descriptor: int, operation: int) -> None:
        if len(rivals) < 2:
            rivals.append("held")
            raise BlockingIOError
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", held)
    with scratch.directory(str(tmp_path)) as path:
        assert os.path.isdir(path)
    assert len(rivals) == 2


@locks
def test_08_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories work as ever, and nobody takes those of others away."""
    import fcntl

    def refused(descriptor: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refused)
    other = tmp_path / f"{scratch.PREFIX}other"
    other.mkdir()
    with scratch.directory(str(tmp_path)) as path:
        assert os.path.isdir(path)
        assert other.is_dir()
    assert list(tmp_path.iterdir()) == [other]


@locks
def test_09_many_at_once(tmp_path: Path) -> None:
    """Threads that make directories while others search: nobody loses one that is in use."""

    def use(_number: int) -> int:
        lost = 0
        for _ in range(60):
            with scratch.directory(str(tmp_path)) as path:
                (Path(path) / "file").write_text("x")
                scratch.remove_abandoned(str(tmp_path))
                lost += not (Path(path) / "file").exists()
        return lost

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(use, range(6))) == 0
    assert list(tmp_path.iterdir()) == []


@locks
def test_10_many_processes_that_are_killed(tmp_path: Path) -> None:
    """Whatever the moment: after all are dead, one search leaves nothing."""
    endless = f"""
            while True:
                scratch.remove_abandoned({str(tmp_path)!r})
                with scratch.directory({str(tmp_path)!r}) as inner: assert os.path.isdir(inner)"""
    children = [holder(tmp_path, endless) for _ in range(4)]
    for child in children:
        told(child)
    for child in children:
        assert child.poll() is None
        child.send_signal(signal.SIGKILL)
        child.wait()
    scratch.remove_abandoned(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_11_no_lock_that_a_forked_child_could_miss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a thread is inside `tempfile`, a child that is forked finds its lock taken for ever."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_name_sequence", None)
    found: list[str] = []

    def like_a_child() -> None:
        place = settings.scratch_directories()[0]
        with scratch.directory(place) as path:
            found.append(path)

    thread = threading.Thread(target=like_a_child, daemon=True)
    with tempfile._once_lock:
        thread.start()
        thread.join(30)
        assert found, "it waits for the lock"
    assert found[0].startswith(str(tmp_path))
