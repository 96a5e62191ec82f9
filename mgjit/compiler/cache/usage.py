"""Usage counts of a cache directory, summed over all processes: hits, misses, puts, damaged entries, hits per entry.

1. A process counts in memory and appends one line (JSON) to the file `usage` when it ends, so a hit writes nothing.
2. `read` adds the lines up.  A line that cannot be parsed is skipped, because nothing depends on these counts.
3. When the file has grown, `compact` renames it away and appends the sum of its lines to a new one.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import Counter
from dataclasses import dataclass, field

from ...base import files
from .sweep import temporary_path

NAME = "usage"
EVENTS = ("hits", "misses", "puts", "corrupt")

_MUCH = 256 * 1024
_READ_LIMIT = 64 * 1024 * 1024


@dataclass
class Usage:
    """Counts of events, and the hits of each key."""

    hits: int = 0
    misses: int = 0
    puts: int = 0
    corrupt: int = 0
    hits_of: Counter[str] = field(default_factory=Counter)

    def count(self, event: str, key: str) -> None:
        """Count one event (thread-safe)."""
        with _counting:
            setattr(self, event, getattr(self, event) + 1)
            if event == "hits":
                self.hits_of[key] += 1

    def merge(self, other: Usage, sign: int = 1) -> None:
        """Add the counts of another Usage, or subtract them (`sign=-1`)."""
        for event in EVENTS:
            setattr(self, event, getattr(self, event) + sign * getattr(other, event))
        for key, count in other.hits_of.items():
            self.hits_of[key] += sign * count

    def is_empty(self) -> bool:
        """Whether nothing was counted."""
        return not any(getattr(self, event) for event in EVENTS)

    def line(self) -> bytes:
        """These counts as one line of the file."""
        events = {event: getattr(self, event) for event in EVENTS}
        hits = {key: count for key, count in self.hits_of.items() if count}
        return json.dumps([events, hits], separators=(",", ":")).encode("ascii") + b"\n"


def _renew_lock() -> None:
    """In a forked child: replace the lock, which may be held by a thread that does not exist here."""
    global _counting  # noqa: PLW0603 - a lock cannot be unlocked for another thread
    _counting = threading.Lock()


_counting = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def append(directory: str, usage: Usage) -> None:
    """Append the counts of a process."""
    path = os.path.join(directory, NAME)
    if _append(path, usage.line()) > _MUCH:
        compact(directory)


def read(directory: str) -> Usage:
    """The total counts of all processes that have ended."""
    try:
        return _read(os.path.join(directory, NAME))
    except OSError:
        return Usage()


def compact(directory: str, known: frozenset[str] | None = None) -> None:
    """Replace all lines by their sum; with `known`, keep only the hits of these keys."""
    path = os.path.join(directory, NAME)
    taken = temporary_path(path)
    with contextlib.suppress(OSError):
        files.replace(path, taken)
        usage = _read(taken)
        if known is not None:
            usage.hits_of = Counter({key: count for key, count in usage.hits_of.items() if key in known})
        _append(path, usage.line())
        files.unlink(taken)


@files.uninterrupted
def _append(path: str, line: bytes) -> int:
    """Append a line in one write; returns the new size of the file."""
    descriptor = files.open(path, files.APPEND)
    try:
        files.write(descriptor, line)
        return files.fstat(descriptor).st_size
    finally:
        files.close(descriptor)


@files.uninterrupted
def _read(path: str) -> Usage:
    descriptor = files.open(path, files.READ)
    try:
        content = files.read_all(descriptor, _READ_LIMIT)
    finally:
        files.close(descriptor)
    total = Usage()
    for line in content.splitlines():
        found = _parsed(line)
        if found is not None:
            total.merge(found)
    return total


def _parsed(line: bytes) -> Usage | None:
    try:
        events, hits = json.loads(line)
        whole = {name: int(events.get(name, 0)) for name in EVENTS}
        each = {str(key): int(count) for key, count in hits.items()}
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    return Usage(**whole, hits_of=Counter(each))
