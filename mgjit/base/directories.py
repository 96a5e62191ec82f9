"""Which directories the store may use: whoever can write to one can run code in this process.

1. `resolve` follows a path component by component, as the system does.  Every directory and link on the way must
   belong to this user or to the owner of the machine, and nobody else may be able to replace what is in it: it is
   not writable by others, or it is sticky, as /tmp is.  The rules for the last one, which holds the libraries, are
   stricter: it belongs to this user (or root), and only its owner may write to it.
2. `Directory` is a candidate that passed: its real path, so that no link can be changed afterwards, and whether it
   is writable.  `refusal` checks it again at each use, which costs one call.
3. Libraries cannot be loaded from a file system that is mounted noexec, so such a directory is refused too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from . import files

_MOST_LINKS = 40
_NOEXEC: int = getattr(os, "ST_NOEXEC", 8 if sys.platform == "linux" else 0)  # PyPy does not name it


class Refused(PermissionError):
    """The directory exists and must not be used."""


def resolve(path: str, *, shared: bool = False) -> str:
    """The real path of a directory that nobody else controls.

    Args:
        path: its name, which may contain links.
        shared: whether others may put files of their own there, as in /tmp, as long as they cannot replace ours.

    Raises:
        Refused: somebody else could change what is in it.
        FileNotFoundError: it does not exist.
        OSError: it cannot be inspected.
    """
    current, rest = _split(os.path.abspath(path))
    links = 0
    root = files.lstat(current)
    if not rest:
        _require(_swappable(root, root, is_link=False) if shared else refusal_of(root), current)
    while rest:
        name = rest.pop()
        if name == os.pardir:
            current = os.path.dirname(current)
            continue
        place = os.path.join(current, name)
        found = files.lstat(place)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            _require(_swappable(found, root, is_link=True), place)
            start, more = _split(os.path.join(current, files.readlink(place)))
            current, rest = start, rest + more
        else:
            current = place
            _require(_swappable(found, root, is_link=False) if rest or shared else refusal_of(found), current)
    return current


def can_hold_private(path: str) -> bool:
    """Whether a private directory can be made there that nobody else can replace."""
    try:
        resolve(path, shared=True)
    except OSError:
        return False
    return True


def refusal(path: str) -> str | None:
    """Why a directory must not be used (any more), or None; the path comes from `resolve`."""
    return refusal_of(files.lstat(path))


def refusal_of(found: os.stat_result) -> str | None:
    """Why a directory with this status must not hold libraries, or None."""
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a directory"
    if not hasattr(os, "geteuid"):
        return None
    user = os.geteuid()
    if found.st_uid not in (user, 0):
        return f"it belongs to user {found.st_uid}, and this process runs as user {user}"
    if found.st_mode & 0o022:
        return f"others may write to it (mode {stat.S_IMODE(found.st_mode):04o}); chmod go-w makes it usable"
    return None


def _swappable(found: os.stat_result, root: os.stat_result, *, is_link: bool) -> str | None:
    """Why somebody else could replace what lies below a directory or link on the way, or None."""
    if not is_link and not stat.S_ISDIR(found.st_mode):
        return "it is not a directory"
    if not hasattr(os, "geteuid"):
        return None
    if found.st_uid not in (os.geteuid(), 0, root.st_uid):  # in a container, root may appear under another uid
        return f"it belongs to user {found.st_uid}, who could replace what is in it"
    if is_link or found.st_mode & stat.S_ISVTX:
        return None
    # Where each user has a private group with the same number, new directories are group-writable.
    private_group = found.st_gid == os.getegid() == os.geteuid()
    if found.st_mode & (0o002 if private_group else 0o022):
        return f"others may replace what is in it (mode {stat.S_IMODE(found.st_mode):04o}); chmod go-w makes it usable"
    return None


def _require(reason: str | None, place: str) -> None:
    if reason is not None:
        raise Refused(errno.EACCES, f"{place}: {reason}")


def _split(path: str) -> tuple[str, list[str]]:
    """The root of an absolute path, and its other components, last one first."""
    drive, rest = os.path.splitdrive(path)
    separators = rest.replace(os.altsep, os.sep) if os.altsep else rest
    names = [name for name in separators.split(os.sep) if name not in ("", os.curdir)]
    return drive + os.sep, names[::-1]


def make(path: str) -> None:
    """Make a directory, and its missing parents, accessible to this user only."""
    missing = []
    while not _exists(path):
        missing.append(path)
        path = os.path.dirname(path)
    for place in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process was faster
            files.mkdir(place)


def _exists(path: str) -> bool:
    try:
        files.stat(path)
    except FileNotFoundError:
        return os.path.dirname(path) == path
    return True


class Directory:
    """A directory that may be used.

    Attributes:
        name: as it was asked for. path: its real path.
        writable: whether entries may be written; false after a disk error.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = ""
        self.writable = True

    @classmethod
    @files.uninterrupted
    def open(cls, name: str, *, make: bool = True) -> Directory:
        """Open the directory, making it if necessary.  Raises OSError with the reason if it cannot be used."""
        directory = cls(name)
        if make:
            directory.make()
        else:
            directory.path = resolve(name)
        if files.mount_flags(directory.path) & _NOEXEC:
            raise Refused(errno.EACCES, "it is mounted noexec, so that libraries in it cannot be loaded")
        directory.writable = files.access(directory.path, os.W_OK | os.X_OK)
        return directory

    @files.uninterrupted
    def make(self) -> None:
        """Make the directory (again) if it does not exist, and check who controls it."""
        try:
            self.path = resolve(self.name)
        except FileNotFoundError:
            make(self.name)
            self.path = resolve(self.name)

    @files.uninterrupted
    def check(self) -> None:
        """Raise Refused if somebody else controls it by now, FileNotFoundError if it no longer exists."""
        reason = refusal(self.path)
        if reason is not None:
            raise Refused(errno.EACCES, reason)

    def file(self, name: str) -> str:
        """The path of a file in it."""
        return os.path.join(self.path, name)


@dataclass(frozen=True)
class Candidate:
    """A candidate directory, and whether it would be used now.

    Attributes:
        name: as it was asked for.
        state: "used", "read-only", "missing" (it will be made), "refused", or "spare" (a better one is used).
        reason: why it is refused, or empty.
        directory: the opened directory, if it exists and is used or read.
    """

    name: str
    state: str
    reason: str = ""
    directory: Directory | None = None


def survey(names: Sequence[str | os.PathLike[str]]) -> list[Candidate]:
    """The state of each candidate, in order, without making any directory."""
    found: list[Candidate] = []
    for name in map(os.path.abspath, names):
        taken = any(candidate.state in ("used", "missing") for candidate in found)
        found.append(Candidate(name, "spare") if taken else _candidate(name))
    return found


def _candidate(name: str) -> Candidate:
    try:
        directory = Directory.open(name, make=False)
    except FileNotFoundError:
        reason = _why_not_made(name)
        return Candidate(name, "refused", reason) if reason else Candidate(name, "missing")
    except OSError as error:
        return Candidate(name, "refused", error.strerror or str(error))
    return Candidate(name, "used" if directory.writable else "read-only", "", directory)


def _why_not_made(name: str) -> str:
    """Why a missing directory cannot be made; empty if it can, as far as can be told without trying."""
    while not _exists(name):
        name = os.path.dirname(name)
    try:
        place = resolve(name, shared=True)
    except OSError as error:
        return error.strerror or str(error)
    return "" if files.access(place, os.W_OK | os.X_OK) else f"it cannot be made in {place}, which is read-only for us"
