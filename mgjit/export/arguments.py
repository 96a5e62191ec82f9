"""The arguments of a step as parameters of a C function.

1. A number is passed by value: a float as the number type, an int as `int32_t`.
2. A list of numbers, also a nested one, is an array without copy: of the number type, or of `int32_t` if all are ints.
3. Numbers in other containers (dicts, dataclasses, uneven lists) are one array, in the order in which they lie there.
4. A buffer is an array of its own elements, such as `uint8_t`.

Each array is an input region of the Program; numbers that follow each other share one.  Whatever else is among the
arguments shapes the trace and is fixed in the exported code; strings are refused, unless `static=` names them.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..engine.precision import FLOAT32, FLOAT64, Precision
from ..errors import ArgumentError, ArgumentValueError, user_location
from ..ir.trace import InputRegion
from ..tracing.call.inputs import BufferNode, NumberNode, NumbersNode
from ..tracing.call.known import KnownNode, StaticNode, ValueNode
from ..tracing.call.node import Frame, Node, flat_view
from ..tracing.call.plan import ArgumentPlan
from .emitter import NUMBERS, TYPES
from .names import unique

_LARGEST = 1 << 31
#: So many parts of a container are named in the header.
_MOST_NAMED = 32


@dataclass
class CArgument:
    """One parameter of the exported function.

    Attributes:
        path: of the argument in the step.
        name: of the parameter.
        type: of a number or an element.
        size: how many elements; None for a single number.
        place: the INPUT index of the first one.
        format: the struct code of the elements.
        region: the number of the input region that it is, or is part of.
        offset: of the number in its region.
        parts: (path, offset) of what lies in a container.
    """

    path: str
    name: str
    type: str
    size: int | None
    place: int
    format: str
    region: int = 0
    offset: int = 0
    parts: list[tuple[str, int]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many inputs it is."""
        return 1 if self.size is None else self.size

    @property
    def is_integer(self) -> bool:
        """Whether it holds ints."""
        return self.format not in "fd"

    @property
    def precision(self) -> Precision | None:
        """Of its floats; None for ints."""
        return None if self.is_integer else FLOAT32 if self.format == "f" else FLOAT64

    def declaration(self) -> str:
        """Of the parameter."""
        return f"{self.type} {self.name}" if self.size is None else f"const {self.type} {self.name}[{self.size}]"


@dataclass
class CArguments:
    """All parameters of the exported function that are inputs.

    Attributes:
        regions: of the inputs of the Program.
        fixed: (path, text) of the arguments that are part of the code.
    """

    arguments: list[CArgument]
    regions: list[InputRegion]
    fixed: list[tuple[str, str]]

    def numbers_of(self, region: int) -> list[CArgument]:
        """The single numbers that are collected in a region; empty where it is an array."""
        return [one for one in self.arguments if one.region == region and one.size is None]

    def find(self, index: int) -> tuple[CArgument, int]:
        """The parameter that an input belongs to, and which element it is."""
        one = next(one for one in self.arguments if one.place <= index < one.place + one.count)
        return one, index - one.place

    def row(self, plan: ArgumentPlan, frame: Frame) -> list[Sequence[float]]:
        """The numbers of one call, for each parameter.

        Raises:
            ArgumentValueError: an int does not fit into 32 bits.
        """
        buffers = {node.place: flat_view(frame.buffers[node.region], node.format) for node in plan.buffers}
        found: list[Sequence[float]] = []
        for one in self.arguments:
            if one.place >= plan.packed_size:
                found.append(list(buffers[one.place]))
                continue
            numbers = frame.packed[one.place : one.place + one.count].tolist()
            if one.is_integer and not all(-_LARGEST <= number < _LARGEST for number in numbers):
                raise ArgumentValueError(
                    f"{user_location()}: argument {one.path} is an int beyond 32 bits, and ints are passed to exported "
                    "C as int32_t. Pass float(x), which becomes a float or double."
                )
            found.append(list(map(int, numbers)) if one.is_integer else numbers)
        return found


def c_arguments(plan: ArgumentPlan, static: frozenset[str], location: str, prefix: str) -> CArguments:
    """The parameters for the arguments of a step.

    Args:
        plan: of the arguments of a call.
        static: names of arguments that the user has declared to be fixed.
        location: `file:line` of the step.
        prefix: of all other names.

    Raises:
        ArgumentError: a run-time string, or a Value that changes from call to call.
    """
    found = CArguments([], [], [])
    taken: list[str] = []
    number = NUMBERS[plan.precision]

    def add(path: str, kind: str, size: int | None, place: int, format: str) -> CArgument:
        argument = CArgument(path, unique(path, taken, prefix), kind, size, place, format)
        taken.append(argument.name)
        found.arguments.append(argument)
        return argument

    for name, node in zip(plan.names, plan.nodes):
        leaves = list(_leaves(name, node))
        _refuse_strings(leaves, static, location)
        packed = [(path, leaf) for path, leaf in leaves if isinstance(leaf, (NumberNode, NumbersNode))]
        if isinstance(node, NumberNode):
            format = "i" if node.integer else plan.precision.format
            add(name, TYPES[format] if node.integer else number, None, node.place, format)
        elif isinstance(node, NumbersNode) and node.integer:
            add(name, TYPES["i"], _size(node), node.place, "i")
        elif packed:
            size = sum(_size(leaf) for _, leaf in packed)
            argument = add(name, number, size, packed[0][1].place, plan.precision.format)
            if not isinstance(node, NumbersNode):
                argument.parts = [(path, leaf.place - argument.place) for path, leaf in packed[:_MOST_NAMED]]
        for path, leaf in leaves:
            if isinstance(leaf, BufferNode) and leaf.size:
                format = _portable(leaf.format)
                add(path, TYPES[format], leaf.size, leaf.place, format)
        found.fixed += [(path, leaf.describe()) for path, leaf in leaves if isinstance(leaf, StaticNode)]
    _number_regions(found, plan)
    return found


def _number_regions(found: CArguments, plan: ArgumentPlan) -> None:
    """Make a region of each array, and of single numbers that follow each other."""
    form = plan.precision.format
    is_open = False
    for one in sorted(found.arguments, key=lambda one: one.place):
        if one.size is None and is_open:
            last = found.regions[-1]
            one.offset = last.size
            found.regions[-1] = InputRegion(last.start, last.size + 1, form)
        else:
            found.regions.append(InputRegion(one.place, one.count, form if one.size is None else one.format))
        is_open = one.size is None
        one.region = len(found.regions) - 1
    if not found.regions:
        found.regions.append(InputRegion(0, 0, form))


def _leaves(path: str, node: Node) -> Iterator[tuple[str, Any]]:
    """The nodes without parts, with their paths; what a model holds is not looked at."""
    if isinstance(node, KnownNode):
        return
    parts = node.children()
    if not parts:
        yield path, node
    for name, part in parts:
        yield from _leaves(path + name, part)


def _refuse_strings(leaves: Sequence[tuple[str, Node]], static: frozenset[str], location: str) -> None:
    for path, leaf in leaves:
        name = path.split("[")[0].split(".")[0]
        if isinstance(leaf, StaticNode) and isinstance(leaf.argument, str) and name not in static:
            raise ArgumentError(
                f"{user_location()}: argument {path} of the step at {location} is the string {leaf.argument!r:.40}. "
                "Exported C has no strings, and would be for this one only. Pass its characters as a list of ints, "
                f"or fix it: @mgjit.compile(static={name!r})."
            )
        if isinstance(leaf, ValueNode) and leaf.slot is not None:
            raise ArgumentError(
                f"{user_location()}: argument {path} of the step at {location} is a Value that differs from call to "
                "call. Pass its number, e.g. x.data, and make the Value in the step."
            )


def _size(node: NumberNode | NumbersNode) -> int:
    size = 1
    for length in node.shape if isinstance(node, NumbersNode) else ():
        size *= length
    return size


def _portable(format: str) -> str:
    """The struct code of an element with a size that is the same everywhere."""
    if format in "lL":
        return {4: "iI", 8: "qQ"}[struct.calcsize(format)]["lL".index(format)]
    return format


def as_array(argument: CArgument, numbers: Sequence[float]) -> array[Any]:
    """The numbers of one call, in an array of the format of the parameter."""
    made: array[Any] = array({"?": "B"}.get(argument.format, argument.format))
    made.extend(map(int, numbers) if argument.is_integer else numbers)
    return made
