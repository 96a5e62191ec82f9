"""The rows of a call: which of them are this rank's, and which inputs of the step they determine."""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import xxhash

from ..errors import ArgumentError, user_location
from ..tracing.call.columns import BufferColumn, Column, Columns, ItemsColumn, NumbersColumn, SameColumn, StackedColumn
from ..tracing.call.inputs import BufferNode, NumberNode, NumbersNode
from ..tracing.call.node import Node
from ..tracing.call.plan import ArgumentPlan


def part_of(columns: Columns, low: int, high: int) -> Columns:
    """The rows from `low` to `high`."""
    return columns._replace(columns=[_part(column, low, high) for column in columns.columns], length=high - low)


def _part(column: Column, low: int, high: int) -> Column:
    if isinstance(column, ItemsColumn):
        return ItemsColumn(column.items[low:high])
    if isinstance(column, (NumbersColumn, BufferColumn)):
        return type(column)(column.buffer[low:high])
    if isinstance(column, StackedColumn):
        return StackedColumn([_part(part, low, high) for part in column.parts], column.make)
    return column


def row_inputs(plan: ArgumentPlan, columns: Columns) -> list[range]:
    """The inputs that may differ from row to row."""
    return [found for node, column in zip(plan.nodes, columns.columns) for found in _inputs(node, column)]


def _inputs(node: Node, column: Column) -> Iterator[range]:
    parts = getattr(column, "parts", None)
    children = [child for _, child in node.children()]
    if parts is not None and len(parts) == len(children):
        for child, part in zip(children, parts):
            yield from _inputs(child, part)
    elif column.length is not None or parts is not None:
        yield from _all_inputs(node)


def _all_inputs(node: Node) -> Iterator[range]:
    if isinstance(node, NumberNode):
        yield range(node.place, node.place + 1)
    elif isinstance(node, NumbersNode):
        yield range(node.place, node.place + math.prod(node.shape))
    elif isinstance(node, BufferNode):
        yield range(node.place, node.place + node.size)
    for _, child in node.children():
        yield from _all_inputs(child)


def row_as_bytes(columns: Columns) -> bytes:
    """The first row, without what is the same for all rows.

    Raises:
        ArgumentError: it cannot be pickled.
    """
    row = [None if isinstance(column, SameColumn) else column.row(0) for column in columns.columns]
    file = io.BytesIO()
    pickler = pickle.Pickler(file)
    pickler.dispatch_table = {memoryview: _reduced}
    try:
        pickler.dump(row)
    except Exception as reason:
        raise ArgumentError(
            f"{user_location()}: the first row cannot be sent to ranks without rows: {reason}. Pass numbers, lists, "
            'dicts and arrays, or the whole batch on each rank (rows="all").'
        ) from None
    return file.getvalue()


def row_of_bytes(row: bytes, columns: Columns) -> tuple[Any, ...]:
    """The arguments of a call: a row of another rank, with what is the same for all rows on this one."""
    given: Sequence[Any] = pickle.loads(row)  # noqa: S301 - of a rank of the same program
    return tuple(
        column.row(0) if isinstance(column, SameColumn) else part for column, part in zip(columns.columns, given)
    )


def _reduced(view: memoryview) -> Any:
    return _view, (view.tobytes(), view.format, view.shape)


def _view(content: bytes, form: str, shape: Sequence[int]) -> memoryview:
    return memoryview(content).cast("B").cast(form, shape)  # type: ignore[call-overload, no-any-return]


def digest(columns: Columns) -> bytes:
    """A hash of all rows, equal where they are equal."""
    found = xxhash.xxh3_128()
    for column in columns.columns:
        for part in getattr(column, "parts", [column]):
            if isinstance(part, SameColumn):
                continue
            whole = part.whole()
            if whole is None and isinstance(part, NumbersColumn):
                whole = part.buffer
            try:
                found.update(repr(part.rows(columns.length)).encode() if whole is None else memoryview(whole).tobytes())
            except (TypeError, ValueError, BufferError):  # objects
                found.update(b"-")
    return found.digest()
