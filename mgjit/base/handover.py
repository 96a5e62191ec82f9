"""Hand an object to another process through a file, without copies of its large arrays.

1. It is pickled (protocol 5), but for the contents of its arrays (PEP 574).
2. The file has the lengths of all parts, the pickle, and the contents one after the other.
3. The other process maps the file into its memory, and makes each array from its part.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import struct
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

#: An array of fewer bytes is part of the pickle.
_FEW_BYTES = 4096
_NUMBER = struct.Struct("<Q")

#: The pickle, and the contents of arrays.
Parts = Sequence[memoryview]


def parts_of(thing: Any) -> Parts:
    """The parts of an object, whose arrays must not change until they are written."""
    buffers: list[memoryview] = []
    file = io.BytesIO()
    pickler = pickle.Pickler(file, protocol=5, buffer_callback=lambda found: buffers.append(found.raw()))
    pickler.dispatch_table = {array: _reduced}
    pickler.dump(thing)
    return memoryview(file.getvalue()), *buffers


def write(parts: Parts, descriptor: int) -> None:
    """Make these parts the content of a file.

    Raises:
        OSError: there is no space.
    """
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.ftruncate(descriptor, 0)
    with open(descriptor, "wb", closefd=False) as file:
        for number in (len(parts), *(part.nbytes for part in parts)):
            file.write(_NUMBER.pack(number))
        for part in parts:
            file.write(part)


def read(descriptor: int) -> Any:
    """The object whose parts are the content of a file."""
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as content, memoryview(content) as view:
        (count,) = _NUMBER.unpack_from(view)
        lengths = [_NUMBER.unpack_from(view, _NUMBER.size * number)[0] for number in range(1, count + 1)]
        edges = list(accumulate(lengths, initial=_NUMBER.size * (count + 1)))
        parts = [view[low:high] for low, high in zip(edges, edges[1:])]
        try:
            return pickle.loads(parts[0], buffers=parts[1:])  # noqa: S301 - of our own process
        finally:
            for part in parts:
                part.release()


def _reduced(numbers: array[Any]) -> Any:
    if numbers.itemsize * len(numbers) < _FEW_BYTES:
        return array, (numbers.typecode, numbers.tobytes())
    return _array, (numbers.typecode, pickle.PickleBuffer(numbers))


def _array(typecode: str, content: memoryview) -> array[Any]:
    made: array[Any] = array(typecode)
    made.frombytes(content)
    return made
