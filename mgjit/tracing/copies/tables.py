"""Tables of which a call needs only what its indices choose: those rows are copied, and no others.

A table is a list of rows, which are lists of floats, or one list of floats.  Where a step reads and assigns its
elements by run-time indices only, and these are arguments, a call knows before it runs which rows it needs
(tracer/indexed.py finds such tables).  What the State has in place of the others is whatever; nobody looks at it.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .copies import Copied

_FLOATS = frozenset({float})


@dataclass
class Table:
    """Rows of equal length, at equal distances in the State.

    Attributes:
        rows: what is copied; if it is a single list, its elements are the rows.
        count: how many rows there are.
        pitch: between the first numbers of two rows in the State.
        inputs: the places of the indices among the packed numbers of a call.
    """

    rows: list[Copied]
    count: int
    pitch: int
    inputs: tuple[int, ...]


Take = Callable[[Sequence[Any], Sequence[float]], bool]
Put = Callable[[Sequence[Any]], None]


def copiers(buffer: array[float], table: Table, positions: Sequence[int]) -> tuple[Take, Put]:
    """Functions that copy the rows that are chosen into a buffer, and back.

    The first one takes the rows and the indices of a call, and returns False if something is not what it should be.

    Args:
        positions: of the indices of this table among those that are given.
    """
    chosen: set[int] = set()
    copy = _of_elements if len(table.rows) == 1 else _of_rows
    take_these, put_these = copy(buffer, table, chosen)

    def take(rows: Sequence[Any], indices: Sequence[float]) -> bool:
        chosen.clear()
        if len(rows) != table.count:
            return False
        chosen.update([int(indices[k]) for k in positions])
        return take_these(rows)

    return take, put_these


def _of_rows(buffer: array[float], table: Table, chosen: set[int]) -> tuple[Callable[[Any], bool], Put]:
    first = table.rows[0]
    start, step, columns = first.offset * buffer.itemsize, table.pitch * buffer.itemsize, first.positions
    form = struct.Struct(f"={first.size}{buffer.typecode}")
    pack, unpack = form.pack_into, form.unpack_from

    def take(rows: Sequence[Any]) -> bool:
        for k in chosen:
            row = rows[k]
            if type(row) is not list or not _FLOATS.issuperset(map(type, row)):
                return False
            pack(buffer, start + step * k, *row)
        return True

    def put(rows: Sequence[Any]) -> None:
        for k in chosen:
            if columns is None:
                rows[k][:] = unpack(buffer, start + step * k)
            else:
                row, numbers = rows[k], unpack(buffer, start + step * k)
                for column in columns:
                    row[column] = numbers[column]

    return take, put


def _of_elements(buffer: array[float], table: Table, chosen: set[int]) -> tuple[Callable[[Any], bool], Put]:
    start = table.rows[0].offset

    def take(numbers: Sequence[Any]) -> bool:
        for k in chosen:
            if type(numbers[k]) is not float:
                return False
            buffer[start + k] = numbers[k]
        return True

    def put(numbers: Any) -> None:
        for k in chosen:
            numbers[k] = buffer[start + k]

    return take, put
