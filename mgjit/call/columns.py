"""The columns of `step.loop(...)`: the arguments of many calls, and how they are packed for the kernel.

1. `read_columns` distinguishes columns from arguments that are the same for every row, and checks that all columns
   have the same length.
2. `columns.row(0)` is what the first call would get; it decides the kernel, and with it the plan of the arguments.
3. `pack_rows` packs all rows into one table.  Numbers become a matrix, as wide as the packed array of one call.  A
   buffer that contains all rows is used without a copy; buffers of one row each are joined.
4. It works on whole columns: each node of the plan takes its column as one list, and containers pass a list to each of
   their parts.  Only if something is unusual (a numpy scalar in a list, a row of another structure) is every row packed
   separately by the plan, which finds the first bad row or shows that there is none.

If Values among the arguments differ from row to row, the rows are checked and packed all the same, but must be separate
calls, because a Value may occur in several rows, or be captured by the step.  So must rows of which some have a list of
ints where others have floats.
"""

from __future__ import annotations

import copy
import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from inspect import BoundArguments, Parameter, Signature
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, Callable, NamedTuple

from ..engine.state import State
from ..errors import ColumnError, MgjitError, user_location
from ..lookup import has
from .arguments import (
    BufferNode,
    DataclassNode,
    Frame,
    KnownNode,
    MappingNode,
    Node,
    NumberNode,
    NumbersNode,
    SequenceNode,
    ValueNode,
    is_exact,
    is_not_all_ints,
)
from .objects import ObjectNode
from .plan import ArgumentPlan, bind, is_numpy_array, plan_arguments

_BUFFERS = (bytes, bytearray, array, memoryview)


# ---- 1: what a column is ------------------------------------------------------------------------


class Column:
    """The argument of `.loop` for one parameter of the step."""

    #: Number of rows; None if every row is the same.
    length: int | None = None

    def rows(self, count: int) -> list[Any]:
        """The argument of each of `count` calls."""
        raise NotImplementedError

    def row(self, number: int) -> Any:
        """The argument of call `number`."""
        raise NotImplementedError

    def whole(self) -> Any:
        """One C-contiguous buffer that contains all rows, or None."""
        return None


class SameColumn(Column):
    """An argument that is the same for every call."""

    def __init__(self, argument: Any) -> None:
        self.argument = argument

    def rows(self, count: int) -> list[Any]:
        return [self.argument] * count

    def row(self, number: int) -> Any:
        return self.argument


class ItemsColumn(Column):
    """A sequence with one item per row."""

    def __init__(self, items: Sequence[Any]) -> None:
        self.items = items if type(items) is list else list(items)
        self.length: int | None = len(self.items)

    def rows(self, count: int) -> list[Any]:
        return self.items

    def row(self, number: int) -> Any:
        return self.items[number]


class NumbersColumn(Column):
    """A one-dimensional buffer with one number per row; numpy's numbers become plain ones where possible."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer
        self.length: int | None = len(buffer)
        kind = getattr(getattr(buffer, "dtype", None), "kind", "f")
        self._is_plain = kind in "fiu" and hasattr(buffer, "tolist")

    def rows(self, count: int) -> list[Any]:
        return self.buffer.tolist() if self._is_plain else list(self.buffer)

    def row(self, number: int) -> Any:
        element = self.buffer[number]
        return element.item() if self._is_plain and hasattr(element, "item") else element

    def numbers(self) -> array[float] | None:
        """All numbers at once, if they are float64."""
        if not self._is_plain or memoryview(self.buffer).format not in ("d", "@d"):
            return None
        return array("d", memoryview(self.buffer).tobytes())


class BufferColumn(Column):
    """A buffer of two or more dimensions, the first of which counts the rows."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer
        self.view = memoryview(buffer)
        assert self.view.shape is not None
        self.length: int | None = self.view.shape[0]

    def rows(self, count: int) -> list[Any]:
        return [self.row(number) for number in range(count)]

    def row(self, number: int) -> Any:
        if type(self.buffer) is not memoryview:
            return self.buffer[number]  # for numpy, a view of a row
        shape = list(self.view.shape or ())
        flat = memoryview(self.whole()).cast("B")
        size = len(flat) // shape[0]
        return flat[number * size : (number + 1) * size].cast(self.view.format, shape[1:])  # type: ignore[call-overload]

    def whole(self) -> Any:
        return self.buffer if self.view.c_contiguous else self.view.tobytes()


class StackedColumn(Column):
    """The columns of `*rest` or of `**named`."""

    def __init__(self, parts: Sequence[Column], make: Callable[[Sequence[Any]], Any]) -> None:
        self.parts, self.make = parts, make
        self.length = next((part.length for part in parts if part.length is not None), None)

    def rows(self, count: int) -> list[Any]:
        if not self.parts:
            return [self.row(0)] * count
        return [self.make(items) for items in zip(*(part.rows(count) for part in self.parts))]

    def row(self, number: int) -> Any:
        return self.make([part.row(number) for part in self.parts])


class Columns(NamedTuple):
    """The columns of all parameters of a step, in order."""

    names: list[str]
    columns: list[Column]
    length: int
    static: frozenset[str]

    def row(self, number: int) -> tuple[Any, ...]:
        """The arguments of call `number`."""
        return tuple(column.row(number) for column in self.columns)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The arguments of every call."""
        return zip(*(column.rows(self.length) for column in self.columns))

    def rows_of_objects(self) -> Iterator[tuple[Any, ...]]:
        """The arguments of every call whose objects are not those of the first: of a buffer, all rows are alike."""
        alike = (NumbersColumn, BufferColumn)
        columns = [SameColumn(column.row(0)) if isinstance(column, alike) else column for column in self.columns]
        count = self.length if any(column.length is not None for column in columns) else 1
        return zip(*(column.rows(count) for column in columns))


def read_columns(
    signature: Signature, given: Sequence[Any], named: Mapping[str, Any], static: frozenset[str]
) -> Columns:
    """Read the columns of a call of `.loop`.

    Raises:
        ColumnError: there is no column, two differ in length, or one is an iterator or a set.
        TypeError: they do not fit the parameters of the step.
    """
    bound = bind(signature, given, named, ".loop")
    passed = set(bound.arguments)
    bound.apply_defaults()
    columns = [
        _column(signature.parameters[name], argument, name in static or name not in passed)
        for name, argument in bound.arguments.items()
    ]
    names = list(bound.arguments)
    return Columns(names, columns, _common_length(names, columns), static)


def bound_arguments(signature: Signature, row: Sequence[Any]) -> BoundArguments:
    """One row as bound arguments, with which the step's function can be called."""
    return BoundArguments(signature, dict(zip(signature.parameters, row)))


def _column(parameter: Parameter, argument: Any, same: bool) -> Column:
    name = parameter.name
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return StackedColumn([_one(part, f"{name}[{k}]") for k, part in enumerate(argument)], tuple)
    if parameter.kind is Parameter.VAR_KEYWORD:
        keys = list(argument)
        parts = [_one(part, f"{name}[{key!r}]") for key, part in argument.items()]
        return StackedColumn(parts, lambda items: dict(zip(keys, items)))
    return SameColumn(argument) if same else _one(argument, name)


def _one(argument: Any, path: str) -> Column:
    """A list, tuple, range, buffer or other sequence is a column; everything else is the same for every row."""
    if isinstance(argument, (str, State)) or has(argument, "_fields"):
        return SameColumn(argument)
    if isinstance(argument, _BUFFERS) or is_numpy_array(argument):
        dimensions = len(argument.shape) if has(argument, "shape") else 1
        if dimensions == 0:
            return SameColumn(argument)
        return NumbersColumn(argument) if dimensions == 1 else _rows_of_buffer(argument)
    if isinstance(argument, Sequence) or (has(argument, "dtype") and has(argument, "__len__")):
        return ItemsColumn(argument)
    if has(argument, "__next__") or isinstance(argument, (set, frozenset)):
        raise ColumnError(
            f"{user_location()}: the column {path} is a {type(argument).__name__}, which has no rows to count and "
            f"check before the first step. Pass a list: list({path})."
        )
    return SameColumn(argument)


def _rows_of_buffer(argument: Any) -> Column:
    try:
        return BufferColumn(argument)
    except (TypeError, ValueError, BufferError):  # such as arrays of objects: packing a row gives the error
        return ItemsColumn(list(argument))


def _common_length(names: Sequence[str], columns: Sequence[Column]) -> int:
    found = [(name, part) for name, column in zip(names, columns) for part in getattr(column, "parts", [column])]
    lengths = [(name, part.length) for name, part in found if part.length is not None]
    if not lengths:
        raise ColumnError(
            f"{user_location()}: .loop needs a column, a list or array with one item a step; got only arguments that "
            "are the same for every step. Call the step itself for one step, or repeat one of them: [x] * steps."
        )
    first_name, count = lengths[0]
    for name, length in lengths:
        if length != count:
            raise ColumnError(
                f"{user_location()}: the columns of .loop differ in length: {first_name} has {count} rows, {name} has "
                f"{length}. Every list and array is a column; repeat what is the same for every step: [{name}] * steps."
            )
    return count or 0


# ---- 3 and 4: packing ---------------------------------------------------------------------------


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
    """

    def __init__(self, plan: ArgumentPlan, frame: Frame, count: int) -> None:
        self.plan, self.count, self.start = plan, count, 0
        self.packed = frame.packed[:]
        self.packed_stride = 0
        self.buffers = [MovingBuffer(buffer, 0) for buffer in frame.buffers]
        self.separate = False

    def spread(self) -> None:
        """Give every row its own packed numbers."""
        if self.packed_stride == 0:
            self.packed = self.packed * self.count
            self.packed_stride = self.plan.precision.size * self.plan.packed_size

    def after(self, number: int) -> Rows:
        """The rows without the first ones."""
        if not number:
            return self
        rest = copy.copy(self)
        rest.start, rest.count = self.start + number, self.count - number
        rest.packed = self.packed[number * self.packed_stride // self.plan.precision.size :]
        rest.buffers = [
            MovingBuffer(memoryview(memory).cast("B")[number * stride :] if stride else memory, stride)
            for memory, stride in self.buffers
        ]
        return rest

    def input_column(self, index: int) -> Sequence[float]:
        """Input `index` of the trace in each row (a single number if it is the same in all rows)."""
        if index < self.plan.packed_size:
            return self.packed[index :: self.plan.packed_size]
        node = next(node for node in self.plan.buffers if node.place <= index < node.place + node.size)
        memory, _ = self.buffers[node.region]
        flat = memoryview(memory).cast("B").cast(node.format)  # type: ignore[call-overload]
        return flat[index - node.place :: node.size].tolist()  # type: ignore[no-any-return]


def pack_rows(plan: ArgumentPlan, frame: Frame, columns: Columns) -> Rows:
    """Pack all rows by the plan of row 0, which `frame` holds.

    Raises:
        ColumnError: a row does not have the structure of row 0.
        ArgumentValueError: an integer that float64 cannot hold.
    """
    rows = Rows(plan, frame, columns.length)
    if all(_fill(node, column, rows) for node, column in zip(plan.nodes, columns.columns)):
        return rows
    return _pack_one_by_one(plan, columns)


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
    if isinstance(node, NumberNode) and isinstance(column, NumbersColumn) and not node.integer:
        numbers = column.numbers()
        if numbers is not None:
            return _store(node.place, 1, numbers, False, rows)
    return _fill_items(node, column.rows(rows.count), rows)


def _fill_items(node: Node, items: list[Any], rows: Rows) -> bool:
    for kind, fill in _FILLS.items():
        if isinstance(node, kind):
            return fill(node, items, rows)
    return all(node.pack(item, _NO_FRAME) for item in items)  # static


def _fill_number(node: NumberNode, items: list[Any], rows: Rows) -> bool:
    if set(map(type, items)) != {int if node.integer else float}:
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
    if not kinds <= ({int} if node.integer else {int, float}):
        return False
    if int in kinds and not node.integer and not all(map(is_not_all_ints, _cut(level, size))):
        return False
    return _store(node.place, size, level, node.integer, rows)


def _cut(numbers: list[Any], size: int) -> Iterator[list[Any]]:
    """The numbers of each row, of which there are so many."""
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


def _store(place: int, size: int, numbers: Sequence[Any], integer: bool, rows: Rows) -> bool:
    """Write `size` numbers of each row to `place` in it."""
    if integer and not is_exact(numbers):
        return False
    try:
        flat = array(rows.packed.typecode, numbers)
    except OverflowError:  # an int that is greater than any float
        return False
    width = rows.plan.packed_size
    if size == width:
        rows.packed, rows.packed_stride = flat, rows.plan.precision.size * width
        return True
    rows.spread()
    if size <= rows.count:  # whichever takes fewer assignments
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
    return all(_fill_items(part, list(map(itemgetter(k), items)), rows) for k, part in enumerate(node.parts))


def _fill_mapping(node: MappingNode, items: list[Any], rows: Rows) -> bool:
    if set(map(type, items)) != {dict} or set(map(tuple, items)) != {tuple(node.parts)}:
        return False
    return all(_fill_items(part, list(map(itemgetter(key), items)), rows) for key, part in node.parts.items())


def _fill_dataclass(node: DataclassNode, items: list[Any], rows: Rows) -> bool:
    if set(map(type, items)) != {node.kind}:
        return False
    return all(_fill_items(part, list(map(attrgetter(name), items)), rows) for name, part in node.parts.items())


def _fill_value(node: ValueNode, items: list[Any], rows: Rows) -> bool:
    return all(item is items[0] for item in items)


def _fill_known(node: KnownNode, items: list[Any], rows: Rows) -> bool:
    return all(node.pack(item, _NO_FRAME) for item in items)


_type_code = attrgetter("typecode")
_NO_FRAME = Frame(0, 0, 0)
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
    for number, arguments in enumerate(columns.rows()):
        try:
            if not plan.pack(arguments, frame):
                separate = True
                frame = _pack_other_values(plan, columns, arguments)
        except MgjitError as error:
            raise type(error)(f"{error} (Row {number} of .loop; nothing was computed.)") from None
        packed.extend(frame.packed)
        for region, buffer in enumerate(frame.buffers):
            buffers[region].append(buffer)
        values = values or list(map(id, frame.values))
        separate = separate or list(map(id, frame.values)) != values
    rows = Rows(plan, frame, columns.length)
    rows.packed, rows.packed_stride, rows.separate = packed, plan.precision.size * plan.packed_size, separate
    rows.buffers = [MovingBuffer(_joined(found), _bytes(node)) for node, found in zip(plan.buffers, buffers)]
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


def _pack_other_values(plan: ArgumentPlan, columns: Columns, arguments: Sequence[Any]) -> Frame:
    """Pack a row that fits the plan but for its Values, or the types of numbers in lists."""
    other = plan_arguments(columns.names, arguments, plan.fixed | columns.static, precision=plan.precision)
    frame = other.frame()
    if not other.resembles(plan) or not other.pack(arguments, frame):
        raise ColumnError(
            f"{user_location()}: a row of .loop has another structure than row 0: {plan.first_difference(other)}. Make "
            "the rows alike (one length, one kind of number), or call the step for each of them."
            + _about_fixed(sorted(plan.fixed - columns.static))
        )
    return frame
