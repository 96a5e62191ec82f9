"""Numbers as C text, as bytes of a data file, and as a checksum of their bits."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..compiler.codegen.scalar import float_literal
from ..engine.precision import Precision

_PER_LINE = 8
#: FNV-1a over words of 32 bits instead of bytes (G. Fowler, L. C. Noll, K.-P. Vo).
CHECKSUM_BASIS, CHECKSUM_PRIME = 0x811C9DC5, 0x01000193


def array_text(head: str, numbers: Sequence[Any], precision: Precision | None) -> str:
    """The definition of a C array.

    Args:
        head: everything before `= {`.
        numbers: its elements.
        precision: of floats; None for ints.
    """
    return "\n".join([f"{head} = {{", *lines_of(numbers, precision), "};\n"])


def lines_of(numbers: Sequence[Any], precision: Precision | None) -> list[str]:
    """The elements of a C array in lines."""
    texts = element_texts(numbers, precision)
    return [f"    {', '.join(texts[k : k + _PER_LINE])}," for k in range(0, len(texts), _PER_LINE)]


def element_texts(numbers: Sequence[Any], precision: Precision | None) -> list[str]:
    """The elements of a C array."""
    return list(map(_integer, numbers)) if precision is None else [float_literal(n, precision) for n in numbers]


def _integer(number: int) -> str:
    if number < -(1 << 31):
        return f"({number + 1}ll - 1)"
    return str(number) if number < 1 << 31 else f"{number}u" if number < 1 << 32 else f"{number}ull"


def integer_type(numbers: Sequence[int]) -> str:
    """The smallest C type that holds some ints."""
    low, high = min(numbers, default=0), max(numbers, default=0)
    return next(f"int{bits}_t" for bits in (8, 16, 32) if -(1 << bits - 1) <= low and high < 1 << bits - 1)


def little_endian(numbers: array[Any]) -> bytes:
    """The bytes of some numbers as a little-endian processor has them in memory."""
    if sys.byteorder == "little":
        return numbers.tobytes()
    swapped = numbers[:]
    swapped.byteswap()
    return swapped.tobytes()


def checksum(arrays: Iterable[array[Any]]) -> int:
    """A checksum of the bits of floats; all nans are alike."""
    found = CHECKSUM_BASIS
    for numbers in arrays:
        for word in _words(numbers):
            found = (found ^ word) * CHECKSUM_PRIME & 0xFFFFFFFF
    return found


def _words(numbers: array[Any]) -> Iterator[int]:
    """The bits of floats as words of 32 bits, the lower half of a double first."""
    single = numbers.typecode == "f"
    nan = (0x7FC00000,) if single else (0, 0x7FF80000)
    size = len(nan)
    words = memoryview(little_endian(numbers)).cast("I") if sys.byteorder == "little" else _swapped(numbers)
    for position, number in enumerate(numbers):
        yield from nan if number != number else words[size * position : size * position + size]


def _swapped(numbers: array[Any]) -> array[int]:
    words = array("I", little_endian(numbers))
    words.byteswap()
    return words
