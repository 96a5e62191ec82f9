"""The parts of arguments that are inputs of the kernel: numbers, blocks of numbers, and buffers."""

from __future__ import annotations

import numbers
import struct
import sys
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Callable

from ...base.lookup import module_of
from ...engine.kinds import (
    FLOAT,
    INTEGER,
    INTEGER_FORMATS,
    NARROW,
    NUMPY_FLOAT,
    NUMPY_INTEGER,
    is_float64,
    number_kind_of,
    number_kind_of_scalar,
)
from ...engine.leaks import PlainCall
from ...engine.numeric import counts_as_number, is_number
from ...engine.precision import FLOAT64, Precision
from ...errors import ArgumentError, ArgumentValueError, user_location
from ..record.traced_array import Elements, TracedArray
from .in_c import in_c
from .node import Frame, MakeNumber, Node

#: Struct codes of buffer elements that a kernel can convert to its own numbers.
ELEMENT_FORMATS = frozenset("bBhHiIlLqQfd?")

#: Ints of so many bytes are looked at, if what is computed from them may be too large.
_WIDE = 4
#: So many numbers in tuples that mix ints and floats keep their types.
_MOST_OF_RECORDS = 64

#: After so many numbers in tables, functions in C are asked for.
_MANY_NUMBERS = 300_000

#: Formats of ints, and how large they can be without being rounded in any precision.
_INTEGERS, _SMALL = "bBhHiIlLqQ", 2**24

#: All integers up to this one are exact in float64.
EXACT_INTEGERS = FLOAT64.largest_integer


class NumberNode(Node):
    """An int or float (not bool): a run-time input.  Ints are distinguished from floats because they have no -0.

    Attributes:
        type: float or int, whatever their subclasses, or one of numpy's.
    """

    def __init__(self, place: int, path: str, integer: bool, type: type | None = None) -> None:
        self.place, self.path, self.integer = place, path, integer
        self.type = type or (int if integer else float)
        self.is_plain = type is None
        self.key = f"numpy.{self.type.__name__}" if not self.is_plain else "integer" if integer else "number"
        #: How large an int may be, so that all that is computed from it is exact.
        self.limit = EXACT_INTEGERS

    def pack(self, argument: Any, frame: Frame) -> bool:
        kind = type(argument)
        if kind is self.type:
            if self.integer and not -self.limit <= argument <= self.limit:
                check_exact([argument], self.path)
                raise beyond_limit()
        elif kind is float or kind is int:
            return False
        else:
            return kind is not bool and not is_float64(kind) and self._pack_other(argument, frame)
        frame.packed[self.place] = argument
        return True

    def _pack_other(self, argument: Any, frame: Frame) -> bool:
        """What a compiled step has returned; numbers of numpy's compute in their own ways."""
        if not is_number(argument) or type(argument).__module__ == "numpy":
            return False
        plain = int(argument) if isinstance(argument, numbers.Integral) else float(argument)
        return self.pack(plain, frame)

    def traced(self, make: MakeNumber) -> Any:
        return make(self.place, number_kind_of_scalar(self.type))


class NumbersNode(Node):
    """A list or tuple of numbers, or regularly nested ones: one contiguous block of the packed array.

    If some of them are ints and some floats, the step sees floats, until it uses one of the ints as such: as an index,
    like the label last in a row.  From then on each has its own type.

    Attributes:
        type: of its numbers; numpy's float64 where that is the type of the first.
        may_mix: whether ints may be among floats, and then are floats.
        whole: the positions of ints that the step sees as such. mixed: those of ints that it sees as floats.
        types: for each number, 1 if it must be an int and 0 if it must be a float; None where only floats are seen.
    """

    def __init__(
        self, place: int, shape: tuple[int, ...], kinds: tuple[type, ...], type: type, precision: Precision = FLOAT64,
        whole: Collection[int] = (), mixed: Collection[int] = (),
    ) -> None:  # fmt: skip
        self.place, self.shape, self.kinds = place, shape, kinds
        self.type, self.integer, self.is_plain = type, type is int, type in (int, float)
        self.limit = EXACT_INTEGERS
        self._is_double, self._seen = precision is FLOAT64, 0
        name = "integers" if self.integer else "numbers" if self.is_plain else "numpy.float64"
        self.key = name, shape, tuple(kind.__name__ for kind in kinds)
        self._size = 1
        for length in shape:
            self._size *= length
        self.whole, self.mixed = frozenset(whole), frozenset(mixed)
        self.may_mix = self.is_plain and not self.whole and not is_record(kinds[-1], self._size)
        is_typed = self.integer or bool(whole)
        self.types = bytes([self.integer or k in self.whole for k in range(self._size)]) if is_typed else None
        if whole:
            self.key = (*self.key, tuple(sorted(whole)))
        self._format = struct.Struct(f"{self._size}{precision.format}")
        self._offset = precision.size * place
        self._inner_lengths = [[length] * count for count, length in _counts_of_rows(shape)]

    def pack(self, argument: Any, frame: Frame) -> bool:
        flat = self.flatten(argument)
        if flat is None:
            if self.limit < EXACT_INTEGERS and self.flatten(argument, EXACT_INTEGERS) is not None:
                raise beyond_limit()
            return False
        try:
            self._format.pack_into(frame.packed, self._offset, *flat)
        except (struct.error, TypeError, OverflowError):
            return False
        return True

    def table(self, argument: Any) -> bytes | None:
        """The numbers of a table of floats as bytes of the packed array; None if `argument` has another structure.

        Raises:
            struct.error, TypeError, OverflowError: something in it is no such number.
        """
        extension = in_c.extension
        if extension is not None and extension.table is not None and self._is_double:
            form = self.kinds[0], self.shape, self._size, self.may_mix, self.types, self.limit
            found = extension.table((argument, *form))
            if found is not None:
                return found  # type: ignore[no-any-return]
        elif extension is not None and self._is_double:
            self._seen += self._size
            if self._seen >= _MANY_NUMBERS:
                self._seen = 0
                extension.is_ready()
        flat = self.flatten(argument)
        return None if flat is None else self._format.pack(*flat)

    def flatten(self, argument: Any, limit: int = 0) -> Any:
        """The elements as a flat sequence; None if `argument` has another structure."""
        flat: Any = argument
        if type(argument) is not self.kinds[0] or len(flat) != self.shape[0]:
            return None
        try:  # to flatten it
            for lengths in self._inner_lengths:
                if list(map(len, flat)) != lengths:
                    return None
                flat = list(chain.from_iterable(flat))
        except TypeError:
            return None
        if self.whole:
            are_alike = all(type(x) is (float, int)[w] for x, w in zip(flat, self.types or ()))
            return flat if are_alike and is_exact([flat[k] for k in self.whole], limit or self.limit) else None
        if not self.integer:
            return flat if self.are_floats(flat) else None
        return flat if set(map(type, flat)) == {int} and is_exact(flat, limit or self.limit) else None

    def are_floats(self, flat: Sequence[Any]) -> bool:
        """Whether all of some numbers have the type of these, or are floats and ints where these are floats.

        Whatever else can be packed as a float, such as objects of the user's classes, may compute in its own way.
        """
        return are_all(self.type, flat) or (self.may_mix and is_not_all_ints(flat))

    def containers(self, argument: Any) -> Iterator[tuple[int, str]]:
        level = [argument]
        yield id(argument), ""
        for _ in self.shape[1:]:
            level = list(chain.from_iterable(level))
            yield from ((id(row), "") for row in level)

    def traced(self, make: MakeNumber) -> Any:
        places = iter(range(self.place, self.place + self._size))
        types = {self.place + k: int for k in self.whole}
        return _nest(
            places, self.shape, self.kinds, lambda place: make(place, number_kind_of(types.get(place, self.type)))
        )

    def are_in(self, table: bytes, positions: Sequence[int], allowed: range) -> bool:
        """Whether the ints at some positions are in a range, in what `table` returns."""
        found = itemgetter(*positions, positions[0])(memoryview(table).cast("d"))
        return bool(min(found) >= allowed.start and max(found) < allowed.stop)

    def path_of(self, path: str, index: int) -> str | None:
        """The path of the number that is input `index`, below the path of this argument; None when it is no part."""
        position = index - self.place
        if not 0 <= position < self._size:
            return None
        steps = ""
        for length in reversed(self.shape):
            position, last = divmod(position, length)
            steps = f"[{last}]{steps}"
        return path + steps

    def describe(self) -> str:
        kinds = {kind.__name__ for kind in self.kinds} - ({"list"} if self.shape != (1,) else set())
        inside = f" in a {' and '.join(sorted(kinds))}" if kinds else ""
        noun = ("integer" if self.integer else "number") + "s" * (self.shape != (1,))
        return f"{' x '.join(map(str, self.shape))} {noun}{inside}"


class BufferNode(Node):
    """bytes, bytearray, array.array, memoryview or a numpy array: passed by address, converted in the kernel."""

    def __init__(self, region: int, place: int, argument: Any, path: str) -> None:
        self.region, self.place, self.path = region, place, path
        self.type, self.dtype = type(argument), getattr(argument, "dtype", None)
        self.format, self.shape = buffer_layout(argument, path)
        self.limit = EXACT_INTEGERS
        self.key = "buffer", self.type.__name__, self.format, self.shape
        self.size = 1
        for length in self.shape:
            self.size *= length
        self._plain = self.type in (bytes, bytearray)
        #: What the step assigns, while it is traced.
        self.elements: Elements | None = None
        self._is_array = self.type is array

    def pack(self, argument: Any, frame: Frame) -> bool:
        buffer = self.contiguous(argument)
        frame.buffers[self.region] = buffer
        frame.given[self.region] = argument
        if buffer is not None and not self.is_exact(buffer):
            raise beyond_limit()
        return buffer is not None

    def is_exact(self, buffer: Any) -> bool:
        """Whether no int of a buffer, or of several one after the other, is larger than it may be."""
        if self.limit == EXACT_INTEGERS or not len(buffer):
            return True
        flat = memoryview(buffer).cast("B")
        if self.format in "lq" and sys.byteorder == "little":  # most ints are small, and not negative
            ints, size = flat.tobytes(), struct.calcsize(self.format)
            count = len(ints) // size
            if all(ints[k::size].count(0) == count for k in range((self.limit.bit_length() - 1) // 8, size)):
                return True
        return is_exact(flat.cast(self.format), self.limit)  # type: ignore[call-overload]

    @property
    def largest_integer(self) -> int | None:
        """How large the ints in such a buffer can be; 0 if there are none, and None if the limit decides."""
        size = struct.calcsize(self.format)
        return 0 if self.format in "fd" else 1 << 8 * size if size < _WIDE else None

    def limit_integers(self, limit: int) -> None:
        """Set the limit, if there can be larger ints."""
        if limit < 1 << 8 * struct.calcsize(self.format):
            self.limit = limit

    def strides(self) -> tuple[int, ...]:
        """Distances in bytes of the elements of a contiguous buffer, for each dimension."""
        steps = [struct.calcsize(self.format)]
        for length in reversed(self.shape[1:]):
            steps.append(steps[-1] * length)
        return tuple(reversed(steps))

    def contiguous(self, argument: Any) -> Any:
        """A contiguous buffer with the elements of `argument`; None if it has another structure."""
        if type(argument) is not self.type:
            return None
        if self._plain:
            return argument if len(argument) == self.size else None
        if self._is_array:
            return argument if argument.typecode == self.format and len(argument) == self.size else None
        if buffer_layout(argument, self.path) != (self.format, self.shape):
            return None
        return argument if memoryview(argument).c_contiguous else memoryview(argument).tobytes()

    def containers(self, argument: Any) -> Iterator[tuple[int, str]]:
        if self.dtype is not None or self.type is memoryview:  # the others have their own memory
            yield id(root_of(argument)), self.path

    def are_in(self, buffer: Any, allowed: range, places: Sequence[int] = ()) -> bool:
        """Whether the elements at these places, or all, are ints of a range; False if that is not told at once."""
        if self.format not in _INTEGERS or allowed.stop > _SMALL:
            return False
        view = memoryview(buffer).cast("B")
        if self.format == "B" and not places:
            return not view.tobytes().translate(None, bytes(range(max(allowed.start, 0), min(allowed.stop, 256))))
        flat: Sequence[int] = view.cast(self.format).tolist()  # type: ignore[call-overload]
        some = [flat[place] for place in places] if places else flat
        return min(some) >= allowed.start and max(some) < allowed.stop

    def traced(self, make: MakeNumber) -> Any:
        kind = self.type.__name__ if self.dtype is None else "numpy"
        number_kind = INTEGER if self.format not in "fd" else FLOAT
        if self.dtype is not None and number_kind == FLOAT:
            number_kind = NUMPY_FLOAT if self.are_numpys else NARROW
        elif self.dtype is not None:
            number_kind = NUMPY_INTEGER + INTEGER_FORMATS.index(self.format)
        is_whole = struct.calcsize(self.format) == struct.calcsize("q") and self.format in "lq"
        elements = Elements(self.path, self.type, kind, "q" if is_whole else self.format)

        def row(parts: list[Any]) -> TracedArray:
            return TracedArray(parts, elements)

        places = iter(range(self.place, self.place + self.size))
        made = _nest(places, self.shape, (row,) * len(self.shape), lambda place: make(place, number_kind))
        self.elements = elements
        return elements.hold(made)

    @property
    def are_numpys(self) -> bool:
        """Whether the elements are of numpy's type float64."""
        return self.dtype is not None and self.format == "d"

    def index_of(self, position: int) -> Any:
        """The index of an element in the buffer, given its position among all."""
        index: list[int] = []
        for length in reversed(self.shape):
            position, last = divmod(position, length)
            index.insert(0, last)
        return index[0] if len(index) == 1 else tuple(index)

    def describe(self) -> str:
        return f"{self.type.__name__} of {' x '.join(map(str, self.shape))} '{self.format}'"


def buffer_layout(argument: Any, path: str) -> tuple[str, tuple[int, ...]]:
    """Struct code and shape of a buffer.

    Raises:
        ArgumentError: elements are not plain native numbers.
    """
    try:
        view = memoryview(argument)
    except (TypeError, ValueError, BufferError) as error:
        raise ArgumentError(f"{user_location()}: argument {path} has no usable buffer: {error}.") from error
    code = view.format.lstrip("@=")
    if code == "c":
        code = "B"
    if code not in ELEMENT_FORMATS:
        raise ArgumentError(
            f"{user_location()}: argument {path} is a buffer with elements of format {view.format!r}; a step takes "
            "native integers of up to 64 bits, float32 and float64. Convert it first, e.g. x.astype(float)."
        )
    return code, tuple(view.shape or ())


def root_of(buffer: Any) -> Any:
    """The object that has the memory of a buffer."""
    while True:
        if type(buffer) is memoryview:
            inner: Any = buffer.obj
        elif module_of(type(buffer)).startswith("numpy"):
            inner = getattr(buffer, "base", None)
        else:
            return buffer
        if inner is None:
            return buffer
        buffer = inner


def are_all(kind: type, things: Iterable[Any]) -> bool:
    """Whether all of some things are of this very type."""
    kinds = list(map(type, things))
    return kinds.count(kind) == len(kinds)


def is_record(kind: type, size: int) -> bool:
    """Whether ints and floats beside each other keep their types: in tuples, such as `(moment, count)`, if few."""
    return kind is tuple and size <= _MOST_OF_RECORDS


def is_not_all_ints(numbers_: Sequence[Any]) -> bool:
    """Whether there are numbers in a list, and not only ints and bools; only then are its numbers floats."""
    kinds = set(map(type, numbers_))
    return all(map(_is_like_plain, kinds)) and not all(issubclass(kind, numbers.Integral) for kind in kinds)


def _is_like_plain(kind: type) -> bool:
    """Whether a number computes in a list of floats as they do: those of numpy divide by zero."""
    return counts_as_number(kind) and kind.__module__ != "numpy"


def is_exact(integers: Sequence[float], limit: int = EXACT_INTEGERS) -> bool:
    """Whether none of them is beyond the limit."""
    return min(integers) >= -limit and max(integers) <= limit


def beyond_limit() -> PlainCall:
    """The exception that ends a call for which float64 is not exact enough."""
    return PlainCall(
        "ints among the arguments are so large that ints above 2**53 may be computed, which float64 does not hold"
    )


def check_exact(entries: Sequence[Any], path: str) -> None:
    """Raise an ArgumentValueError for an integer that float64 cannot hold."""
    for entry in entries:
        if not isinstance(entry, float) and not -EXACT_INTEGERS <= entry <= EXACT_INTEGERS:
            raise ArgumentValueError(
                f"{user_location()}: argument {path} has the integer {str(entry)[:40]}, which float64 cannot hold "
                "exactly (the limit is 2**53). Pass float(x) to accept rounding, or name it in static=."
            )


def _counts_of_rows(shape: tuple[int, ...]) -> list[tuple[int, int]]:
    counts = []
    rows = 1
    for outer, inner in zip(shape, shape[1:]):
        rows *= outer
        counts.append((rows, inner))
    return counts


def _nest(places: Any, shape: tuple[int, ...], kinds: tuple[Callable[..., Any], ...], make: MakeNumber) -> Any:
    if len(shape) == 1:
        return kinds[0]([make(next(places)) for _ in range(shape[0])])
    return kinds[0]([_nest(places, shape[1:], kinds[1:], make) for _ in range(shape[0])])
