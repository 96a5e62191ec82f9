"""One builder per key: whoever comes second waits for the first one's entry instead of building it again.

The lock only saves work; correctness does not depend on it, because entries are published whole, and a name that
exists already counts as success.  So after any failure here, the caller simply goes on without the lock.

1. Threads of this process use a lock in memory, one per key.
2. Processes lock one byte of one shared file, at a position that comes from the key.  So different keys do not wait
   for each other, no lock files accumulate, and the system releases the locks of a killed process.
3. Both waits have a time limit, after which the caller builds as well: a suspended process holds up nobody.
4. A forked child does not wait for a key that its parent was building at the time of the fork.  The parent may be
   waiting for the child, which keeps the pipes open that the parent had just opened to its compiler.

These are POSIX locks (`fcntl`): they belong to a process, and a compiler that it starts does not inherit them.  They
are released when the process closes *any* descriptor of the file, so each process has one, for as long as it lives.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

import xxhash

from ...base import files, settings

NAME = "locks"
PATIENCE = 60.0
"""Seconds to wait: as long as a compiler may take, because then waiting is no better than building."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05
_POSITIONS = 1 << 30  # positions that every system can lock, also one with 32-bit file offsets

#: Never removed: if a lock were dropped on release, a new thread would make another one and not wait for this one.
_threads: dict[tuple[int, str, str], threading.Lock] = {}
_descriptors: dict[str, int] = {}


@contextlib.contextmanager
def one_builder(directory: str | None, key: str, patience: float = PATIENCE) -> Iterator[None]:
    """A context in which, as far as possible, nobody else builds this key.

    Args:
        directory: the cache directory whose users to exclude; None: only threads of this process.
        key: of the entry.
        patience: seconds to wait for others.
    """
    deadline = time.monotonic() + patience
    name = (os.getpid(), directory or "", key)  # with the process id: a child does not hold the locks of its parent
    if _was_being_built(name):
        yield
        return
    mine = _threads.setdefault(name, threading.Lock())
    if not mine.acquire(timeout=patience):
        settings.LOGGER.info("another thread has built %s for %g s", key, patience)
        yield
        return
    try:
        descriptor = None if directory is None else _locked(directory, key, deadline)
        try:
            yield
        finally:
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    files.unlock(descriptor, _position(key))
    finally:
        mine.release()


def _was_being_built(name: tuple[int, str, str]) -> bool:
    """Whether a thread of the parent held this key when it forked this process."""
    # Copied at once, as another thread may add its key: a list of pairs is not, since a collection may come between.
    known = _threads.copy().items()
    return any(other[0] != name[0] and other[1:] == name[1:] and held.locked() for other, held in known)


def _position(key: str) -> int:
    return xxhash.xxh32_intdigest(key.encode()) % _POSITIONS


def _locked(directory: str, key: str, deadline: float) -> int | None:
    """Lock the byte of this key; returns the descriptor, or None if the caller should go on without the lock."""
    pause = _FIRST_PAUSE
    try:
        descriptor = _descriptor(directory)
        while not _try(descriptor, _position(key)):
            left = deadline - time.monotonic()
            if left <= 0:
                settings.LOGGER.info("another process builds %s and is not waited for any longer", key)
                return None
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE)
    except (OSError, NotImplementedError) as reason:
        settings.LOGGER.info("no locks in %s: %s", directory, reason)
        return None
    return descriptor


@files.uninterrupted
def _try(descriptor: int, position: int) -> bool:
    return files.lock(descriptor, position)


@files.uninterrupted
def _descriptor(directory: str) -> int:
    """The descriptor of the lock file, opened once, and again if the file was deleted."""
    path = os.path.join(directory, NAME)
    known = _descriptors.get(path)
    if known is not None and _is_still(path, known):
        return known
    descriptor = files.open(path, files.UPDATE)
    first = _descriptors.setdefault(path, descriptor) if known is None else descriptor
    if first is not descriptor:  # another thread was faster
        files.close(descriptor)
        return first
    _descriptors[path] = descriptor
    return descriptor


def _is_still(path: str, descriptor: int) -> bool:
    """Whether a descriptor still belongs to the file of this name."""
    try:
        return os.path.samestat(files.stat(path), files.fstat(descriptor))
    except OSError:
        return False
