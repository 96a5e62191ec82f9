"""The packed rows of `step.loop(...)`: its columns, as the kernel takes them.

1. `pack_rows` packs all rows into one table by the plan of row 0.  Numbers become a matrix, as wide as the packed array
   of one call.  A buffer that contains all rows is used without a copy; buffers of one row each are joined.
2. It works on whole columns: each node of the plan takes its column as one list, and containers pass a list to each of
   their parts.  Only if something is unusual (a numpy scalar in a list, a row of another structure) is every row packed
   separately by the plan, which finds the first bad row or shows that there is none.

If Values among the arguments differ from row to row, the rows are checked and packed all the same, but must be separate
calls, because a Value may occur in several rows, or be captured by the step.  So must rows of which some have a list of
ints where others have floats, and rows of other lengths than the first one (which run in turn: runtime/turns.py).
"""

from __future__ import annotations

import copy
import struct
from array import array
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, Callable, NamedTuple

from ...errors import ColumnError, MgjitError, user_location
from ...ir.trace import IndexCheck
from ..surroundings.shapes import attributes
from .columns import Column, Columns, NumbersColumn, StackedColumn
from .containers import DataclassNode, MappingNode, SequenceNode
from .inputs import BufferNode, NumberNode, NumbersNode, is_exact
from .known import KnownNode, ValueNode
from .lengths import lengths_of
from .node import NO_FRAME, Frame, Node
from .objects import ObjectNode
from .plan import ArgumentPlan, plan_arguments
from .stand_ins import is_rebuilt


class MovingBuffer(NamedTuple):
    """Memory with the rows of one buffer at a fixed stride in bytes, which is 0 if all rows share one buffer."""

    memory: Any
    stride: int


class Rows:
    """Packed rows.

    Attributes:
        count: how many rows. start: the number of the first of them.
        packed: the packed numbers of all rows. packed_stride: bytes from one row to the next; 0 if all are the same.
        buffers: one for each buffer of the plan.
        separate: whether Values, or the types of numbers in lists, differ, so that each row must be a separate call.
        ragged: whether rows differ in lengths: they are separate as well, and not packed.
    """

    def __init__(self, plan: ArgumentPlan, frame: Frame, count: int) -> None:
        self.plan, self.count, self.start = plan, count, 0
        self.packed = frame.packed[:]
        self.packed_stride = 0
        self.buffers = [MovingBuffer(buffer, 0) for buffer in frame.buffers]
        self.separate = self.ragged = False

    def spread(self) -> None:
        """Give every row its own packed numbers."""
        if self.packed_stride == 0:
            self.packed = self.packed * self.count
            self.packed_stride = self.plan.precision.size * self.plan.packed_size

    def take(self, packed: array[float], buffers: Sequence[list[Any]]) -> None:
        """Take the packed numbers of all rows, and their buffers, for each region of the plan those of all rows."""
        self.packed, self.packed_stride = packed, self.plan.precision.size * self.plan.packed_size
        self.buffers = [MovingBuffer(_joined(found), _bytes(node)) for node, found in zip(self.plan.buffers, buffers)]

    def after(self, number: int) -> Rows:
        """The rows without the first ones."""
        return self.between(number, self.count) if number else self

    def between(self, first: int, end: int) -> Rows:
        """The rows from one on, up to another."""
        rest = copy.copy(self)
        rest.start, rest.count = self.start + first, end - first
        width = self.packed_stride // self.plan.precision.size
        rest.packed = self.packed[first * width : end * width] if width else self.packed
        rest.buffers = [
            MovingBuffer(memoryview(memory).cast("B")[first * stride : end * stride] if stride else memory, stride)
            for memory, stride in self.buffers
        ]
        return rest

    def input_column(self, index: int) -> Sequence[float]:
        """Input `index` of the trace in each row (a single number if it is the same in all rows)."""
        if index < self.plan.packed_size:
            return self.packed[index :: self.plan.packed_size]
        node = self._buffer_of(index)
        memory, _ = self.buffers[node.region]
        flat = memoryview(memory).cast("B").cast(node.format)  # type: ignore[call-overload]
        return flat[index - node.place :: node.size].tolist()  # type: ignore[no-any-return]

    def are_exact(self, index: int, limit: int) -> bool:
        """Whether the ints of input `index`, or of the buffer that it belongs to, are not above a limit in any row."""
        if index < self.plan.packed_size:
            return is_exact(self.input_column(index), limit)
        node = self._buffer_of(index)
        return node.is_exact(self.buffers[node.region].memory)

    def _buffer_of(self, index: int) -> BufferNode:
        return next(node for node in self.plan.buffers if node.place <= index < node.place + node.size)

    def are_allowed(self, region: int, count: int, allowed: range) -> bool:
        """Whether `count` elements of a buffer are ints of a range in all rows; False if not told at once."""
        node = next((node for node in self.plan.buffers if node.region == region), None)
        return node is not None and node.size == count and node.are_in(self.buffers[region].memory, allowed)


def alike(checks: Sequence[IndexCheck], plan: ArgumentPlan) -> dict[tuple[int, range], list[IndexCheck]]:
    """Checks by the region of their input, which is -1 for packed numbers, and what is allowed; one for each input."""
    groups: defaultdict[tuple[int, range], dict[int, IndexCheck]] = defaultdict(dict)
    for check in checks:
        buffers = (node.region for node in plan.buffers if node.place <= check.input_index < node.place + node.size)
        groups[next(buffers, -1), check.allowed].setdefault(check.input_index, check)
    return {key: list(of_inputs.values()) for key, of_inputs in groups.items()}


def are_shared(plan: ArgumentPlan, columns: Columns, changed: Collection[int]) -> bool:
    """Whether a row has a container whose contents are inputs, and that is one of some identities."""
    known = frozenset(changed) if plan.has_containers else frozenset()
    return bool(known) and any(_is_shared(node, columns.objects(k), known) for k, node in enumerate(plan.nodes))


def _is_shared(node: Node, items: list[Any], changed: frozenset[int]) -> bool:
    if isinstance(node, NumbersNode) and len(node.shape) == 1:
        return not changed.isdisjoint(map(id, items))
    if type(node).containers is Node.containers:
        return False
    return any(one in changed for item in items for one, _ in node.containers(item))


def pack_rows(plan: ArgumentPlan, frame: Frame, columns: Columns) -> Rows:
    """Pack all rows by the plan of row 0, which `frame` holds.

    Raises:
        ColumnError: a row does not have the structure of row 0.
        ArgumentValueError: an integer that float64 cannot hold.
    """
    rows = Rows(plan, frame, columns.length)
    if not all(_fill(node, column, rows) for node, column in zip(plan.nodes, columns.columns)):
        rows = _pack_one_by_one(plan, columns)
    rows.separate = rows.separate or bool(plan.questions)  # rows may have other answers
    return rows


def _fill(node: Node, column: Column, rows: Rows) -> bool:
    """Pack one column; returns False if each row must be packed separately."""
    if column.length is None:
        return True
    if isinstance(column, StackedColumn) and isinstance(node, (SequenceNode, MappingNode)):
        parts = [part for _, part in node.children()]
        return all(_fill(part, inner, rows) for part, inner in zip(parts, column.parts))
    whole = column.whole()
    if whole is not None and isinstance(node, BufferNode):
        rows.buffers[node.region] = MovingBuffer(whole, _bytes(node))
        return True
    if isinstance(node, NumberNode) and node.is_plain and isinstance(column, NumbersColumn):
        numbers = column.numbers(node.integer)
        if numbers is not None:
            return _store(node.place, 1, numbers, False, rows)
    return _fill_items(node, column.rows(rows.count), rows)


def _fill_items(node: Node, items: list[Any], rows: Rows) -> bool:
    for kind, fill in _FILLS.items():
        if isinstance(node, kind):
            return fill(node, items, rows)
    return all(node.pack(item, NO_FRAME) for item in items)  # static


def _fill_number(node: NumberNode, items: list[Any], rows: Rows) -> bool:
    if set(map(type, items)) != {node.type}:
        return False
    return _store(node.place, 1, items, node.integer, rows)


def _fill_numbers(node: NumbersNode, items: list[Any], rows: Rows) -> bool:
    level: list[Any] = items
    if set(map(type, level)) != {node.kinds[0]}:
        return False
    for length in node.shape:
        try:
            if set(map(len, level)) != {length}:
                return False
        except TypeError:  # a number where there was a row
            return False
        level = list(chain.from_iterable(level))
    kinds, size = set(map(type, level)), len(level) // rows.count
    if node.whole:
        are_alike = all((type(x) is int) == (k % size in node.whole) for k, x in enumerate(level))
        is_usual = kinds == {int, float} and is_exact([x for x in level if type(x) is int], node.limit)
        return is_usual and are_alike and _store(node.place, size, level, False, rows)
    if not kinds <= ({int, float} if node.may_mix and not node.integer else {node.type}):
        return False
    if int in kinds and not node.integer and not all(float in map(type, row) for row in _cut(level, size)):
        return False
    return _store(node.place, size, level, node.integer, rows)


def _cut(numbers: list[Any], size: int) -> Iterator[list[Any]]:
    """The numbers of each row, of which there are so many."""
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


def _store(place: int, size: int, numbers: Sequence[Any], integer: bool, rows: Rows) -> bool:
    """Write `size` numbers of each row to `place` in it."""
    if integer and not is_exact(numbers):
        return False
    width, code = rows.plan.packed_size, rows.packed.typecode
    if size < width and type(numbers) is array and numbers.typecode == code:
        flat = numbers
    else:
        try:
            flat = array(code, numbers)
        except OverflowError:  # an int that is greater than any float
            return False
    if size == width:
        rows.packed, rows.packed_stride = flat, rows.plan.precision.size * width
        return True
    rows.spread()
    if size == 1:
        rows.packed[place::width] = flat
    elif size <= rows.count:  # whichever takes fewer assignments
        for k in range(size):
            rows.packed[place + k :: width] = flat[k::size]
    else:
        for row in range(rows.count):
            rows.packed[row * width + place : row * width + place + size] = flat[row * size : (row + 1) * size]
    return True


def _fill_buffer(node: BufferNode, items: list[Any], rows: Rows) -> bool:
    if set(map(type, items)) != {node.type} or set(map(len, items)) != {node.shape[0]}:
        return False
    if node.type is array:
        if set(map(_type_code, items)) != {node.format}:
            return False
    elif node.type not in (bytes, bytearray):
        return False
    rows.buffers[node.region] = MovingBuffer(b"".join(items), _bytes(node))
    return True


def _fill_sequence(node: SequenceNode, items: list[Any], rows: Rows) -> bool:
    if set(map(type, items)) != {node.kind} or set(map(len, items)) != {len(node.parts)}:
        return False
    if node.may_have_attributes and not all(map(is_rebuilt, items)):
        return False
    return all(_fill_items(part, list(map(itemgetter(k), items)), rows) for k, part in enumerate(node.parts))


def _fill_mapping(node: MappingNode, items: list[Any], rows: Rows) -> bool:
    if set(map(type, items)) != {dict} or set(map(tuple, items)) != {tuple(node.parts)}:
        return False
    return all(_fill_items(part, list(map(itemgetter(key), items)), rows) for key, part in node.parts.items())


def _fill_dataclass(node: DataclassNode, items: list[Any], rows: Rows) -> bool:
    if set(map(type, items)) != {node.kind} or not all(map(is_rebuilt, items)):
        return False
    own = list(map(attributes, items))
    if any(list(one) != list(node.parts) for one in own):
        return False
    return all(_fill_items(part, list(map(itemgetter(name), own)), rows) for name, part in node.parts.items())


def _fill_value(node: ValueNode, items: list[Any], rows: Rows) -> bool:
    return all(item is items[0] for item in items)


def _fill_known(node: KnownNode, items: list[Any], rows: Rows) -> bool:
    return all(node.pack(item, NO_FRAME) for item in items)


_type_code = attrgetter("typecode")
_FILLS: dict[type, Callable[[Any, list[Any], Rows], bool]] = {
    NumberNode: _fill_number,
    NumbersNode: _fill_numbers,
    BufferNode: _fill_buffer,
    SequenceNode: _fill_sequence,
    MappingNode: _fill_mapping,
    DataclassNode: _fill_dataclass,
    ValueNode: _fill_value,
    KnownNode: _fill_known,
    ObjectNode: lambda node, items, rows: False,
}


def _bytes(node: BufferNode) -> int:
    return node.size * struct.calcsize(node.format)


def _pack_one_by_one(plan: ArgumentPlan, columns: Columns) -> Rows:
    """Pack every row by the plan itself, which defines what the functions above do with whole columns."""
    frame = plan.frame()
    packed = frame.packed[:0]
    buffers: list[list[Any]] = [[] for _ in plan.buffers]
    separate, values = False, None
    others: dict[Hashable, tuple[ArgumentPlan, Frame]] = {}  # the plans of rows of other lengths
    for number, arguments in enumerate(columns.rows()):
        try:
            if not plan.pack_parts(arguments, frame):
                separate = True
                lengths = lengths_of(arguments)
                if lengths in others and others[lengths][0].pack(arguments, others[lengths][1]):
                    continue
                found = _plan_other_values(plan, columns, arguments)
                if not found.resembles(plan):
                    others[lengths] = found, found.frame()
                    continue
                frame = found.frame()
                found.pack(arguments, frame)
        except MgjitError as error:
            raise type(error)(f"{error} (Row {number} of .loop; nothing was computed.)") from None
        packed.extend(frame.packed)
        for region, buffer in enumerate(frame.buffers):
            buffers[region].append(buffer)
        values = values or list(map(id, frame.values))
        separate = separate or list(map(id, frame.values)) != values
    rows = Rows(plan, frame, columns.length)
    if others:
        rows.separate = rows.ragged = True
        return rows
    rows.separate = separate
    rows.take(packed, buffers)
    return rows


def _about_fixed(names: Sequence[str]) -> str:
    if not names:
        return ""
    return (
        f" The step changes {', '.join(names)} in place, or uses it as a length or an index, so it has to be one and "
        f"the same in all rows: pass it as [{names[0]}] * n."
    )


def _joined(buffers: list[Any]) -> bytes:
    # bytes.join of PyPy 7.3 cannot join buffers with elements of more than one byte.
    return b"".join([memoryview(buffer).tobytes() for buffer in buffers])


def _plan_other_values(plan: ArgumentPlan, columns: Columns, arguments: Sequence[Any]) -> ArgumentPlan:
    """The plan of a row that fits but for its Values, the types of numbers in lists, or lengths.

    Raises:
        ColumnError: it does not.
    """
    other = plan_arguments(
        columns.names, arguments, plan.fixed | columns.static, precision=plan.precision, learned=plan.learned
    )
    if not other.resembles(plan) and other.differs_in_lengths(plan):
        return other
    if not other.resembles(plan) or not other.pack(arguments, other.frame()):
        raise ColumnError(
            f"{user_location()}: a row of .loop has another structure than row 0: {plan.first_difference(other)}. Make "
            "the rows alike (one kind of number; lengths may differ), or call the step for each of them."
            + _about_fixed(sorted(plan.fixed - columns.static))
        )
    return other
