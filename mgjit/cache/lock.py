"""One builder a key: who comes second waits for the first one's entry instead of building it again.

Only double work depends on it, never whether something is right: entries are published whole, and a name that
exists already is a success.  So every failure here means to go on without the lock.

1. Threads of this process wait for each other by a lock in memory, for each key its own.
2. Processes lock one byte of one file: its position comes from the key, so keys do not wait for each other, no
   file is left behind for each of them, and the system unlocks what a killed process had.
3. Both waits have an end, after which the caller builds as well: a process that was stopped holds up nobody.
4. A forked child does not wait for a key that its parent was building at that moment.  The parent may be waiting for
   the child: until it ends, the child keeps the pipes open that the parent had just opened to its compiler.

The locks are those of POSIX (`fcntl`), which belong to a process and which a compiler that it started does not
inherit.  They end when the process closes *any* descriptor of the file: each has one, for as long as it lives.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

import xxhash

from .. import settings
from . import files

NAME = "locks"
PATIENCE = 60.0
"""Seconds, as long as a compiler may take: after that, waiting longer is no better than building."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05
_POSITIONS = 1 << 30  # what every system can lock, also one with files of 32 bits

#: For good: if one were forgotten when it is unlocked, who comes then would not wait for those who still do.
_threads: dict[tuple[int, str, str], threading.Lock] = {}
_descriptors: dict[str, int] = {}


@contextlib.contextmanager
def one_builder(directory: str | None, key: str, patience: float = PATIENCE) -> Iterator[None]:
    """Whoever is in here is the only one to build this key, as far as that can be told.

    Args:
        directory: whose processes to exclude; None: only threads of this one.
        key: of the entry.
        patience: seconds to wait for others.
    """
    deadline = time.monotonic() + patience
    name = (os.getpid(), directory or "", key)  # what a thread had when its process forked is none of the child's
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
    """Whether a thread of the process that forked this one had the key at that moment."""
    return any(other[0] != name[0] and other[1:] == name[1:] and held.locked() for other, held in [*_threads.items()])


def _position(key: str) -> int:
    return xxhash.xxh32_intdigest(key.encode()) % _POSITIONS


def _locked(directory: str, key: str, deadline: float) -> int | None:
    """The descriptor whose byte for this key is locked now; None: go on without."""
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
    """The file of locks, opened once; again after it was deleted."""
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
    """Whether a descriptor is that of the file of this name."""
    try:
        return os.path.samestat(files.stat(path), files.fstat(descriptor))
    except OSError:
        return False
