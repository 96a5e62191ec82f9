"""Functions that generated code calls for lists of numbers: they check types, make bytes, and copy mixed numbers.

1. A check looks at the types of the numbers at some positions of a list.
2. A packer makes the bytes of a long list, in C where that is possible.
3. Of numbers that are ints and floats in turn, the codes of their types are copied as well.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...engine.kinds import is_float64
from ...engine.numeric import is_number_type
from ...memory.live import Home
from ..call.in_c import in_c
from ..record.mixed import TYPES

if TYPE_CHECKING:
    from .copies import Copied

_DOUBLE = struct.calcsize("d")
#: When a long list has been packed so often, the extension is asked for.
_MANY_CALLS = 1_000


def are_plain(numbers: Iterable[Any]) -> bool:
    """Whether these are numbers, or homes of numbers; what can be converted to one may compute in another way.

    Those of numpy's type float64 are told from others.
    """
    kinds = list(map(type, numbers))
    return kinds.count(float) == len(kinds) or all(
        (is_number_type(kind) and not is_float64(kind)) or kind is bool or kind is Home for kind in set(kinds)
    )


def are_integers(numbers: Sequence[Any], positions: Collection[int], limit: int) -> bool:
    """Whether the numbers at these positions are ints that a kernel computes with exactly."""
    return all(type(numbers[k]) is int and -limit <= numbers[k] <= limit for k in positions)


def are_floats(numbers: Sequence[Any], positions: Collection[int]) -> bool:
    """Whether the numbers at these positions are floats, and of no class derived from it."""
    return are_of_type(numbers, positions, float)


def are_of_type(numbers: Sequence[Any], positions: Collection[int], kind: type) -> bool:
    """Whether the numbers at these positions are of this very type."""
    return all(type(numbers[k]) is kind for k in positions)


def packer(size: int, code: str, positions: Collection[int]) -> Callable[[list[Any]], bytes]:
    """A function that makes the bytes of an array of a long list, in C where CPython's headers are there.

    It raises a TypeError or ValueError for a list of another length, and if something else than a number is at one of
    these positions: what has `__float__` may compute in its own way.
    """
    pack, calls = struct.Struct(f"={size}{code}").pack, 0

    def packed(numbers: list[Any]) -> bytes:
        nonlocal calls
        extension = in_c.extension
        floats = extension.floats if code == "d" and extension is not None else None
        found: bytes | None = None if floats is None else floats(numbers)
        if found is not None:
            if len(found) != size * _DOUBLE:
                raise ValueError
            return found
        calls += 1
        if calls == _MANY_CALLS and extension is not None:
            extension.is_ready()
        if not are_plain([numbers[k] for k in positions] if len(positions) < len(numbers) else numbers):
            raise TypeError
        return pack(*numbers)

    return packed


def mixed_copiers(buffer: array[float], part: Copied) -> tuple[Callable[[list[Any]], bool], Callable[[], list[Any]]]:
    """Functions that copy numbers of either type into a buffer, where the codes of their types follow, and back."""
    start, middle, end = part.offset, part.offset + part.count, part.offset + 2 * part.count

    def take(numbers: list[Any]) -> bool:
        kinds = list(map(type, numbers))
        integers = [number for number, kind in zip(numbers, kinds) if kind is int]
        if len(numbers) != part.count or not set(TYPES).issuperset(kinds):
            return False
        if integers and not -part.limit <= min(integers) <= max(integers) <= part.limit:
            return False
        buffer[start:end] = array(buffer.typecode, [*numbers, *map(TYPES.index, kinds)])
        return True

    def put() -> list[Any]:
        return [TYPES[int(code)](number) for number, code in zip(buffer[start:middle], buffer[middle:end])]

    return take, put
