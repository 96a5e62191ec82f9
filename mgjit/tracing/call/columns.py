"""The columns of `step.loop(...)`: the arguments of many calls.

1. `read_columns` distinguishes columns from arguments that are the same for every row, and checks that all columns
   have the same length.
2. `columns.row(0)` is what the first call would get; it decides the kernel, and with it the plan of the arguments, by
   which rows.py packs all rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from inspect import BoundArguments, Parameter, Signature
from typing import Any, Callable, NamedTuple

from ...base.lookup import has
from ...engine.state import State
from ...errors import ColumnError, user_location
from .plan import bind, is_numpy_array

_BUFFERS = (bytes, bytearray, array, memoryview)
#: The formats of ints that every precision holds.
_SMALL_INTEGERS = frozenset("bBhH")
_PLAIN = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


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

    def numbers(self, integer: bool) -> array[float] | None:
        """All numbers at once, if they are float64, or ints that are exact in any precision; maybe the caller's own.

        Args:
            integer: whether ints are asked for.
        """
        view = memoryview(self.buffer)
        if integer and self._is_plain and view.format in _SMALL_INTEGERS:
            return array("d", self.buffer.tolist())
        if integer or not self._is_plain or view.format not in ("d", "@d"):
            return None
        if type(self.buffer) is array:
            return self.buffer
        found = array("d")
        found.frombytes(view.cast("B") if view.c_contiguous else view.tobytes())
        return found


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

    def objects(self, number: int) -> list[Any]:
        """What calls get for a parameter, without what is like that of the first call: all rows of a buffer are."""
        column = self.columns[number]
        is_alike = isinstance(column, (NumbersColumn, BufferColumn, SameColumn))
        return [column.row(0)] if is_alike else column.rows(self.length)


def read_columns(
    signature: Signature, given: Sequence[Any], named: Mapping[str, Any], static: frozenset[str]
) -> Columns:
    """Read the columns of a call of `.loop`.

    Raises:
        ColumnError: there is no column, two differ in length, or one is an iterator or a set.
        TypeError: they do not fit the parameters of the step.
    """
    parameters = signature.parameters
    arguments: dict[str, Any] = dict(zip(parameters, given))
    passed: Collection[str] = parameters
    if named or len(given) != len(parameters) or any(part.kind not in _PLAIN for part in parameters.values()):
        bound = bind(signature, given, named, ".loop")
        passed = set(bound.arguments)
        bound.apply_defaults()
        arguments = bound.arguments
    columns = [
        _column(parameters[name], argument, name in static or name not in passed)
        for name, argument in arguments.items()
    ]
    names = list(arguments)
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
    kind = type(argument)
    if kind is list or kind is tuple or kind is range:
        return ItemsColumn(argument)
    if kind is float or kind is int or isinstance(argument, (str, State)):
        return SameColumn(argument)
    if kind not in _BUFFERS and has(argument, "_fields"):
        return SameColumn(argument)
    if isinstance(argument, _BUFFERS) or is_numpy_array(argument):
        dimensions = len(argument.shape) if kind is memoryview or has(argument, "shape") else 1
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
