"""Telling whole shared objects from everything else."""

from __future__ import annotations

import random
import struct

import pytest

from mgjit.compiler.toolchain import build
from mgjit.compiler.toolchain.shared_object import is_shared_object, without_executable_stack
from tests.compiler.toolchain.scripts import real

SOURCE = '__attribute__((visibility("default"))) double f(double x) { return x + 0.1; }\n'


def library(family: str) -> bytes:
    """A small shared object; skips where they are not ELF."""
    binary = build.compile_shared(real(family), SOURCE).binary
    if binary[:4] != b"\x7fELF":
        pytest.skip("not ELF")
    return binary


@pytest.mark.parametrize("binary", [b"", b"\x7fELF", b"\x7fELF" + bytes(100), b"#!/bin/sh\n" * 20])
def test_01_what_is_no_shared_object(binary: bytes) -> None:
    """Truncated files, scripts, ELF of another type."""
    assert not is_shared_object(binary)


@pytest.mark.parametrize("family", ["gcc", "clang", "tcc"])
def test_02_every_part_must_be_there(family: str) -> None:
    """A file that ends early would be mapped, and kill the process when a page behind its end is read."""
    binary = library(family)
    start, size, count = struct.unpack_from("<Q", binary, 32) + struct.unpack_from("<HH", binary, 54)
    headers = [struct.unpack_from("<IIQQQQ", binary, start + k * size) for k in range(count)]
    end = max(position + length for kind, _, position, _, _, length in headers if kind == 1)
    assert is_shared_object(binary[: max(end, start + size * count)])
    for length in range(0, end, 97):
        assert not is_shared_object(binary[:length]), length


def test_03_any_bytes_are_judged_without_an_exception() -> None:
    """Random changes of the headers: an answer, whatever it is, and no error of a number that points elsewhere."""
    binary, chosen = library("gcc"), random.Random(1)
    answers = set()
    for _ in range(3000):
        changed = bytearray(binary)
        for _ in range(chosen.randrange(1, 4)):
            changed[chosen.randrange(64 + 56 * 4)] = chosen.randrange(256)
        answer = is_shared_object(bytes(changed))
        if answer:
            without_executable_stack(bytes(changed))
        answers.add(answer)
    assert answers == {False, True}
