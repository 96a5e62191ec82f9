"""Every file system call that the disk store makes, one function each.

The other modules of this package call `files.name(...)` and nothing of `os`, `shutil` or `pathlib` that touches a
disk.  So a test that replaces an attribute here reaches every such call, to make it fail or to stop there.

`uninterrupted` repeats an operation that was interrupted by a signal.  Python does so itself for EINTR, but some
network file systems report interruptions by other errors.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from typing import Callable, TypeVar

from . import scratch

if sys.version_info >= (3, 10):
    from typing import ParamSpec
else:  # a stand-in, so that typing_extensions is not needed at run time
    from .._typing import ParamSpec

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

P = ParamSpec("P")
R = TypeVar("R")

_BINARY = getattr(os, "O_BINARY", 0)
#: For files that must be regular: follows no link, and does not block on a pipe.
READ = os.O_RDONLY | _BINARY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
#: For a new file; fails if it exists.
CREATE = os.O_WRONLY | _BINARY | os.O_CREAT | os.O_EXCL
#: For appending lines, each written by one call.
APPEND = os.O_WRONLY | _BINARY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
#: For the lock file.
UPDATE = os.O_RDWR | _BINARY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)

_ATTEMPTS = 8


def open(path: str, flags: int, mode: int = 0o600) -> int:
    """Open a file; returns its descriptor.  The flags are the constants above."""
    return os.open(path, flags, mode)


def close(descriptor: int) -> None:
    """Close a descriptor."""
    os.close(descriptor)


def read(descriptor: int, size: int) -> bytes:
    """Read up to `size` bytes; empty at the end of the file."""
    return os.read(descriptor, size)


def write(descriptor: int, content: bytes | memoryview) -> int:
    """Write; returns how many bytes were written."""
    return os.write(descriptor, content)


def seek(descriptor: int, position: int) -> int:
    """Set the position of the next read, from the start."""
    return os.lseek(descriptor, position, os.SEEK_SET)


def fsync(descriptor: int) -> None:
    """Wait until the content is on the disk."""
    os.fsync(descriptor)


def fstat(descriptor: int) -> os.stat_result:
    """The status of an open file."""
    return os.fstat(descriptor)


def stat(path: str) -> os.stat_result:
    """The status of a file, following links."""
    return os.stat(path)


def lstat(path: str) -> os.stat_result:
    """The status of a file or link, without following it."""
    return os.lstat(path)


def readlink(path: str) -> str:
    """The target of a link."""
    return os.readlink(path)


def mount_flags(path: str) -> int:
    """The ST_* flags of the mounted file system; 0 where the system does not report them."""
    return os.statvfs(path).f_flag if hasattr(os, "statvfs") else 0


def access(path: str, mode: int) -> bool:
    """Whether this user has that permission, as far as can be told without trying."""
    return os.access(path, mode)


def link(source: str, target: str) -> None:
    """Give a file another name; NotImplementedError where there are no hard links."""
    if not hasattr(os, "link"):
        raise NotImplementedError("this system has no hard links")
    os.link(source, target)


def replace(source: str, target: str) -> None:
    """Rename a file, replacing any file of the new name."""
    os.replace(source, target)


def unlink(path: str) -> None:
    """Delete a file."""
    os.unlink(path)


def utime(path: str) -> None:
    """Set a file's time of last use to now."""
    os.utime(path)


def listdir(path: str) -> list[str]:
    """The names in a directory, in no particular order."""
    return os.listdir(path)


def mkdir(path: str) -> None:
    """Make a directory for this user alone."""
    os.mkdir(path, 0o700)


def make_scratch(place: str) -> tuple[str, int | None]:
    """Make a private directory; returns its path and the descriptor whose lock tells others that it is in use."""
    return scratch.make(place)


def remove_scratch(path: str, descriptor: int | None) -> None:
    """Remove a directory made by `make_scratch`."""
    scratch.remove(path, descriptor)


def memory_file(name: str, lowest: int) -> int:
    """The descriptor, `lowest` or above, of a new file in memory; NotImplementedError if the system has none."""
    if sys.platform == "win32" or not hasattr(os, "memfd_create"):
        raise NotImplementedError("this system has no files in memory")
    descriptor = os.memfd_create(name)
    if descriptor >= lowest:
        return descriptor
    try:
        higher = fcntl.fcntl(descriptor, fcntl.F_DUPFD, lowest)
    finally:
        os.close(descriptor)
    os.set_inheritable(higher, False)
    return higher


def lock(descriptor: int, position: int) -> bool:
    """Lock one byte of an open file for this process, without waiting; False if another process holds it.

    The byte need not exist.  The system unlocks it when the process ends, in whatever way.  Raises OSError if the
    file system has no locks.
    """
    if sys.platform == "win32":
        os.lseek(descriptor, position, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, position)
    except OSError as reason:
        if reason.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


def unlock(descriptor: int, position: int) -> None:
    """Release a lock."""
    if sys.platform == "win32":
        os.lseek(descriptor, position, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, position)


def uninterrupted(operation: Callable[P, R]) -> Callable[P, R]:
    """Decorate an operation that may safely be repeated: it is restarted when a signal interrupts it."""

    @functools.wraps(operation)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(_ATTEMPTS - 1):
            try:
                return operation(*args, **kwargs)
            except InterruptedError:
                continue
        return operation(*args, **kwargs)

    return repeated


def read_all(descriptor: int, size: int) -> bytes:
    """Read the next `size` bytes, or fewer if the file ends."""
    first = read(descriptor, size)
    if len(first) == size or not first:
        return first
    parts, missing = [first], size - len(first)
    while missing:
        part = read(descriptor, missing)
        if not part:
            break
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def write_all(descriptor: int, content: bytes) -> None:
    """Write everything: one call of `write` may write only part."""
    rest = memoryview(content)
    while rest:
        rest = rest[write(descriptor, rest) :]


def write_new(path: str, content: bytes, *, lasting: bool) -> None:
    """Write a new private file; with `lasting`, it is synced to disk."""
    descriptor = open(path, CREATE)
    try:
        write_all(descriptor, content)
        if lasting:
            fsync(descriptor)
    finally:
        close(descriptor)
