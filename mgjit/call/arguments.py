"""The nodes of an argument plan: each knows the structure of a part of an argument, and how to pack a later one.

`call/plan.py` builds trees of these for the arguments of a step.
"""

from __future__ import annotations

import copy
import dataclasses
import numbers
import struct
from array import array
from collections.abc import Hashable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, Callable

from ..engine.precision import FLOAT64, Precision
from ..engine.state import zero_array
from ..engine.value import Value
from ..errors import ArgumentError, ArgumentValueError, user_location
from ..lookup import has, variables
from ..record.leaks import PlainCall
from .exact import exact_key
from .traced_array import Elements, TracedArray

#: Makes the number for an INPUT index; a second argument says that it is an integer.
MakeNumber = Callable[..., Any]

#: Struct codes of buffer elements that a kernel can convert to its own numbers.
ELEMENT_FORMATS = frozenset("bBhHiIlLqQfd?")
#: Ints of so many bytes are looked at, if what is computed from them may be too large.
_WIDE = 4
#: All integers up to this one are exact in float64.
EXACT_INTEGERS = FLOAT64.largest_integer
#: So many parts of a container are named in the outline of a structure.
_MOST_OUTLINED = 16


class Frame:
    """What one call passes to the kernel: the packed numbers, the buffers, and the Values among the arguments."""

    __slots__ = ("buffers", "given", "objects", "packed", "values")

    def __init__(
        self, packed_size: int, buffers: int, values: int, precision: Precision = FLOAT64, objects: int = 0
    ) -> None:
        self.packed = zero_array(packed_size, precision)
        self.buffers: list[Any] = [None] * buffers
        #: The caller's object for each buffer, which may not be contiguous.
        self.given: list[Any] = [None] * buffers
        self.values: list[Any] = [None] * values
        #: Nodes of the user's autograd classes that are copied in and out.
        self.objects: list[Any] = [None] * objects


class Node:
    """One argument, or one part of an argument."""

    key: Hashable

    def pack(self, argument: Any, frame: Frame) -> bool:
        """Write `argument` into the frame; returns False if it does not have this node's structure."""
        raise NotImplementedError

    def traced(self, make: MakeNumber) -> Any:
        """The traced argument, which the step sees during a trace."""
        raise NotImplementedError

    def children(self) -> Sequence[tuple[str, Node]]:
        """Named parts, for reports."""
        return ()

    def containers(self, argument: Any) -> Iterator[int]:
        """The identities of the containers in an argument of this structure whose contents are inputs."""
        return iter(())

    def describe(self) -> str:
        """A few words for reports."""
        return str(self.key)

    def outline(self) -> str:
        """The whole structure, in short: what tells the kernels of a step apart."""
        parts = self.children()
        return f"{self.describe()} ({_grouped(parts)})" if parts else self.describe()


class NumberNode(Node):
    """An int or float (not bool): a run-time input.  Ints are distinguished from floats because they have no -0."""

    def __init__(self, place: int, path: str, integer: bool) -> None:
        self.place, self.path, self.integer = place, path, integer
        self.key = "integer" if integer else "number"
        #: How large an int may be, so that all that is computed from it is exact.
        self.limit = EXACT_INTEGERS

    def pack(self, argument: Any, frame: Frame) -> bool:
        kind = type(argument)
        if kind is float:
            if self.integer:
                return False
        elif kind is int:
            if not self.integer:
                return False
            if not -self.limit <= argument <= self.limit:
                check_exact([argument], self.path)
                raise beyond_limit()
        else:
            return kind is not bool and self._pack_other(argument, frame)
        frame.packed[self.place] = argument
        return True

    def _pack_other(self, argument: Any, frame: Frame) -> bool:
        """A numpy scalar, an array of no dimension, or a subclass of int or float."""
        if has(argument, "shape") and argument.shape == ():
            argument = argument.item()
        if isinstance(argument, bool) or not isinstance(argument, numbers.Real):
            return False
        plain = int(argument) if isinstance(argument, numbers.Integral) else float(argument)
        return self.pack(plain, frame)

    def traced(self, make: MakeNumber) -> Any:
        return make(self.place, self.integer)


class NumbersNode(Node):
    """A list or tuple of numbers, or regularly nested ones: one contiguous block of the packed array.

    If some of them are ints and some floats, the step sees floats.
    """

    def __init__(
        self, place: int, shape: tuple[int, ...], kinds: tuple[type, ...], integer: bool, precision: Precision = FLOAT64
    ) -> None:
        self.place, self.shape, self.kinds, self.integer = place, shape, kinds, integer
        self.limit = EXACT_INTEGERS
        self.key = "integers" if integer else "numbers", shape, tuple(kind.__name__ for kind in kinds)
        self._size = 1
        for length in shape:
            self._size *= length
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

    def flatten(self, argument: Any, limit: int = 0) -> Any:
        """The elements as a flat sequence; None if `argument` has another structure.

        Of floats, only that they are not all ints is checked.
        """
        flat: Any = argument
        if type(argument) is not self.kinds[0] or len(flat) != self.shape[0]:
            return None
        try:
            for lengths in self._inner_lengths:
                if list(map(len, flat)) != lengths:
                    return None
                flat = list(chain.from_iterable(flat))
        except TypeError:
            return None
        if not self.integer:
            return flat if is_not_all_ints(flat) else None
        return flat if set(map(type, flat)) == {int} and is_exact(flat, limit or self.limit) else None

    def containers(self, argument: Any) -> Iterator[int]:
        level = [argument]
        yield id(argument)
        for _ in self.shape[1:]:
            level = list(chain.from_iterable(level))
            yield from map(id, level)

    def traced(self, make: MakeNumber) -> Any:
        places = iter(range(self.place, self.place + self._size))
        return _nest(places, self.shape, self.kinds, lambda place: make(place, self.integer))

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
        return " x ".join(map(str, self.shape)) + (" integers" if self.integer else " numbers")


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
        if buffer is not None and not self._is_exact(buffer):
            raise beyond_limit()
        return buffer is not None

    def _is_exact(self, buffer: Any) -> bool:
        if self.limit == EXACT_INTEGERS:
            return True
        return is_exact(memoryview(buffer).cast("B").cast(self.format), self.limit)  # type: ignore[call-overload]

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

    def traced(self, make: MakeNumber) -> Any:
        integer = self.format not in "fd"
        kind = self.type.__name__ if self.dtype is None else "numpy"
        is_whole = struct.calcsize(self.format) == struct.calcsize("q") and self.format in "lq"
        elements = Elements(self.path, kind, "q" if is_whole else self.format)

        def row(parts: list[Any]) -> TracedArray:
            return TracedArray(parts, elements)

        places = iter(range(self.place, self.place + self.size))
        made = _nest(places, self.shape, (row,) * len(self.shape), lambda place: make(place, integer))
        if self.type is bytes:
            return tuple(made)
        self.elements = elements
        return elements.hold(made)

    def index_of(self, position: int) -> Any:
        """The index of an element in the buffer, given its position among all."""
        index: list[int] = []
        for length in reversed(self.shape):
            position, last = divmod(position, length)
            index.insert(0, last)
        return index[0] if len(index) == 1 else tuple(index)

    def describe(self) -> str:
        return f"{self.type.__name__} of {' x '.join(map(str, self.shape))} '{self.format}'"


#: For what writes nothing into it.
_NO_FRAME = Frame(0, 0, 0)


class SequenceNode(Node):
    """A list, tuple or named tuple of nodes."""

    def __init__(self, kind: type, parts: list[Node]) -> None:
        self.kind, self.parts = kind, parts
        self.key = kind.__name__, tuple(part.key for part in parts)

    def pack(self, argument: Any, frame: Frame) -> bool:
        elements: Any = argument
        if type(argument) is not self.kind or len(elements) != len(self.parts):
            return False
        return all(part.pack(element, frame) for part, element in zip(self.parts, elements))

    def containers(self, argument: Any) -> Iterator[int]:
        yield id(argument)
        for part, element in zip(self.parts, argument):
            yield from part.containers(element)

    def traced(self, make: MakeNumber) -> Any:
        elements = [part.traced(make) for part in self.parts]
        return self.kind(*elements) if hasattr(self.kind, "_fields") else self.kind(elements)

    def children(self) -> Sequence[tuple[str, Node]]:
        return [(f"[{index}]", part) for index, part in enumerate(self.parts)]

    def describe(self) -> str:
        return f"{self.kind.__name__} of length {len(self.parts)}"


class MappingNode(Node):
    """A dict of nodes; the keys are static."""

    def __init__(self, parts: dict[Any, Node]) -> None:
        self.parts = parts
        self.keys = exact_keys(parts)
        self._has_names = set(map(type, parts)) <= {str}
        self.key = "dict", tuple(zip(self.keys, (part.key for part in parts.values())))

    def pack(self, argument: Any, frame: Frame) -> bool:
        if type(argument) is not dict or not self._has_keys(argument):
            return False
        return all(part.pack(element, frame) for part, element in zip(self.parts.values(), argument.values()))

    def containers(self, argument: Any) -> Iterator[int]:
        yield id(argument)
        for part, element in zip(self.parts.values(), argument.values()):
            yield from part.containers(element)

    def _has_keys(self, argument: dict[Any, Any]) -> bool:
        if self._has_names:
            return list(argument) == list(self.parts) and set(map(type, argument)) <= {str}
        return exact_keys(argument) == self.keys

    def traced(self, make: MakeNumber) -> Any:
        return {key: part.traced(make) for key, part in self.parts.items()}

    def children(self) -> Sequence[tuple[str, Node]]:
        return [(f"[{key!r}]", part) for key, part in self.parts.items()]

    def describe(self) -> str:
        return f"dict with keys {list(self.parts)}"


class DataclassNode(Node):
    """A dataclass instance: its fields, and its other attributes."""

    def __init__(self, example: Any, parts: dict[str, Node]) -> None:
        self.kind, self.parts = type(example), parts
        self.example = example
        self.key = self.kind, tuple((name, part.key) for name, part in parts.items())

    def pack(self, argument: Any, frame: Frame) -> bool:
        if type(argument) is not self.kind or attributes_of_dataclass(argument) != list(self.parts):
            return False
        return all(part.pack(getattr(argument, name), frame) for name, part in self.parts.items())

    def containers(self, argument: Any) -> Iterator[int]:
        yield id(argument)
        if variables(argument):
            yield id(vars(argument))
        for name, part in self.parts.items():
            yield from part.containers(getattr(argument, name))

    def traced(self, make: MakeNumber) -> Any:
        made = copy.copy(self.example)
        for name, part in self.parts.items():
            object.__setattr__(made, name, part.traced(make))
        return made

    def children(self) -> Sequence[tuple[str, Node]]:
        return [(f".{name}", part) for name, part in self.parts.items()]

    def describe(self) -> str:
        return self.kind.__name__


class ValueNode(Node):
    """A Value: a parameter known by identity, or (slot) one that is copied in and out at every call."""

    def __init__(self, value: Value, slot: int | None, again: bool = False) -> None:
        self.value, self.slot, self.again = value, slot, again
        self.key = ("value", id(value)) if slot is None else ("value slot", slot)

    def pack(self, argument: Any, frame: Frame) -> bool:
        if self.slot is None:
            return argument is self.value
        if not isinstance(argument, Value):
            return False
        if self.again:  # the same Value as an earlier argument, when this was traced
            return argument is frame.values[self.slot]
        frame.values[self.slot] = argument
        return True

    def containers(self, argument: Any) -> Iterator[int]:
        return iter(()) if self.slot is None else iter((id(argument),))

    def traced(self, make: MakeNumber) -> Any:
        return self.value

    def describe(self) -> str:
        return "a Value" if self.slot is not None else f"the Value at {id(self.value):#x}"


class KnownNode(Node):
    """A container of nothing but Values, objects and constants, such as a model: known by its identity at first.

    What it holds is compared only in a call that has another one.  Whether its contents have changed is for the guard
    of the kernel to see, as if the step captured it.
    """

    def __init__(self, container: Any, inner: SequenceNode | MappingNode | DataclassNode) -> None:
        self.container, self.inner = container, inner
        self.key = inner.key
        self._parts = list(
            container.values() if isinstance(container, dict) else container if _is_row(container) else ()
        )
        #: Whether `==` of all parts is their identity.
        self._is_quick = bool(self._parts) and all(
            getattr(kind, "__eq__", None) is object.__eq__ for kind in set(map(type, self._parts))
        )

    def pack(self, argument: Any, frame: Frame) -> bool:
        return argument is self.container or self.equals(argument)

    def equals(self, argument: Any) -> bool:
        """Whether another container holds the same."""
        if not self._is_quick or type(argument) is not type(self.container):
            return self.inner.pack(argument, _NO_FRAME)
        if isinstance(argument, dict):
            return list(argument.values()) == self._parts and have_same_keys(argument, self.container)
        return list(argument) == self._parts

    def traced(self, make: MakeNumber) -> Any:
        return self.inner.traced(make)

    def children(self) -> Sequence[tuple[str, Node]]:
        return self.inner.children()

    def describe(self) -> str:
        return self.inner.describe()


class StaticNode(Node):
    """Something that shapes the trace: it is compared, and never an input."""

    def __init__(self, argument: Any) -> None:
        self.argument = argument
        self.exact = exact_key(argument)
        self.by_value = self.exact is not None
        # What may be a node of a graph is told from others as Values are: another one may be a slot, like them.
        tag = "value" if callable(getattr(type(argument), "backward", None)) else "object"
        self.key = ("static", self.exact) if self.by_value else (tag, id(argument))

    def pack(self, argument: Any, frame: Frame) -> bool:
        return argument is self.argument or (self.by_value and exact_key(argument) == self.exact)

    def traced(self, make: MakeNumber) -> Any:
        return self.argument

    def describe(self) -> str:
        return f"{self.argument!r:.60}"


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


def exact_keys(argument: dict[Any, Any]) -> list[Hashable]:
    """The keys of a dict, in order, by type and bits, or identity."""
    found = [(exact_key(key), key) for key in argument]
    return [("object", id(key)) if exact is None else exact for exact, key in found]


def have_same_keys(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    """Whether dicts have the same keys, in order, by type and bits, or identity."""
    if set(map(type, one)) == set(map(type, other)) <= {str}:
        return list(one) == list(other)
    return exact_keys(one) == exact_keys(other)


def _is_row(container: Any) -> bool:
    return type(container) in (list, tuple)


def attributes_of_dataclass(argument: Any) -> list[str]:
    """The names of the fields of a dataclass instance, and of its other attributes."""
    fields = [f.name for f in dataclasses.fields(argument)]
    return fields + [name for name in variables(argument) if name not in fields]


def _grouped(parts: Sequence[tuple[str, Node]]) -> str:
    """The outlines of parts; equal ones that follow each other are counted, elements of lists have no names."""
    named = [(name if name.startswith(".") or "'" in name else "", part.outline()) for name, part in parts]
    texts = []
    for (name, outline), group in groupby(named):
        count = len(list(group))
        texts.append(f"{name.strip('.[]')}: {outline}" if name else outline if count == 1 else f"{count} x {outline}")
    more = [] if len(texts) <= _MOST_OUTLINED else [f"... {len(texts)} in all"]
    return ", ".join([*texts[:_MOST_OUTLINED], *more])


class Identity:
    """Equal to another one of the same object."""

    __slots__ = ("_thing",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self._thing is other._thing


def contents(argument: Any) -> Any:
    """The contents of a traced argument, to check whether the step has changed it in place."""
    if type(argument) in (list, tuple):
        return tuple(map(contents, argument))
    if type(argument) is dict:
        return tuple((Identity(key), contents(part)) for key, part in argument.items())
    if dataclasses.is_dataclass(argument) and not isinstance(argument, type) and has(argument, "__dict__"):
        return contents(variables(argument))
    return Identity(argument)


def has_grown(before: Any, after: Any) -> bool:
    """Whether a container among the `contents` of an argument has another length, or other keys, than before."""
    if not isinstance(before, tuple) or not isinstance(after, tuple):
        return False
    return len(before) != len(after) or any(map(has_grown, before, after))


def is_not_all_ints(numbers_: Sequence[Any]) -> bool:
    """Whether there is something else than ints and bools in a list; only then are its numbers floats."""
    if type(numbers_[0]) is float:  # as most often
        return True
    return not all(issubclass(kind, numbers.Integral) for kind in set(map(type, numbers_)))


def is_exact(integers: Sequence[float], limit: int = EXACT_INTEGERS) -> bool:
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
