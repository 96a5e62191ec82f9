"""Nodes of the user's autograd classes as arguments: their data and gradients are inputs, copied in and out.

A node that was made for one call (`step([Node(x), Node(1.0)])`) is another object at every call:

1. What it holds besides its two numbers must be of no consequence: constants, which are compared, empty containers,
   functions without variables around them.  Other nodes are known by their identity.
2. While the step is traced, a `stand_in` takes its place: an object of the class whose numbers live in a storage that
   belongs to the plan of the arguments, as parameters do (memory/live.py).  So all that works for parameters works.
3. `ObjectSlots` copies the numbers of the nodes of each call into the storage, and back what the step has assigned.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from ...base.lookup import has, variables
from ...engine.precision import Precision
from ...ir.opcodes import GRADIENT, PARAMETER, leaf
from ...memory.buffers import ParameterStorage
from ...memory.live import Field, Home, field_of
from ..autograd.node_class import NodeClass, node_class, was_tried
from ..surroundings.shapes import attributes
from .exact import exact_key
from .inputs import EXACT_INTEGERS, check_exact
from .node import Frame, MakeNumber, Node

_KINDS = (float, int)
_CONTAINERS = (list, tuple, set, frozenset, dict)


class ObjectNode(Node):
    """A node of the user's graph that is another object at every call.

    Args:
        example: the node of the call that the plan is made for.
        known: its class.
        slot: its number among such nodes.
        first: the earlier one that is the same object, if there is one.
    """

    def __init__(self, example: Any, known: NodeClass, slot: int, path: str, first: ObjectNode | None = None) -> None:
        self.kind, self.slot, self.path, self.first = type(example), slot, path, first
        self.fields = (known.data, known.gradient)
        self._others = others(example, known)
        self.kinds = tuple(type(field.read(example)) for field in self.fields)
        self.key = "node slot", slot, self.kind, self.kinds, self._others
        self.known, self.example = known, example
        self.stand_in: Any = None

    def pack(self, argument: Any, frame: Frame) -> bool:
        if type(argument) is not self.kind:
            return False
        if self.first is not None:
            return argument is frame.objects[self.slot]
        try:
            numbers = [field.read(argument) for field in self.fields]
        except (AttributeError, KeyError):
            return False
        if tuple(map(type, numbers)) != self.kinds or others(argument, self.known) != self._others:
            return False
        check_exact([number for number in numbers if type(number) is int], self.path)
        frame.objects[self.slot] = argument
        return True

    def containers(self, argument: Any) -> Iterator[tuple[int, str]]:
        yield id(argument), ""
        if has(argument, "__dict__"):
            yield id(variables(argument)), ""

    def make_stand_in(self, storage: ParameterStorage) -> None:
        """Make the object that the step gets while it is traced."""
        made = object.__new__(self.kind)
        for name, content in attributes(self.example).items():
            field_of(self.kind, name).write(made, type(content)() if type(content) in _CONTAINERS else content)
        for field, array in zip(self.fields, (storage.data, storage.grad)):
            field.write(made, Home(array, self.slot, storage))
        self.stand_in = made

    def traced(self, make: MakeNumber) -> Any:
        return self.stand_in if self.first is None else self.first.stand_in

    def describe(self) -> str:
        return f"a {self.kind.__name__}"


def class_of_slot(argument: Any) -> NodeClass | None:
    """The class of a node whose numbers can be inputs; None for one that is known by its identity, and other things."""
    kind = type(argument)
    known = node_class(kind) if was_tried(kind) else None  # to try it out is for a trace, which undoes what that does
    if known is None:
        return None
    try:
        numbers = [field.read(argument) for field in (known.data, known.gradient)]
    except (AttributeError, KeyError):
        return None
    return known if all(type(n) in _KINDS for n in numbers) and others(argument, known) is not None else None


def others(thing: Any, known: NodeClass) -> Hashable:
    """A key of what a node holds besides its numbers; None when there is something of consequence."""
    found: list[Hashable] = []
    for name, content in attributes(thing).items():
        if name in (known.data.name, known.gradient.name):
            continue
        key: Hashable = exact_key(content)
        if type(content) in _CONTAINERS and not content:
            key = type(content).__name__
        elif type(content) is FunctionType and not content.__closure__ and not content.__defaults__:
            key = content.__code__
        if key is None:
            return None
        found.append((name, key))
    return tuple(found)


class _Copied(NamedTuple):
    """A number of a node that the step assigns: which array, where, of which node, and whether it is an int."""

    is_gradient: bool
    slot: int
    field: Field
    is_integer: bool


class ObjectSlots:
    """The nodes among the arguments of one kernel.

    Args:
        nodes: of the plan, one for each slot.

    Attributes:
        storage: where the kernel has their numbers.
    """

    def __init__(self, nodes: Sequence[ObjectNode], precision: Precision) -> None:
        self.nodes, self.storage = nodes, ParameterStorage(len(nodes), precision)
        for node in nodes:
            node.make_stand_in(self.storage)
        self._assigned: list[_Copied] = []

    def note_assigned(self, leaves: Collection[int], base: int) -> None:
        """After the trace: note which numbers the step assigns, and which of them are ints then.

        Args:
            leaves: all that are assigned. base: the index of the first node among the parameters of the trace.
        """
        for node in self.nodes:
            for is_gradient, field, kind in zip((False, True), node.fields, (PARAMETER, GRADIENT)):
                if leaf(kind, base + node.slot) in leaves:
                    is_integer = isinstance(field.read(node.stand_in), int)
                    self._assigned.append(_Copied(is_gradient, node.slot, field, is_integer))

    def copy_in(self, frame: Frame) -> None:
        """Copy the numbers of the nodes of a call."""
        for node in self.nodes:
            for field, array in zip(node.fields, (self.storage.data, self.storage.grad)):
                array[node.slot] = field.read(frame.objects[node.slot])

    def copy_out(self, frame: Frame) -> None:
        """Copy back what the step has assigned; may be repeated."""
        for is_gradient, slot, field, is_integer in self._assigned:
            number = (self.storage.grad if is_gradient else self.storage.data)[slot]
            is_whole = is_integer and abs(number) <= EXACT_INTEGERS
            field.write(frame.objects[slot], int(number) if is_whole else number)
