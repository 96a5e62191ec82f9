"""Temporary files to load a library from when it cannot be loaded from the cache, the best kind first.

1. A file that exists in memory only, under the name `/proc/self/fd/N` (Linux).  A loader identifies a library by its
   file name, so no N is used twice, not even after all descriptors were closed, as daemons do.  The descriptors stay
   open, so their number is limited.
2. A file in a private temporary directory, in each of the places where such directories can be made.
"""

from __future__ import annotations

import atexit
import contextlib
import os

from ...base import files, settings

_MOST_IN_MEMORY = 100

_in_memory = 0
_lowest = 0  # above every descriptor used so far
_directories: dict[tuple[int, str], tuple[str, int | None]] = {}  # (process id, place) -> directory and its lock


class Libraries:
    """The temporary files of one store, by key."""

    def __init__(self) -> None:
        self._attempt: dict[str, int] = {}  # key -> how many kinds of files have failed
        self._paths: dict[tuple[str, int], str] = {}

    def next(self, key: str) -> None:
        """Give up the file that `path` returned, which did not load."""
        attempt = self._attempt.get(key, 0)
        self._attempt[key] = attempt + 1
        path = self._paths.pop((key, attempt), None)
        if path is not None and attempt:  # the descriptor of one in memory stays, see above
            _remove_file(path)

    def path(self, key: str, binary: bytes) -> str | None:
        """A file with this library; None if every kind has failed."""
        attempt = self._attempt.get(key, 0)
        places: list[str | None] = [None, *settings.scratch_directories()]
        while attempt < len(places):
            known = self._paths.get((key, attempt))
            if known is not None and _exists(known):
                return known
            place = places[attempt]
            try:
                path = _memory_file(key, binary) if place is None else _file(place, key, binary)
            except (OSError, NotImplementedError) as reason:
                settings.LOGGER.info("no temporary library in %s: %s", place or "memory", reason)
                attempt = self._attempt[key] = attempt + 1
                continue
            self._paths[key, attempt] = path
            return path
        return None


@files.uninterrupted
def _memory_file(key: str, binary: bytes) -> str:
    global _in_memory, _lowest  # noqa: PLW0603 - the descriptors are the process's
    if _in_memory >= _MOST_IN_MEMORY:
        raise NotImplementedError("the limit of files in memory is reached")
    descriptor = files.memory_file(f"mgjit-{key}", _lowest)
    _lowest = descriptor + 1
    path = f"/proc/self/fd/{descriptor}"
    try:
        files.write_all(descriptor, binary)
        files.stat(path)
    except BaseException:
        files.close(descriptor)
        raise
    _in_memory += 1
    return path


@files.uninterrupted
def _file(place: str, key: str, binary: bytes) -> str:
    path = os.path.join(_directory(place), f"{key}.{os.urandom(4).hex()}.so")
    try:
        files.write_new(path, binary, lasting=False)
    except BaseException:
        with contextlib.suppress(OSError):
            files.unlink(path)
        raise
    return path


def _directory(place: str) -> str:
    """The private directory of this process in a place; a forked child gets its own."""
    known = _directories.get((os.getpid(), place))
    if known is None or not _exists(known[0]):
        if not _directories:
            atexit.register(remove_directories)
        known = _directories[os.getpid(), place] = files.make_scratch(place)
    return known[0]


def _remove_file(path: str) -> None:
    """Remove a file, and its directory if that was the last file in it."""
    directory = os.path.dirname(path)
    with contextlib.suppress(OSError):
        files.unlink(path)
        for name, (made, descriptor) in _directories.copy().items():
            if made == directory and name[0] == os.getpid() and not files.listdir(directory):
                del _directories[name]
                files.remove_scratch(made, descriptor)


def remove_directories() -> None:
    """Remove the directories made by this process (not by its parent); libraries that are mapped stay usable."""
    for (process, place), (path, descriptor) in _directories.copy().items():
        if process == os.getpid():
            del _directories[process, place]
            with contextlib.suppress(OSError):
                files.remove_scratch(path, descriptor)


def _exists(path: str) -> bool:
    try:
        files.stat(path)
    except OSError:
        return False
    return True
