"""Checkpoints: everything that a step keeps from call to call, in one file that does not depend on the number of ranks.

1. A line of JSON: the step, how many calls it has made, what the user adds, the random generators, and how many numbers
   of which format follow.
2. The numbers: parameters in the order in which the step has met them, whatever their layout in memory; then the state.
3. A checksum of everything before it.

A file is written under another name first, and then renamed: it is there completely, or not at all.
"""

from __future__ import annotations

import json
import os
import sys
from array import array
from pathlib import Path
from typing import Any, NamedTuple

import xxhash

from ..errors import CheckpointError, user_location
from ..runtime.kernel import Kernel
from .agreement import Memory, generator_states, restore_generators

_FORMAT = 1
_CHECKSUM = 16


class Checkpoint(NamedTuple):
    """What a file says: its head, and its numbers."""

    path: str
    head: dict[str, Any]
    numbers: bytes


def write(path: str, step: str, calls: int, extra: dict[str, Any], kernel: Kernel, memories: list[Memory]) -> None:
    """Write a checkpoint.

    Raises:
        OSError: it cannot be written.
        TypeError: `extra` is no JSON.
    """
    numbers = [_natural(kernel, place, memory) for place, memory in enumerate(memories)]
    head = {
        "mgjit checkpoint": _FORMAT,
        "step": step,
        "calls": calls,
        "extra": extra,
        "generators": json.loads(generator_states(kernel)),
        "numbers": [[one.typecode, len(one)] for one in numbers],
        "byte order": sys.byteorder,
    }
    content = json.dumps(head).encode() + b"\n" + b"".join(one.tobytes() for one in numbers)
    unfinished = f"{path}.{os.getpid()}.part"
    try:
        with open(unfinished, "wb") as file:
            file.write(content + xxhash.xxh3_128_digest(content))
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise


def read(path: str) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        OSError: it cannot be read.
        CheckpointError: it is damaged.
    """
    content = Path(path).read_bytes()
    body, checksum = content[:-_CHECKSUM], content[-_CHECKSUM:]
    if xxhash.xxh3_128_digest(body) != checksum:
        raise CheckpointError(f"{user_location()}: {path} is no checkpoint, or is damaged: its checksum is wrong.")
    line, _, numbers = body.partition(b"\n")
    head = json.loads(line)
    if head.get("mgjit checkpoint") != _FORMAT or head["byte order"] != sys.byteorder:
        raise CheckpointError(f"{user_location()}: {path} was written by another version, or on another processor.")
    return Checkpoint(path, head, numbers)


def apply(checkpoint: Checkpoint, step: str, kernel: Kernel, memories: list[Memory]) -> None:
    """Give a step the numbers of a checkpoint.

    Raises:
        CheckpointError: it is of another step.
    """
    here = [_natural(kernel, place, memory) for place, memory in enumerate(memories)]
    expected = [[one.typecode, len(one)] for one in here]
    if checkpoint.head["numbers"] != expected:
        raise CheckpointError(
            f"{user_location()}: {checkpoint.path} is of another step, {checkpoint.head['step']}, with "
            f"{_in_words(checkpoint.head['numbers'])}; {step} has {_in_words(expected)}."
        )
    start = 0
    for place, (memory, old) in enumerate(zip(memories, here)):
        numbers = array(old.typecode)
        numbers.frombytes(checkpoint.numbers[start : start + len(old) * old.itemsize])
        start += len(old) * old.itemsize
        for position, number in zip(_places(kernel, place, memory), numbers):
            memory.buffer[position] = number
    if kernel.copies is not None:
        kernel.copies.show()
    restore_generators(kernel, json.dumps(checkpoint.head["generators"]).encode())


def _in_words(sizes: list[Any]) -> str:
    return " and ".join(f"{count} numbers" for _, count in sizes)


def _places(kernel: Kernel, place: int, memory: Memory) -> Any:
    """The places of the numbers of a memory, in an order that does not depend on layouts."""
    if place < len(kernel.parameters):
        return kernel.parameters[place].places(range(kernel.parameters[place].size))
    return kernel.state_places[place - len(kernel.parameters)]


def _natural(kernel: Kernel, place: int, memory: Memory) -> array[float]:
    form = memoryview(memory.buffer).format or "d"
    return array(form, map(memory.buffer.__getitem__, _places(kernel, place, memory)))
