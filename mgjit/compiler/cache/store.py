"""The disk store: compiled steps that outlive the process.

1. Entries are kept in the first directory that may be used (`directories.py`), one file each (`entry.py`).
2. A *content* error deletes the entry, so that it is built again.  An *I/O* error deletes nothing: from then on the
   directory is only read, and new entries go to the next one.  A directory that is read-only from the start is
   treated in the same way: it still serves hits.
3. A directory that another user could write to would run that user's code; it is not used at all.
4. If no directory is left, entries are kept in memory; a library is then loaded from a file in memory or in a private
   temporary directory (`libraries.py`).
5. After a put, `sweep.py` keeps the directory within its limit; `usage.py` counts hits and misses of all processes.
6. Whatever fails, there is one warning, which names the first directory, the reason, and what is used instead.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import errno
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar, Union

from mgjit.base import settings
from mgjit.errors import BackendWarning, CacheError, CompilerError, user_stacklevel

from ...base import files
from ...base.directories import Directory, Refused
from .entry import SIZE_LIMIT, ContentError, Entry, encode, publish, read_entry
from .libraries import Libraries
from .lock import one_builder
from .sweep import account, entries, remove_abandoned, sweep
from .usage import Usage, append

AnyPath = Union[str, "os.PathLike[str]"]

SUFFIX = ".so"

_Library = TypeVar("_Library")

_KEY = re.compile(r"[0-9A-Za-z_-]{8,128}")


def _renew_lock() -> None:
    """In a forked child: replace the lock, which may be held by a thread that does not exist here."""
    global _opening  # noqa: PLW0603 - a lock cannot be unlocked for another thread
    _opening = threading.Lock()


_opening = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Store:
    """Entries by key, in the first of its directories that is usable, else (or with `memory_only`) in this process.

    Safe to share between threads and processes.
    """

    def __init__(
        self,
        directory: AnyPath | None = None,
        *,
        instead: Sequence[AnyPath] = (),
        limit: int = SIZE_LIMIT,
        memory_only: bool = False,
    ) -> None:
        """Make a store; no file is touched before the first use.

        Args:
            directory: where entries are kept.
            instead: directories to fall back to, best first.
            limit: the most bytes to keep there.
            memory_only: keep entries in this process only.
        """
        if directory is None and not memory_only:
            raise ValueError("a store needs a directory, or memory_only=True")
        self.directory = None if memory_only or directory is None else Path(os.path.abspath(directory))
        self.limit = limit
        self.counters = Usage()
        self.problem: str | None = None  # why entries are not kept in `directory`
        self._candidates = [] if self.directory is None else [str(self.directory), *map(os.path.abspath, instead)]
        self._directories: list[Directory] = []  # those that may be read; only the last one is written to
        self._memory: dict[str, Entry] = {}
        self._places: dict[str, str] = {}  # key -> the library's file on disk
        self._libraries = Libraries()
        self._recorded = Usage()
        self._cleaned: set[str] = set()  # directories whose abandoned files were removed
        self._process = os.getpid()  # a forked child does not report what its parent did

    def get(self, key: str, *, again: bool = False) -> Entry | None:
        """The entry of a key, or None; damaged entries are deleted on the way.

        Args:
            key: which entry.
            again: whether this repeats an earlier look-up, so that a miss is not counted twice.
        """
        entry = self._find(key)
        if entry is not None or not again:
            self.counters.count("misses" if entry is None else "hits", key)
        return entry

    @contextlib.contextmanager
    def building(self, key: str) -> Iterator[None]:
        """A context for building an entry: other builders of the same key wait, then should look it up again first.

        This holds for threads, and for processes with the same directory, up to a time limit; it only saves work.
        """
        _require_key(key)
        found = self._usable()
        with one_builder(found[-1].path if found and found[-1].writable else None, key):
            yield

    def put(self, key: str, entry: Entry) -> Path | None:
        """Keep an entry.  Returns the path of its library, ready to load, or None if there is nowhere to put it."""
        _require_key(key)
        self.counters.count("puts", key)
        content = encode(key, entry)
        while key not in self._memory and len(content) <= self.limit:
            directory = self._writable()
            if directory is None:
                break
            try:
                path = self._publish(directory, key, content)
            except Refused as reason:
                self._abandon(directory, reason)
            except OSError as reason:
                self._stop_writing(directory, reason)
            else:
                self._places[key] = path
                return Path(path)
        self._memory[key] = entry
        return self.library_path(key)

    def library_path(self, key: str) -> Path | None:
        """The file to load for a key that was just passed to `get` or `put`; None if there is none."""
        _require_key(key)
        if key in self._memory:
            path = self._libraries.path(key, self._memory[key].binary)
            return None if path is None else Path(path)
        path = self._places.get(key)
        if path is None:
            return None
        try:
            files.stat(path)
        except OSError:
            return None
        return Path(path)

    def load_failed(self, key: str, reason: str) -> Path | None:
        """Report that the library did not load; returns another file to load it from.

        Each call moves on to the next kind of file; None if all have failed.
        """
        entry = self._find(key)
        if entry is None:
            return None
        if key in self._memory:
            self._libraries.next(key)
        else:
            self._warn(f"a library in {self.directory} does not load ({reason}); a temporary copy is used instead")
        self._memory[key] = entry
        return self.library_path(key)

    def load(self, key: str, load: Callable[[str], _Library]) -> _Library | None:
        """The library of a key that was just passed to `get` or `put`, by `load`; None if it loads from no file."""
        path = self.library_path(key)
        while path is not None:
            try:
                return load(str(path))
            except CompilerError as error:
                path = self.load_failed(key, str(error))
        return None

    def in_memory(self) -> dict[str, Entry]:
        """The entries that are kept in this process only."""
        return dict(self._memory)

    def keys(self) -> list[str]:
        """The keys on disk and in memory."""
        return sorted({os.path.basename(path)[: -len(SUFFIX)] for _, _, path in self.files()} | set(self._memory))

    def files(self) -> list[tuple[float, int, str]]:
        """Time of last use, size and path of the entries on disk."""
        found = []
        for directory in self._usable():
            with contextlib.suppress(OSError):
                found += entries(directory.path, SUFFIX)
        return found

    def size(self) -> int:
        """Bytes on disk."""
        return sum(size for _, size, _ in self.files())

    def remove(self, key: str) -> None:
        """Remove an entry, also from disk."""
        _require_key(key)
        self._memory.pop(key, None)
        for directory in self._usable():
            with contextlib.suppress(OSError):
                files.unlink(directory.file(key + SUFFIX))

    def clear(self) -> int:
        """Remove all entries; returns how many there were."""
        keys = self.keys()
        for key in keys:
            self.remove(key)
        return len(keys)

    def sweep(self, limit: int | None = None) -> tuple[int, int]:
        """If there are more than `limit` bytes, delete the least recently used entries, down to 80 % of it.

        Returns:
            How many entries were deleted, and their bytes.
        """
        removed, size = 0, 0
        for directory in self._usable():
            with contextlib.suppress(OSError):
                gone = sweep(directory.path, self.limit if limit is None else limit, SUFFIX)
                removed, size = removed + gone[0], size + gone[1]
        return removed, size

    def record(self) -> None:
        """Append the counts of this process to the directory's, which otherwise happens when the process ends."""
        news = copy.deepcopy(self.counters)
        news.merge(self._recorded, -1)
        if not news.is_empty() and self._is_writable() and os.getpid() == self._process:
            self._recorded.merge(news)
            with contextlib.suppress(OSError):
                append(self._directories[-1].path, news)

    # -- directories -----------------------------------------------------------------------------------

    def _usable(self) -> list[Directory]:
        """The directories that may be read: candidates are opened until one of them can be written to."""
        refused: list[tuple[str, OSError]] = []
        if not self._is_writable():
            with _opening:  # while one thread opens a candidate, the others must not move on to the next one
                while self._candidates and not self._is_writable():
                    name = self._candidates[0]
                    try:
                        self._directories = [*self._directories, Directory.open(name)]
                    except OSError as reason:
                        refused.append((name, reason))
                    del self._candidates[0]
        for name, error in refused:
            self._report(name, error)
        return self._directories

    def _is_writable(self) -> bool:
        found = self._directories
        return bool(found) and found[-1].writable

    def _writable(self) -> Directory | None:
        """The directory for new entries; if a better one is read-only, this is the time to warn about it."""
        found = self._usable()
        if found and self.problem is None and (not found[0].writable):
            self._report(found[0].name, OSError(errno.EROFS, "it cannot be written to"))
        return found[-1] if found and found[-1].writable else None

    def _abandon(self, directory: Directory, reason: OSError) -> None:
        """Stop using a directory, even for reading, because somebody else controls it."""
        self._directories = [other for other in self._directories if other is not directory]
        self._report(directory.name, reason)

    def _stop_writing(self, directory: Directory, reason: OSError) -> None:
        directory.writable = False
        self._report(directory.name, reason)

    def _report(self, name: str, reason: OSError) -> None:
        """Warn, once, why a directory is not used, and what is used instead."""
        text = reason.strerror or str(reason)
        settings.LOGGER.info("the cache directory %s cannot be used: %s", name, text)
        if self.problem is None:
            self.problem = text
            found = self._usable()
            instead = found[-1].name if found and found[-1].writable else "memory"
            self._warn(f"the cache {name} cannot be used: {text}; {instead} is used instead")

    def _warn(self, text: str) -> None:
        if settings.cache_is_strict():
            raise CacheError(text)
        advice = "MGJIT_CACHE_DIR names another directory"
        warnings.warn(f"mgjit: {text}. {advice}.", BackendWarning, stacklevel=user_stacklevel())

    # -- one entry -------------------------------------------------------------------------------------

    def _find(self, key: str) -> Entry | None:
        """The entry of a key, without counting a hit or a miss."""
        _require_key(key)
        if key in self._memory:
            return self._memory[key]
        for directory in tuple(self._usable()):
            path = directory.file(key + SUFFIX)
            try:
                directory.check()
                entry = read_entry(path, key)
            except FileNotFoundError:
                continue
            except Refused as reason:
                self._abandon(directory, reason)
            except OSError as reason:
                self._stop_writing(directory, reason)
            except ContentError as reason:
                self._delete(key, path, reason)
            else:
                self._places[key] = path
                return entry
        return None

    def _delete(self, key: str, path: str, reason: ContentError) -> None:
        """Delete a damaged entry, so that a good one can take its place."""
        self.counters.count("corrupt", key)
        settings.LOGGER.info("cache entry %s is damaged and deleted: %s", path, reason)
        with contextlib.suppress(OSError):
            files.unlink(path)

    def _publish(self, directory: Directory, key: str, content: bytes) -> str:
        for attempt in (1, 2):
            try:
                directory.check()
                if directory.path not in self._cleaned:
                    self._cleaned.add(directory.path)
                    remove_abandoned(directory.path)
                publish(directory.file(key + SUFFIX), content)
                break
            except FileNotFoundError:  # somebody deleted the directory
                if attempt == 2:
                    raise
                directory.make()
        account(directory.path, len(content), self.limit, SUFFIX)
        return directory.file(key + SUFFIX)


def _require_key(key: str) -> None:
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} is not a cache key")


_stores: dict[tuple[str, ...], Store] = {}


def open_store() -> Store:
    """The store of this process: in MGJIT_CACHE_DIR, else in the user's cache directory, else in a private one."""
    directories, limit = _absolute(settings.cache_directories()), settings.cache_size()
    store = _stores.get(directories)
    if store is None:
        made = Store(directories[0], instead=directories[1:]) if directories else Store(memory_only=True)
        store = _stores.setdefault(directories, made)
        if store is made:
            atexit.register(store.record)
    store.limit = limit
    return store


def _absolute(directories: Sequence[Path]) -> tuple[str, ...]:
    """The absolute paths; relative ones are left out if the current directory no longer exists."""
    found = []
    for directory in directories:
        with contextlib.suppress(FileNotFoundError):
            found.append(os.path.abspath(directory))
    return tuple(found)
