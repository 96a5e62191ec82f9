"""Keep a directory within its size limit, without listing it at every put.

The file `ledger` tracks the total size: its first line is the time and the total of the last sweep, and each put of
any process appends a line with its size.

1. `account` adds a line after a put, and sweeps if the total exceeds the limit or the last sweep was an hour ago.
2. `sweep` deletes the least recently used entries, by the time of their files, down to 80 % of the limit, and begins
   a new ledger.  A line that is added at that moment may be lost; the next sweep counts again.
3. `remove_abandoned` deletes temporary files of processes of this machine that have ended, and any older than an hour.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import time

import xxhash

from ...base import files

LEDGER = "ledger"
TEMPORARY = ".tmp"

_PERIOD = 3600.0
_LONGEST_LEDGER = 1 << 20


@functools.cache
def _machine() -> str:
    """Identifies where process ids are unique: this machine since it was booted, and this container."""
    try:
        descriptor = files.open("/proc/sys/kernel/random/boot_id", files.READ)
        try:
            identity = f"{files.read(descriptor, 100)!r} {files.stat('/proc/self/ns/pid').st_ino}"
        finally:
            files.close(descriptor)
    except OSError:
        identity = platform.node()
    return xxhash.xxh32_hexdigest(identity.encode("utf-8", "surrogateescape"))


def temporary_path(path: str) -> str:
    """A new file name beside `path` that says which process made it."""
    directory, name = os.path.split(path)
    owner = f"{os.getpid()}.{_machine()}"
    return os.path.join(directory, f".{name[:40]}.{owner}.{os.urandom(8).hex()}{TEMPORARY}")


def account(directory: str, size: int, limit: int, suffix: str) -> None:
    """Count `size` bytes that were put, and sweep if it is time.  Errors are ignored: the put itself has succeeded."""
    with contextlib.suppress(OSError):
        _append(os.path.join(directory, LEDGER), f"{size}\n")
        swept, total = _read_ledger(os.path.join(directory, LEDGER))
        if total > limit or abs(time.time() - swept) > _PERIOD:
            sweep(directory, limit, suffix)


def sweep(directory: str, limit: int, suffix: str) -> tuple[int, int]:
    """Delete the least recently used entries if there are more than `limit` bytes; returns (entries, bytes) deleted."""
    remove_abandoned(directory)
    found = entries(directory, suffix)
    total = sum(size for _, size, _ in found)
    before, kept = total, len(found)
    if total > limit:
        for _, size, path in sorted(found):
            if total <= limit * 8 // 10:
                break
            try:
                files.unlink(path)
            except FileNotFoundError:
                pass  # another process sweeps as well
            except OSError:
                continue
            total, kept = total - size, kept - 1
    with contextlib.suppress(OSError):
        _begin_ledger(os.path.join(directory, LEDGER), total)
    return len(found) - kept, before - total


def entries(directory: str, suffix: str) -> list[tuple[float, int, str]]:
    """Time of last use, size and path of the files with this suffix."""
    found = []
    for name in files.listdir(directory):
        if name.endswith(suffix):
            path = os.path.join(directory, name)
            with contextlib.suppress(FileNotFoundError):
                state = files.lstat(path)
                found.append((state.st_mtime, state.st_size, path))
    return found


def remove_abandoned(directory: str) -> int:
    """Delete the temporary files of processes that have ended; returns how many there were."""
    removed = 0
    with contextlib.suppress(OSError):
        for name in files.listdir(directory):
            if name.endswith(TEMPORARY):
                path = os.path.join(directory, name)
                with contextlib.suppress(OSError):
                    if _is_abandoned(name, files.lstat(path).st_mtime):
                        files.unlink(path)
                        removed += 1
    return removed


def _is_abandoned(name: str, written: float) -> bool:
    if written < time.time() - _PERIOD:
        return True
    words = name.split(".")
    if os.name != "posix" or len(words) < 5 or words[-3] != _machine() or not words[-4].isdigit():
        return False
    try:
        os.kill(int(words[-4]), 0)  # signal 0 only tests whether the process exists
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


@files.uninterrupted
def _append(path: str, line: str) -> None:
    descriptor = files.open(path, files.APPEND)
    try:
        files.write_all(descriptor, line.encode("ascii"))
    finally:
        files.close(descriptor)


@files.uninterrupted
def _read_ledger(path: str) -> tuple[float, int]:
    """Time of the last sweep, and total bytes now; zeros if the ledger cannot be parsed."""
    descriptor = files.open(path, files.READ)
    try:
        lines = files.read_all(descriptor, _LONGEST_LEDGER).split()
    finally:
        files.close(descriptor)
    try:
        return float(lines[0]), sum(map(int, lines[1:]))
    except (ValueError, IndexError):
        return 0.0, 0


@files.uninterrupted
def _begin_ledger(path: str, total: int) -> None:
    temporary = temporary_path(path)
    try:
        _append(temporary, f"{int(time.time())} {total}\n")
        files.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            files.unlink(temporary)
        raise
