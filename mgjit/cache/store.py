"""The disk store: compiled steps that outlive the process.

One content-addressed file an entry, and that very file is what the dynamic loader opens:

    shared object | metadata (JSON) | C source | footer

Loaders of ELF and Mach-O map what the headers at the start describe and ignore what follows.  So a binary
and its metadata cannot come from two builds, and there is no second copy to write for loading.

1. The footer has a fixed size: magic, format version, the three sizes, and xxh3_128 (with a seed of its own)
   over the key and everything before it.  Sizes are compared with the size of the file before anything is
   read; the checksum is compared before anything is believed.
2. `put` writes a temporary file of unpredictable name beside the final one, syncs it, and links it to the
   final name.  A name that exists already is a success: names are hashes of what made the content.
   Nothing is ever overwritten, because a loader that has the old file mapped would read the new one.
3. A *content* error deletes the entry, so that it is built again.  An *I/O* error deletes nothing: the store
   warns once, stops writing, and keeps new entries in memory and in a private temporary directory.
4. A directory that another user could write to would run that user's code; it is not used at all.
5. There is no lock and no pickle.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import shutil
import stat
import struct
import tempfile
import threading
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xxhash

from mgjit import settings
from mgjit.errors import BackendWarning, CacheError

MAGIC = b"mgjit\r\n\x1a"  # a text-mode copy or a 7-bit channel damages it visibly
VERSION = 1
SEED = 0x6D676A6974  # not the seed of cache keys: a key must not double as a checksum
SIZE_LIMIT = 1 << 30

_HEAD = struct.Struct("<8sIQQQ")
_DIGEST_SIZE = 16
_FOOTER_SIZE = _HEAD.size + _DIGEST_SIZE
_KEY = re.compile(r"[0-9A-Za-z_-]{8,128}")
_SUFFIX = ".so"
_BINARY = getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | _BINARY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_STAMP = "swept"
_TEMPORARY = ".tmp"


@dataclass(frozen=True)
class Entry:
    """What the store keeps for a key: a shared object, what is known about it, and its C source."""

    metadata: dict[str, Any]
    source: str
    binary: bytes


@dataclass
class Counters:
    """What a store did: `.stats` and the tests show it."""

    hits: int = 0
    misses: int = 0
    puts: int = 0
    corrupt: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, name: str) -> None:
        """Count one event; threads may do so at once."""
        with self._lock:
            setattr(self, name, getattr(self, name) + 1)


class _ContentError(Exception):
    """The bytes of an entry are not what `put` wrote."""


# ------------------------------------------------------------------------------------------ file format


def encode(key: str, entry: Entry) -> bytes:
    """The bytes of an entry's file."""
    metadata = json.dumps(entry.metadata, sort_keys=True, ensure_ascii=True, allow_nan=False).encode("ascii")
    source = entry.source.encode("utf-8", "surrogatepass")
    body = entry.binary + metadata + source
    head = _HEAD.pack(MAGIC, VERSION, len(entry.binary), len(metadata), len(source))
    return b"".join((body, head, _digest(key, body, head)))


def _digest(key: str, body: bytes | memoryview, head: bytes | memoryview) -> bytes:
    """The checksum; it covers the key, so that a file under another entry's name is not believed."""
    state = xxhash.xxh3_128(seed=SEED)
    for part in (key.encode("ascii"), body, head):
        state.update(part)
    return state.digest()


def _sizes(head: bytes, file_size: int) -> tuple[int, int, int]:
    """The three sizes of an entry, once they are known to fit the file."""
    magic, version, *sizes = _HEAD.unpack(head)
    if magic != MAGIC or version != VERSION:
        raise _ContentError("the footer is not one of this format")
    if sum(sizes) + _FOOTER_SIZE != file_size:
        raise _ContentError("the sizes do not add up to the file's")
    return sizes[0], sizes[1], sizes[2]


def _read(path: Path, key: str) -> Entry:
    """Read and check one file.  OSError: could not read.  _ContentError: read, and wrong."""
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode) or not _FOOTER_SIZE <= found.st_size <= SIZE_LIMIT:
        raise _ContentError("the file has an impossible size or type")
    with open(os.open(path, _READ), "rb") as file:
        file.seek(found.st_size - _FOOTER_SIZE)
        binary_size, metadata_size, source_size = _sizes(file.read(_HEAD.size), found.st_size)
        file.seek(0)
        content = memoryview(file.read(found.st_size))
        with contextlib.suppress(OSError):  # recency, for `sweep`; a read-only disk may refuse
            os.utime(path)
    body_size = binary_size + metadata_size + source_size
    head_end = body_size + _HEAD.size
    digest = _digest(key, content[:body_size], content[body_size:head_end])
    if len(content) != found.st_size or content[head_end:] != digest:
        raise _ContentError("the checksum does not match")
    text_start = binary_size + metadata_size
    try:
        metadata = json.loads(bytes(content[binary_size:text_start]))
        source = bytes(content[text_start:body_size]).decode("utf-8", "surrogatepass")
    except ValueError as reason:
        raise _ContentError(f"the text does not decode: {reason}") from None
    if not isinstance(metadata, dict):
        raise _ContentError("the metadata are no object")
    return Entry(metadata, source, bytes(content[:binary_size]))


# ------------------------------------------------------------------------------------------ directories


def refusal(directory: Path) -> str | None:
    """Why a directory must not be used, or None.  FileNotFoundError when it does not exist."""
    named, found = os.lstat(directory), os.stat(directory)
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a directory"
    if not hasattr(os, "geteuid"):
        return None
    user = os.geteuid()
    if found.st_uid != user or named.st_uid != user:
        return f"it belongs to user {found.st_uid}, and this process runs as user {user}"
    if found.st_mode & 0o022:
        return f"others may write to it (mode {stat.S_IMODE(found.st_mode):04o}); chmod go-w makes it usable"
    return None


class _PrivateDirectories:
    """Temporary directories of this process, one a place, made when needed, removed at exit."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, str], Path] = {}
        self._lock = threading.Lock()

    def get(self, place: str) -> Path:
        """The private directory in `place`; a forked child gets its own."""
        with self._lock:
            key = (os.getpid(), place)
            known = self._made.get(key)
            if known is None or not known.is_dir():
                if not self._made:
                    atexit.register(self.remove)
                known = self._made[key] = Path(tempfile.mkdtemp(prefix="mgjit-", dir=place))
            return known

    def remove(self) -> None:
        """Remove what this very process made; a library that is still mapped stays usable."""
        for (pid, _place), directory in list(self._made.items()):
            if pid == os.getpid():
                shutil.rmtree(directory, ignore_errors=True)
                del self._made[pid, _place]


_private = _PrivateDirectories()


# ---------------------------------------------------------------------------------------------- the store


class Store:
    """Entries by key, on disk when `directory` is usable, else (or with `memory_only`) in this process.

    Safe to share between threads and processes.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None, *, memory_only: bool = False) -> None:
        if directory is None and not memory_only:
            raise ValueError("a store needs a directory, or memory_only=True")
        self.directory = None if memory_only or directory is None else Path(os.path.abspath(directory))
        self.counters = Counters()
        self.problem: str | None = None  # why the store no longer writes to its directory
        self._memory: dict[str, Entry] = {}
        self._moved: dict[str, int] = {}  # key -> which scratch directory its library is loaded from
        self._unsafe = False
        self._next_sweep = 0.0

    def get(self, key: str) -> Entry | None:
        """The entry of a key, or None; damaged entries are deleted on the way."""
        entry = self._find(key)
        self.counters.add("misses" if entry is None else "hits")
        return entry

    def put(self, key: str, entry: Entry) -> Path | None:
        """Keep an entry; the path is the library's, ready to load; None: there is nowhere to put it."""
        path = self._path(key)
        if path is not None and self.problem is None:
            try:
                self._publish(path, encode(key, entry))
                self.counters.add("puts")
                return path
            except OSError as reason:
                self._give_up(reason)
        self._memory[key] = entry
        self.counters.add("puts")
        return self.library_path(key)

    def library_path(self, key: str) -> Path | None:
        """The file to load for a key that `get` or `put` has just handled; None when there is none."""
        path = self._path(key)
        if key not in self._memory and key not in self._moved:
            return path if path is not None and path.exists() else None
        entry = self._memory.get(key) or self._find(key)
        return None if entry is None else self._temporary_library(key, entry)

    def load_failed(self, key: str, reason: str) -> Path | None:
        """Tell that the library did not load, as on a disk mounted noexec: another place to load it from.

        Each call moves on to the next directory; None when all have failed.
        """
        entry = self._memory.get(key) or self._find(key)
        if entry is None:
            return None
        if key not in self._memory and key not in self._moved:
            self._warn(f"libraries do not load from {self.directory} ({reason}); temporary copies are used")
            self._moved[key] = 0
        else:
            self._moved[key] = self._moved.get(key, 0) + 1
        self._memory[key] = entry
        return self._temporary_library(key, entry)

    def keys(self) -> list[str]:
        """The keys on disk and in memory."""
        return sorted({path.name[: -len(_SUFFIX)] for path in self._files()} | set(self._memory))

    def size(self) -> int:
        """Bytes on disk."""
        return sum(_state(path)[1] for path in self._files())

    def remove(self, key: str) -> None:
        """Forget an entry, on disk as well."""
        self._memory.pop(key, None)
        path = self._path(key)
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink()

    def clear(self) -> int:
        """Forget all entries; how many there were."""
        keys = self.keys()
        for key in keys:
            self.remove(key)
        return len(keys)

    def sweep(self, limit: int = SIZE_LIMIT) -> int:
        """When there are more than `limit` bytes, delete the entries used longest ago, down to 80 % of it."""
        now = time.time()
        for path in self._files(_TEMPORARY):  # left behind by a process that was killed
            if _state(path)[0] < now - 3600:
                with contextlib.suppress(OSError):
                    path.unlink()
        files = sorted((*_state(path), path) for path in self._files())
        total, removed = sum(size for _, size, _ in files), 0
        if total > limit:
            for _, size, path in files:
                if total <= limit * 8 // 10:
                    break
                with contextlib.suppress(OSError):
                    path.unlink()
                    total, removed = total - size, removed + 1
        return removed

    # -- inside ----------------------------------------------------------------------------------------

    def _path(self, key: str) -> Path | None:
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is not a cache key")
        return None if self.directory is None or self._unsafe else self.directory / (key + _SUFFIX)

    def _files(self, suffix: str = _SUFFIX) -> list[Path]:
        if self.directory is None or self._unsafe:
            return []
        try:
            return [path for path in self.directory.iterdir() if path.name.endswith(suffix)]
        except OSError:
            return []

    def _find(self, key: str) -> Entry | None:
        """The entry of a key, uncounted."""
        path = self._path(key)
        if key in self._memory or path is None:
            return self._memory.get(key)
        try:
            self._check_directory(path.parent)
            return _read(path, key)
        except FileNotFoundError:
            return None
        except OSError as reason:
            self._give_up(reason)
        except _ContentError as reason:
            self.counters.add("corrupt")
            settings.LOGGER.info("cache entry %s is damaged and deleted: %s", path, reason)
            with contextlib.suppress(OSError):
                path.unlink()
        return None

    def _check_directory(self, directory: Path) -> None:
        """PermissionError for a directory that somebody else controls; from then on it is not even read."""
        reason = refusal(directory)
        if reason is not None:
            self._unsafe = True
            raise PermissionError(reason)

    def _publish(self, path: Path, content: bytes) -> None:
        """Make a file appear under its final name, complete, or not at all."""
        os.makedirs(path.parent, mode=0o700, exist_ok=True)
        self._check_directory(path.parent)
        self._sweep_sometimes(path.parent)
        temporary = path.with_name(f".{path.stem[:40]}.{os.getpid()}.{os.urandom(8).hex()}{_TEMPORARY}")
        try:
            _write(temporary, content, lasting=True)
            try:
                os.link(temporary, path)
            except FileExistsError:
                pass  # another process was faster; the content is the same
            except (OSError, AttributeError, NotImplementedError):  # no hard links here
                os.replace(temporary, path)
        finally:
            with contextlib.suppress(OSError):  # a failed clean-up never fails a put
                temporary.unlink()

    def _sweep_sometimes(self, directory: Path) -> None:
        """`sweep`, at most once an hour over all processes."""
        now = time.time()
        if now < self._next_sweep:
            return
        self._next_sweep = now + 3600
        stamp = directory / _STAMP
        if _state(stamp)[0] > now - 3600:
            return
        with contextlib.suppress(OSError):
            stamp.touch(mode=0o600)
        self.sweep()

    def _temporary_library(self, key: str, entry: Entry) -> Path | None:
        """The library as a file in a private temporary directory."""
        places = settings.scratch_directories()[self._moved.get(key, 0) :]
        for place in places:
            try:
                path = _private.get(place) / (key + _SUFFIX)
                if not path.exists():
                    temporary = path.with_name(f".{os.urandom(8).hex()}{_TEMPORARY}")
                    _write(temporary, entry.binary, lasting=False)
                    os.replace(temporary, path)
                return path
            except OSError as reason:
                settings.LOGGER.info("no temporary library in %s: %s", place, reason)
        return None

    def _give_up(self, reason: OSError) -> None:
        """Stop writing to the directory, and say so once."""
        if self.problem is None:
            self.problem = reason.strerror or str(reason)
            self._warn(f"the cache {self.directory} cannot be used: {self.problem}; memory is used instead")

    def _warn(self, text: str) -> None:
        if settings.cache_is_strict():
            raise CacheError(text)
        advice = "MGJIT_CACHE_DIR names another directory"
        warnings.warn(f"mgjit: {text}. {advice}.", BackendWarning, stacklevel=4)


def _write(path: Path, content: bytes, *, lasting: bool) -> None:
    """Write a new private file; a lasting one is on the disk when this returns."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600), "wb") as file:
        file.write(content)
        if lasting:
            file.flush()
            os.fsync(file.fileno())


def _state(path: Path) -> tuple[float, int]:
    """Time of last use and size; zeros for a file that is gone."""
    try:
        found = path.stat()
    except OSError:
        return 0.0, 0
    return found.st_mtime, found.st_size


_stores: dict[Path, Store] = {}


def open_store() -> Store:
    """The store of this process: in MGJIT_CACHE_DIR, else in the user's cache directory."""
    directory = Path(os.path.abspath(settings.cache_directory()))
    return _stores.setdefault(directory, Store(directory))
