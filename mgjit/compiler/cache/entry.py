"""The file of one entry: its format, and how it is checked before anything in it is used.

    shared object | metadata (JSON) | C source | footer

That very file is what the dynamic loader opens: loaders of ELF and Mach-O map what the headers at the start
describe and ignore what follows.  So a binary and its metadata cannot come from two builds, and there is no
second copy to write for loading.

1. The footer has a fixed size: magic, format version, the three sizes, and xxh3_128 (with its own seed) over the key
   and everything before it.
2. `read_entry` opens a regular file that belongs to this user, and reads it whole if its size is plausible.  The
   sizes in the footer must add up to that of the file, and the checksum must match, before anything is used.
3. Bad content is a `ContentError`; a file that cannot be read is an OSError.
4. `publish` writes a temporary file with an unpredictable name beside the final one, syncs it, and links it to the
   final name.  If the name exists already, that is a success: names are hashes of what made the content.  Nothing is
   ever overwritten, because a process that has the old file mapped would see the new contents.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import xxhash

from ...base import files
from .sweep import temporary_path

MAGIC = b"mgjit\r\n\x1a"  # a text-mode copy or a 7-bit channel damages it visibly
VERSION = 1
SEED = 0x6D676A6974  # not the seed of cache keys: a key must not double as a checksum
SIZE_LIMIT = 1 << 30

_HEAD = struct.Struct("<8sIQQQ")
_DIGEST_SIZE = 16
FOOTER_SIZE = _HEAD.size + _DIGEST_SIZE


@dataclass(frozen=True)
class Entry:
    """What the store keeps for a key: a shared object, what is known about it, and its C source."""

    metadata: dict[str, Any]
    source: str
    binary: bytes


class ContentError(Exception):
    """The bytes of an entry are not those that were written."""


def encode(key: str, entry: Entry) -> bytes:
    """The bytes of an entry's file."""
    metadata = json.dumps(entry.metadata, sort_keys=True, ensure_ascii=True, allow_nan=False).encode("ascii")
    source = entry.source.encode("utf-8", "surrogatepass")
    body = entry.binary + metadata + source
    head = _HEAD.pack(MAGIC, VERSION, len(entry.binary), len(metadata), len(source))
    return b"".join((body, head, _digest(key, body, head)))


@files.uninterrupted
def read_entry(path: str, key: str, *, use: bool = True) -> Entry:
    """Read and check the file of an entry.

    Args:
        path: of the file.
        key: of the entry that it should contain.
        use: whether this counts as a use of the entry, for the sweep.

    Raises:
        OSError: it cannot be read.
        ContentError: its content is damaged.
    """
    with _opened(path) as (descriptor, size):
        content = memoryview(files.read_all(descriptor, size))
    if len(content) != size:
        raise ContentError("the file ends early")
    entry = _decode(key, content)
    if use:
        with contextlib.suppress(OSError):  # the disk may be read-only
            files.utime(path)
    return entry


@files.uninterrupted
def read_metadata(path: str) -> dict[str, Any]:
    """The metadata of an entry, unchecked: for display only.  Raises as `read_entry`."""
    with _opened(path) as (descriptor, size):
        files.seek(descriptor, size - FOOTER_SIZE)
        binary_size, metadata_size, _ = _sizes(files.read_all(descriptor, _HEAD.size), size)
        files.seek(descriptor, binary_size)
        return _metadata(files.read_all(descriptor, metadata_size))


@contextlib.contextmanager
def _opened(path: str) -> Iterator[tuple[int, int]]:
    """The descriptor of an entry's file, and its size, which has been checked to be plausible."""
    try:
        descriptor = files.open(path, files.READ)
    except OSError as reason:
        if reason.errno == errno.ELOOP:
            raise ContentError("it is a link") from None
        raise
    try:
        yield descriptor, _size(files.fstat(descriptor))
    finally:
        files.close(descriptor)


def _size(found: os.stat_result) -> int:
    """The size of an entry's file, after checking that it may be read."""
    if not stat.S_ISREG(found.st_mode):
        raise ContentError("it is not a regular file")
    if hasattr(os, "geteuid") and (found.st_uid not in (os.geteuid(), 0) or found.st_mode & 0o022):
        raise ContentError("somebody else owns the file or may write to it")
    if not FOOTER_SIZE <= found.st_size <= SIZE_LIMIT:
        raise ContentError("the file has an impossible size")
    return found.st_size


def _sizes(head: bytes | memoryview, file_size: int) -> tuple[int, int, int]:
    """The three sizes of an entry, after checking that they add up to that of the file."""
    if len(head) != _HEAD.size:
        raise ContentError("the file ends early")
    magic, version, *sizes = _HEAD.unpack(head)
    if magic != MAGIC or version != VERSION:
        raise ContentError("the footer is not one of this format")
    if sum(sizes) + FOOTER_SIZE != file_size:
        raise ContentError("the sizes do not add up to the file's")
    return sizes[0], sizes[1], sizes[2]


def _digest(key: str, body: bytes | memoryview, head: bytes | memoryview) -> bytes:
    """The checksum; it covers the key, so that a file under another entry's name is rejected."""
    state = xxhash.xxh3_128(seed=SEED)
    for part in (key.encode("ascii"), body, head):
        state.update(part)
    return state.digest()


def _decode(key: str, content: memoryview) -> Entry:
    body_size, head_end = len(content) - FOOTER_SIZE, len(content) - _DIGEST_SIZE
    binary_size, metadata_size, _ = _sizes(content[body_size:head_end], len(content))
    if content[head_end:] != _digest(key, content[:body_size], content[body_size:head_end]):
        raise ContentError("the checksum does not match")
    text_start = binary_size + metadata_size
    metadata = _metadata(bytes(content[binary_size:text_start]))
    try:
        source = bytes(content[text_start:body_size]).decode("utf-8", "surrogatepass")
    except ValueError as reason:
        raise ContentError(f"the source does not decode: {reason}") from None
    return Entry(metadata, source, bytes(content[:binary_size]))


def _metadata(text: bytes) -> dict[str, Any]:
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError) as reason:
        raise ContentError(f"the metadata do not decode: {reason}") from None
    if not isinstance(metadata, dict):
        raise ContentError("the metadata are no object")
    return metadata


@files.uninterrupted
def publish(path: str, content: bytes) -> None:
    """Make a file appear under its final name, either complete or not at all."""
    temporary = temporary_path(path)
    try:
        files.write_new(temporary, content, lasting=True)
        try:
            files.link(temporary, path)
        except FileExistsError:
            pass  # another process was faster; the content is the same
        except (OSError, NotImplementedError):  # no hard links here
            files.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):  # a failed clean-up does not make the put fail
            files.unlink(temporary)
