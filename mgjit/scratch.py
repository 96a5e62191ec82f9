"""Private directories for temporary files, which do not stay behind when a process is killed.

1. A directory is made for the user alone, and locked (`flock`) for as long as it is needed.  The system gives the
   lock back when the process ends, however it ends, and in whatever container it ran: no process number is compared.
2. The first directory that a process makes in a place is the occasion to look at those that others left: what can
   be locked has no owner any more and is removed.
3. Between making a directory and locking it, another process may come and remove it.  Whoever finds that makes
   another one: a directory counts when it is locked and still there.

Only directories of this user, with the name of these, are touched; no symbolic link is followed.  Where the system or
the file system has no such locks, nobody can lock the directory of another, and what a killed process left stays.
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

#: The places where this process has looked for what others left.
_searched: set[str] = set()


@contextlib.contextmanager
def directory(place: str) -> Iterator[str]:
    """A private directory in `place`, removed whatever happens.

    Raises:
        OSError: there cannot be one.
    """
    path, descriptor = make(place)
    try:
        yield path
    finally:
        remove(path, descriptor)


def make(place: str) -> tuple[str, int | None]:
    """A private directory in `place`, until `remove` or the end of the process, and the descriptor that locks it.

    Raises:
        OSError: there cannot be one.
    """
    if place not in _searched:
        _searched.add(place)
        remove_abandoned(place)
    return _make(place)


def remove(path: str, descriptor: int | None) -> None:
    """Remove a directory, also with the one descriptor that its lock has just given back: `rmtree` needs more."""
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
        # Not `tempfile.mkdtemp`: it has a lock, and a child that is forked while a thread has it hangs.
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
    """A descriptor of a directory; a symbolic link is none."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def remove_abandoned(place: str) -> None:
    """Remove the directories in `place` whose processes are no more."""
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
    except OSError:  # gone, no directory, or of another user
        return
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.lstat(path), os.fstat(descriptor)):
                shutil.rmtree(path, ignore_errors=True)
    except OSError:  # its process lives, or there are no locks
        pass
    finally:
        os.close(descriptor)
