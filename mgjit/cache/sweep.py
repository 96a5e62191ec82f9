"""Keeping a directory within its limit, without looking through it at every put.

The file `ledger` says how many bytes there are: its first line is the time and the total of the last sweep, and
each put of any process appends a line with its size.

1. `account` adds a line after a put, and sweeps when the total exceeds the limit, or the last sweep was an hour ago.
2. `sweep` deletes the entries used longest ago, by the time of their files, down to 80 % of the limit, and begins a
   new ledger.  A line that is added in that moment may be lost; the next sweep counts again.
3. `remove_abandoned` deletes temporary files of processes that are no more: those that have ended, on this machine,
   or whatever is older than an hour.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import time

import xxhash

from . import files

LEDGER = "ledger"
TEMPORARY = ".tmp"

_PERIOD = 3600.0
_LONGEST_LEDGER = 1 << 20


@functools.cache
def _machine() -> str:
    """Where the numbers of processes mean the same: this machine since it was started, this container."""
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
    """A new name beside a file, from which can be seen whose it is."""
    directory, name = os.path.split(path)
    owner = f"{os.getpid()}.{_machine()}"
    return os.path.join(directory, f".{name[:40]}.{owner}.{os.urandom(8).hex()}{TEMPORARY}")


def account(directory: str, size: int, limit: int, suffix: str) -> None:
    """Count `size` bytes that were put, and sweep if it is time.  A failure is no failure of the put."""
    with contextlib.suppress(OSError):
        _append(os.path.join(directory, LEDGER), f"{size}\n")
        swept, total = _read_ledger(os.path.join(directory, LEDGER))
        if total > limit or abs(time.time() - swept) > _PERIOD:
            sweep(directory, limit, suffix)


def sweep(directory: str, limit: int, suffix: str) -> tuple[int, int]:
    """Delete what was used longest ago if there is more than `limit`: entries and bytes that were deleted."""
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
    """Time of last use, size and path of the files that end so."""
    found = []
    for name in files.listdir(directory):
        if name.endswith(suffix):
            path = os.path.join(directory, name)
            with contextlib.suppress(FileNotFoundError):
                state = files.lstat(path)
                found.append((state.st_mtime, state.st_size, path))
    return found


def remove_abandoned(directory: str) -> int:
    """Delete the temporary files of processes that are no more; how many there were."""
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
        os.kill(int(words[-4]), 0)  # signal 0 only asks
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
    """Time of the last sweep, and bytes by now; zeros if the ledger cannot be understood."""
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
