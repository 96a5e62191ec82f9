"""Libraries that cannot be loaded from the cache: each kind of file holds the same bytes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mgjit.base import ffi, files
from mgjit.compiler.cache import libraries
from mgjit.compiler.cache.libraries import Libraries
from mgjit.compiler.toolchain import build, compilers

KEY = "a" * 32


@pytest.fixture(autouse=True)
def room_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever other tests have put there."""
    monkeypatch.setattr(libraries, "_in_memory", 0)

ROOT = Path(__file__).resolve().parents[3]


def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> list[Path]:
    """The places for temporary directories."""
    made = [tmp_path / name for name in names]
    for place in made:
        place.mkdir()
    monkeypatch.setattr("mgjit.base.settings.scratch_directories", lambda: [str(place) for place in made])
    return made


def broken(*_args: Any) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def no_memory_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "memory_file", broken)


def test_01_each_kind_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory first where there is such a thing, then the directories, then nothing."""
    first, second = places(tmp_path, monkeypatch, "first", "second")
    kept = Libraries()
    found = [kept.path(KEY, b"content")]
    while found[-1] is not None:
        assert Path(found[-1]).read_bytes() == b"content"
        assert len([*first.iterdir(), *second.iterdir()]) <= 1
        assert kept.path(KEY, b"content") == found[-1]
        kept.next(KEY)
        found.append(kept.path(KEY, b"content"))
    on_disk = [Path(path).parent.parent for path in found if path is not None and not path.startswith("/proc/")]
    assert on_disk == [first, second]
    assert not [*first.iterdir(), *second.iterdir()]  # what does not load is of no use
    assert (found[0] or "").startswith("/proc/self/fd/") == hasattr(os, "memfd_create")


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no files in memory")
def test_02_a_library_in_memory_runs() -> None:
    """Two of them, under names that differ, also when somebody closes descriptors, and that say what they are."""
    compiler = compilers.find()
    if compiler is None:
        pytest.skip("no C compiler is installed")
    kept, results = Libraries(), []
    for number in (7, 8):
        source = f'__attribute__((visibility("default"))) int number(void *const *m) {{ return {number}; }}\n'
        path = kept.path(f"{KEY}{number}", build.compile_shared(compiler, source).binary)
        assert path is not None
        assert f"memfd:mgjit-{KEY}{number}" in os.readlink(path)
        results.append(ffi.load(path).function("number")(ffi.PointerBlock(1)))
        os.close(int(os.path.basename(path)))
    assert results == [7, 8]


def test_03_not_too_many_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one needs a descriptor for ever."""
    places(tmp_path, monkeypatch, "place")
    monkeypatch.setattr(libraries, "_in_memory", libraries._MOST_IN_MEMORY)
    path = Libraries().path(KEY, b"content")
    assert path is not None
    assert path.startswith(str(tmp_path))
    libraries.remove_directories()


def test_04_directories_are_private_and_go_at_exit(tmp_path: Path) -> None:
    """Nothing stays of a process that keeps nothing."""
    code = (
        "import os, sys; from mgjit.base import files; from mgjit.compiler.cache import libraries; "
        "del os.memfd_create\n"
        f"path = libraries.Libraries().path({KEY!r}, b'x'); place = os.path.dirname(path)\n"
        "assert os.path.exists(path); print(oct(os.stat(place).st_mode & 0o777), place)"
    )
    if not hasattr(os, "memfd_create"):
        code = code.replace("; del os.memfd_create", "")
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    mode, place = said.split()
    assert mode == "0o700" or os.name != "posix"
    assert not Path(place).exists()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_07_nothing_stays_of_a_killed_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its directory goes when another process makes one in the same place."""
    (place,) = places(tmp_path, monkeypatch, "place")
    code = (
        "import os, sys; from mgjit.compiler.cache import libraries\n"
        f"libraries._file({str(place)!r}, {KEY!r}, b'x'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    (left,) = place.iterdir()
    no_memory_files(monkeypatch)
    path = Libraries().path(KEY, b"content")
    assert path is not None
    assert list(place.iterdir()) == [Path(path).parent]
    assert not left.exists()
    libraries.remove_directories()


def test_05_a_place_that_fails_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk; nothing stays of the attempt."""
    first, second = places(tmp_path, monkeypatch, "first", "second")
    no_memory_files(monkeypatch)
    real = files.write

    def full(descriptor: int, content: bytes) -> int:
        if "first" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, content)

    if not os.path.exists("/proc/self/fd"):
        pytest.skip("names of descriptors are not known here")
    monkeypatch.setattr(files, "write", full)
    path = Libraries().path(KEY, b"content")
    assert path is not None
    assert Path(path).parent.parent == second
    assert not [name for _, _, names in os.walk(first) for name in names]
    libraries.remove_directories()


def test_06_a_deleted_file_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may tidy up temporary directories while we run."""
    places(tmp_path, monkeypatch, "place")
    no_memory_files(monkeypatch)
    kept = Libraries()
    first = Path(str(kept.path(KEY, b"content")))
    first.unlink()
    first.parent.rmdir()
    second = Path(str(kept.path(KEY, b"content")))
    assert second.read_bytes() == b"content"
    assert second != first  # a loader may know the old name
    libraries.remove_directories()
