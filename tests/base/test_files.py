"""The calls of the file system: all of the store's are here, and part of a file is never taken for all of it."""

from __future__ import annotations

import ast
import errno
import os
from pathlib import Path

import pytest

from mgjit.base import directories, files
from mgjit.compiler.cache import store

FOLDER = Path(store.__file__).parent

#: Names of `os` that ask nothing of a file system.
HARMLESS = {
    "PathLike", "W_OK", "X_OK", "curdir", "pardir", "altsep", "sep", "path", "fspath", "strerror", "stat_result",
    "getpid", "geteuid", "getegid", "urandom", "kill", "name", "register_at_fork",
}  # fmt: skip
HARMLESS_IN_PATH = {"join", "dirname", "basename", "abspath", "split", "splitdrive", "isabs", "samestat"}


def test_01_nothing_else_touches_the_disk() -> None:
    """In the modules of the store; the digest reads sources of this package, and what the system says of itself."""
    for module in [*sorted(FOLDER.glob("*.py")), Path(directories.__file__)]:
        if module.name in ("key.py", "sources.py"):
            continue
        tree = ast.parse(module.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
                assert node.attr in HARMLESS, f"{module.name}:{node.lineno}: os.{node.attr}"
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os.path":
                assert node.attr in HARMLESS_IN_PATH, f"{module.name}:{node.lineno}: os.path.{node.attr}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "open", f"{module.name}:{node.lineno}"


def test_02_short_reads_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system may do less than it was asked for, at any time."""
    read, write = files.read, files.write
    monkeypatch.setattr(files, "read", lambda descriptor, size: read(descriptor, min(size, 3)))
    monkeypatch.setattr(files, "write", lambda descriptor, content: write(descriptor, content[:7]))
    path = str(tmp_path / "file")
    files.write_new(path, bytes(range(100)), lasting=True)
    descriptor = files.open(path, files.READ)
    assert files.read_all(descriptor, 50) == bytes(range(50))
    assert files.read_all(descriptor, 500) == bytes(range(50, 100))
    assert files.read_all(descriptor, 5) == b""
    files.close(descriptor)
    with pytest.raises(FileExistsError):
        files.write_new(path, b"", lasting=False)


def test_03_interruptions_end() -> None:
    """A call that is always interrupted is an error in the end."""
    calls = []

    @files.uninterrupted
    def operation(most: int) -> int:
        calls.append(1)
        if len(calls) < most:
            raise OSError(errno.EINTR, os.strerror(errno.EINTR))
        return len(calls)

    assert operation(5) == 5
    calls.clear()
    with pytest.raises(InterruptedError):
        operation(10**6)
    assert len(calls) < 100
