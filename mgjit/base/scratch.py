"""Private directories for temporary files, which are eventually removed even if a process is killed.

1. A directory is accessible to this user only, and locked (`flock`) for as long as it is needed.  The system releases
   the lock when the process ends, however it ends, and in whatever container: no process ids are compared.
2. When a process makes its first directory in a place, it looks for abandoned ones: if a directory can be locked, its
   process has ended, and it is removed.
3. Between making a directory and locking it, another process may remove it; then another one is made.  A directory is
   valid once it is locked and still exists.

Only directories of this user whose names have the right form are touched; symbolic links are not followed.  Where
there are no such locks, no directory can be locked, and the directories of killed processes stay.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # Windows
    LOCKS = False
else:
    LOCKS = True

PREFIX = "mgjit-scratch-"

_ATTEMPTS = 10

#: The places where this process has already looked for abandoned directories.
_searched: set[str] = set()


@contextlib.contextmanager
def directory(place: str) -> Iterator[str]:
    """A context with a private directory in `place`, which is removed whatever happens.

    Raises:
        OSError: it cannot be made.
    """
    path, descriptor = make(place)
    try:
        yield path
    finally:
        remove(path, descriptor)


def make(place: str) -> tuple[str, int | None]:
    """Make a private directory in `place`, which lasts until `remove`; returns it and the descriptor that locks it.

    Raises:
        OSError: it cannot be made.
    """
    if place not in _searched:
        _searched.add(place)
        remove_abandoned(place)
    return _make(place)


def remove(path: str, descriptor: int | None) -> None:
    """Remove a directory, even if the process has no free descriptor but that of its lock (`rmtree` needs more)."""
    if descriptor is not None:
        os.close(descriptor)
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)


def _make(place: str) -> tuple[str, int | None]:
    """A new directory and the descriptor that locks it."""
    for _ in range(_ATTEMPTS):
        # Not `tempfile.mkdtemp`: a child that is forked while a thread holds its lock would hang.
        path = os.path.join(place, PREFIX + os.urandom(8).hex())
        os.mkdir(path, 0o700)
        if not LOCKS:
            return path, None
        try:
            descriptor = _open(path)
        except FileNotFoundError:  # somebody has removed it
            continue
        except OSError:
            os.rmdir(path)
            raise
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # somebody is about to remove it
            os.close(descriptor)
            continue
        except OSError:  # a file system without locks, for everybody
            return path, descriptor
        with contextlib.suppress(OSError):
            if os.path.samestat(os.lstat(path), os.fstat(descriptor)):
                return path, descriptor
        os.close(descriptor)
    raise FileExistsError(f"other processes keep removing new directories in {place}")


def _open(path: str) -> int:
    """Open a directory, not following a symbolic link; returns the descriptor."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def remove_abandoned(place: str) -> None:
    """Remove the directories in `place` whose processes have ended."""
    if not LOCKS:
        return
    try:
        names = [name for name in os.listdir(place) if name.startswith(PREFIX)]
    except OSError:
        return
    for name in names:
        _remove_if_abandoned(os.path.join(place, name))


def _remove_if_abandoned(path: str) -> None:
    try:
        descriptor = _open(path)
    except OSError:  # gone, not a directory, or another user's
        return
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.lstat(path), os.fstat(descriptor)):
                shutil.rmtree(path, ignore_errors=True)
    except OSError:  # its process is running, or there are no locks
        pass
    finally:
        os.close(descriptor)
