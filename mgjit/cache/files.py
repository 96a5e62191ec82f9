"""Every call of the file system that the disk store makes, under one name each.

The other modules of this package call `files.name(...)` and nothing of `os`, `shutil` or `pathlib` that touches a
disk.  A test that replaces an attribute here therefore reaches every such call, to let it fail or to stop there.

`uninterrupted` repeats an operation that a signal interrupted: Python does so by itself where the system says it
in the usual way, and some network file systems say it in others.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from typing import Callable, TypeVar

from .. import scratch

if sys.version_info >= (3, 10):
    from typing import ParamSpec
else:  # as typing_extensions would, without needing it at run time
    from .._typing import ParamSpec

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

P = ParamSpec("P")
R = TypeVar("R")

_BINARY = getattr(os, "O_BINARY", 0)
#: For files that must be regular: neither a link is followed nor a pipe waited for.
READ = os.O_RDONLY | _BINARY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
#: For a file that must not exist yet.
CREATE = os.O_WRONLY | _BINARY | os.O_CREAT | os.O_EXCL
#: For lines at the end, each written by one call.
APPEND = os.O_WRONLY | _BINARY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
#: For the file of locks.
UPDATE = os.O_RDWR | _BINARY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)

_ATTEMPTS = 8


def open(path: str, flags: int, mode: int = 0o600) -> int:
    """A descriptor; the flags are the constants above."""
    return os.open(path, flags, mode)


def close(descriptor: int) -> None:
    """Close a descriptor."""
    os.close(descriptor)


def read(descriptor: int, size: int) -> bytes:
    """Up to `size` bytes; empty at the end."""
    return os.read(descriptor, size)


def write(descriptor: int, content: bytes | memoryview) -> int:
    """How many bytes were written."""
    return os.write(descriptor, content)


def seek(descriptor: int, position: int) -> int:
    """Set the position of the next read, from the start."""
    return os.lseek(descriptor, position, os.SEEK_SET)


def fsync(descriptor: int) -> None:
    """Wait until the content is on the disk."""
    os.fsync(descriptor)


def fstat(descriptor: int) -> os.stat_result:
    """The state of an open file."""
    return os.fstat(descriptor)


def stat(path: str) -> os.stat_result:
    """The state of what a path leads to."""
    return os.stat(path)


def lstat(path: str) -> os.stat_result:
    """The state of what a path names, a link itself."""
    return os.lstat(path)


def readlink(path: str) -> str:
    """Where a link leads to."""
    return os.readlink(path)


def mount_flags(path: str) -> int:
    """The ST_* flags of the mounted file system; 0 where the system does not tell."""
    return os.statvfs(path).f_flag if hasattr(os, "statvfs") else 0


def access(path: str, mode: int) -> bool:
    """Whether this user may do that, as far as can be said without trying."""
    return os.access(path, mode)


def link(source: str, target: str) -> None:
    """Give a file another name; NotImplementedError where there are no hard links."""
    if not hasattr(os, "link"):
        raise NotImplementedError("this system has no hard links")
    os.link(source, target)


def replace(source: str, target: str) -> None:
    """Rename a file, over another one if there is one."""
    os.replace(source, target)


def unlink(path: str) -> None:
    """Delete a file."""
    os.unlink(path)


def utime(path: str) -> None:
    """Make a file recently used."""
    os.utime(path)


def listdir(path: str) -> list[str]:
    """The names in a directory, in no order."""
    return os.listdir(path)


def mkdir(path: str) -> None:
    """Make a directory for this user alone."""
    os.mkdir(path, 0o700)


def make_scratch(place: str) -> tuple[str, int | None]:
    """A new private directory, and the descriptor that tells other processes that it is needed."""
    return scratch.make(place)


def remove_scratch(path: str, descriptor: int | None) -> None:
    """Remove such a directory."""
    scratch.remove(path, descriptor)


def memory_file(name: str, lowest: int) -> int:
    """The descriptor, `lowest` or above, of a new file that is in memory only; NotImplementedError: there are none."""
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
    """Lock one byte of an open file for this process, without waiting; False: another process has it.

    The byte need not exist.  The system unlocks it when the process ends, in whatever way.  OSError where a file
    system has no locks.
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
    """Give up a lock."""
    if sys.platform == "win32":
        os.lseek(descriptor, position, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, position)


def uninterrupted(operation: Callable[P, R]) -> Callable[P, R]:
    """The operation, which is right to repeat, begun again when a signal ends it early."""

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
    """The next `size` bytes, or fewer where the file ends."""
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
    """Write everything: a call may take less than it is given."""
    rest = memoryview(content)
    while rest:
        rest = rest[write(descriptor, rest) :]


def write_new(path: str, content: bytes, *, lasting: bool) -> None:
    """Write a new private file; a lasting one is on the disk when this returns."""
    descriptor = open(path, CREATE)
    try:
        write_all(descriptor, content)
        if lasting:
            fsync(descriptor)
    finally:
        close(descriptor)
