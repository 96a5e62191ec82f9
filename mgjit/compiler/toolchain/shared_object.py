"""Check a compiler's output: is it a shared object, is it complete, and would it ask for an executable stack?

A loader maps the segments that the header names.  If the file ends before them, it maps pages that do not exist, and
the process is killed when it touches one.  So the segments are checked before anything is mapped.
"""

from __future__ import annotations

import struct

_LOAD, _DYNAMIC, _GNU_STACK = 1, 2, 0x6474E551

_MACH_O = (b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


def is_shared_object(binary: bytes) -> bool:
    """Whether the bytes are a shared object: for ELF, a complete one; other formats are recognised by their magic."""
    if len(binary) < 64:
        return False
    if binary[:4] == b"\x7fELF":
        return _is_elf_library(binary)
    return binary[:4] in _MACH_O or binary[:2] == b"MZ"


def _is_elf_library(binary: bytes) -> bool:
    try:
        (kind,) = struct.unpack_from(_order(binary) + "H", binary, 16)
        segments = _segments(binary)
    except (struct.error, OverflowError):  # a table beyond the end of the file
        return False
    kinds = {segment[0] for segment in segments}
    mapped = [segment for segment in segments if segment[0] in (_LOAD, _DYNAMIC)]
    whole = all(position + size <= len(binary) for _, position, size in mapped)
    return kind == 3 and whole and {_LOAD, _DYNAMIC} <= kinds  # 3: ET_DYN


def _order(binary: bytes) -> str:
    return "<" if binary[5] == 1 else ">"


def _segments(binary: bytes) -> list[tuple[int, int, int]]:
    """Type, file offset and file size of each entry of the program header table."""
    order, wide = _order(binary), binary[4] == 2
    (start,) = struct.unpack_from(order + ("Q" if wide else "I"), binary, 32 if wide else 28)
    size, count = struct.unpack_from(order + "HH", binary, 54 if wide else 42)
    found = []
    for place in range(start, start + size * count, size or 1):
        if wide:
            kind, _, position, _, _, length = struct.unpack_from(order + "IIQQQQ", binary, place)
        else:
            kind, position, _, _, length = struct.unpack_from(order + "IIIII", binary, place)
        found.append((kind, position, length))
    return found


def without_executable_stack(binary: bytes) -> bytes:
    """The same ELF library, with a PT_GNU_STACK header added if it has none, so that its stack is not executable.

    tcc writes no such header, which to a loader means "needs an executable stack": glibc makes the stack of the whole
    process executable, and from 2.41 on refuses to load the library.  The header table is copied to the end of the
    file, where there is room for another entry; loaders accept it anywhere.
    """
    if binary[:4] != b"\x7fELF" or binary[4] != 2:
        return binary
    order = _order(binary)
    (start,) = struct.unpack_from(order + "Q", binary, 32)
    size, count = struct.unpack_from(order + "HH", binary, 54)
    if size != 56 or any(kind == _GNU_STACK for kind, _, _ in _segments(binary)):
        return binary
    table = binary[start : start + size * count]
    padded = bytearray(binary + bytes(-len(binary) % 8))
    struct.pack_into(order + "Q", padded, 32, len(padded))
    struct.pack_into(order + "H", padded, 56, count + 1)
    return bytes(padded) + table + struct.pack(order + "II6Q", _GNU_STACK, 6, 0, 0, 0, 0, 0, 16)
