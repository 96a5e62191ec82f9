"""The digest of mgjit's own sources: of everything that may decide which code a trace becomes, and how it is called.

1. Every module of the package counts, except for the folders in `APART`, which nothing that makes code imports.
2. The digest is over names and contents, so that the same sources have the same one wherever they are installed.
3. Reading them in each process would take longer than all the rest of a look-up in the cache.  So the cache directory
   keeps a few digests, each under the *signature* of the files: their names, sizes, and times of last change, which
   are asked for without opening them.  Files that have just been changed are always read, because they may be changed
   once more at what is the same time to the file system; so are those of images that keep no times.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import xxhash

from ...base import directories, files, settings
from ...errors import PACKAGE
from .sweep import temporary_path

if TYPE_CHECKING:
    from importlib.abc import Traversable

#: Folders that decide no code, in the order of the alphabet.
APART = frozenset({"cli", "data", "distributed", "export", "parallel", "script"})
#: The file of the cache directory that keeps digests, and how many.
NAME, _MOST = "sources", 16
_LONGEST = 4096
#: Seconds within which two changes of a file may have the same time; a time before which no file of ours was made.
_RESOLUTION, _EARLIEST = 3.0, 1.5e9


def package() -> str:
    """The directory of the package, or where it would be, in an archive."""
    return PACKAGE


def digest_of_sources(root: str) -> str:
    """The digest of the sources below `root`; empty if there are none that this process may read.

    Raises:
        OSError: they cannot be read now.
    """
    try:
        signature = _signature(root)
        known = remembered(signature) if signature else ""
        if known:
            return known
        found = _digest(read_sources(root))
    except (ImportError, PermissionError):  # the process has dropped its privileges, or has no sources
        return ""
    if signature and found:
        remember(signature, found)
    return found


def read_sources(root: str) -> Iterator[tuple[str, bytes]]:
    """The name and content of each module that counts, in a fixed order."""
    if os.path.isdir(root):
        for name, path, _ in _files(root):
            with contextlib.suppress(FileNotFoundError), open(path, "rb", buffering=0) as file:
                yield name, file.read()
    else:  # a zip file
        from importlib import resources  # its import takes longer than everything else here

        yield from _in_archive(resources.files(__package__.partition(".")[0]), "")


def _digest(sources: Iterator[tuple[str, bytes]]) -> str:
    digest, is_empty = xxhash.xxh3_128(), True
    for name, source in sources:
        is_empty = False
        digest.update(f"{name} {len(source)}\n".encode())
        digest.update(source)
    return "" if is_empty else digest.hexdigest()


# ---- 1: which files ---------------------------------------------------------------------------------


def _files(root: str) -> list[tuple[str, str, os.DirEntry[str]]]:
    """The name below `root`, the path, and the entry of each file that counts."""
    found, pending = [], [(root, "")]
    while pending:
        directory, prefix = pending.pop()
        with os.scandir(directory) as entries:
            for entry in entries:
                name = prefix + entry.name
                if entry.name.endswith((".py", ".pyc")):
                    found.append((name, entry.path, entry))
                elif "." not in entry.name and name not in APART and entry.name != "__pycache__" and entry.is_dir():
                    pending.append((entry.path, f"{name}/"))
    found.sort(key=lambda file: file[0])
    return found


def _in_archive(place: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """The same in an archive."""
    if place.is_dir():
        for item in sorted(place.iterdir(), key=lambda item: item.name):
            inner = f"{name}/{item.name}" if name else item.name
            if item.name.endswith((".py", ".pyc")) or ("." not in item.name and inner not in {*APART, "__pycache__"}):
                yield from _in_archive(item, inner)
    elif place.is_file():
        yield name, place.read_bytes()


# ---- 3: without reading them ------------------------------------------------------------------------


def _signature(root: str) -> str:
    """What tells the files below `root` from others without reading them; empty if they have just been changed."""
    if os.path.isdir(root):
        stats = [(name, entry.stat()) for name, _, entry in _files(root)]
    else:
        archive = root
        while not os.path.isfile(archive):
            archive, rest = os.path.split(archive)
            if not rest:
                return ""
        stats = [(archive, os.stat(archive))]
    newest = max((max(found.st_mtime, found.st_ctime) for _, found in stats), default=0.0)
    if not _EARLIEST < newest < time.time() - _RESOLUTION:
        return ""
    lines = [f"{name} {s.st_size} {s.st_ino} {s.st_mtime_ns} {s.st_ctime_ns}" for name, s in stats]
    return xxhash.xxh3_128_hexdigest("\n".join([root, *lines]).encode("utf-8", "surrogateescape"))


def remembered(signature: str) -> str:
    """The digest of files with this signature, as far as a cache directory knows it; otherwise empty."""
    for directory in _directories():
        for line in _lines(directory):
            if line[0] == signature:
                return line[1]
    return ""


def remember(signature: str, digest: str) -> None:
    """Keep the digest of files with a signature, in the first cache directory that is there and can be written to."""
    for directory in _directories():
        kept = [(signature, digest), *(line for line in _lines(directory) if line[0] != signature)][:_MOST]
        path = directory.file(NAME)
        temporary = temporary_path(path)
        with contextlib.suppress(OSError):
            files.write_new(temporary, "".join(f"{one} {other}\n" for one, other in kept).encode(), lasting=False)
            try:
                files.replace(temporary, path)
                return
            except OSError:
                files.unlink(temporary)


def _directories() -> Iterator[directories.Directory]:
    """The cache directories that are there, and that nobody else controls: a wrong digest is a wrong library."""
    for name in settings.cache_directories():
        with contextlib.suppress(OSError):
            yield directories.Directory.open(os.path.abspath(name), make=False)


def _lines(directory: directories.Directory) -> list[list[str]]:
    """What is kept in a directory: pairs of a signature and a digest."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = files.open(directory.file(NAME), files.READ)
        try:
            text = files.read_all(descriptor, _LONGEST).decode("ascii")
        finally:
            files.close(descriptor)
        return [line.split() for line in text.splitlines() if len(line) == 65]  # two hashes of 32 digits each
    return []
