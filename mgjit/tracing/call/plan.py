"""Plan the arguments of a step: what structure they have, and how a later call packs them for the kernel.

1. `plan_arguments` walks the arguments of one call and builds a tree of nodes: a number, a block of
   numbers, a buffer, a container of further nodes, a Value, or something static.
2. Numbers get consecutive places in one packed array of the step's precision; each buffer is a separate region behind
   it, and is passed by address.  The places are the INPUT indices of the trace.
3. `plan.pack` writes the arguments of a later call into those places.  It returns False if their structure differs; the
   caller then plans afresh.

Static things (bool, str, None, and any object that is neither a number nor a container) are compared by
value, or by identity where they are objects of the user: they shape the trace and are never inputs.
"""

from __future__ import annotations

import numbers
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from inspect import BoundArguments, Signature
from itertools import chain
from operator import attrgetter
from typing import Any

from ...base.lookup import has
from ...engine.kinds import is_float64, is_narrow, is_numpy_integer
from ...engine.leaks import is_traced, leaked
from ...engine.numeric import is_number_type
from ...engine.precision import FLOAT64, Precision
from ...engine.value import Value
from ...errors import ArgumentError, user_location
from ...ir.trace import InputRegion
from ...tensor.tensor import Tensor
from ..autograd.node_class import NodeClass
from ..surroundings.shapes import attributes
from .containers import DataclassNode, MappingNode, SequenceNode
from .inputs import BufferNode, NumberNode, NumbersNode, check_exact, is_record
from .known import AssignedNode, KnownNode, PlainNode, StaticNode, ValueNode
from .lengths import differ_in_lengths
from .node import Frame, MakeNumber, Node, flat_view
from .objects import ObjectNode, class_of_slot
from .sameness import Question
from .stand_ins import elements, is_rebuilt
from .tensors import TensorNode

#: Lists nested deeper than this are not treated as blocks of numbers (a list may contain itself).
_MOST_DIMENSIONS = 32
#: Behind the path of a table: its ints are ints for the step, and no floats.
WITH_INTS = ": ints"
#: Containers of so many Values or other objects are compared by identity first.
_MANY = 16


class ArgumentPlan:
    """The planned arguments of one signature."""

    def __init__(self, names: Sequence[str], nodes: list[Node], packed: int, buffers: list[BufferNode],
                 values: list[Value], precision: Precision) -> None:  # fmt: skip
        self.precision = precision
        #: Paths of the arguments, and of numbers in them, that are no inputs; and the identities of all arguments.
        self.fixed: frozenset[str] = frozenset()
        self.learned: Collection[str] = ()
        self.identities: list[int] = []
        #: Nodes of the user's autograd classes that are copied in and out, one for each slot.
        self.objects: list[ObjectNode] = []
        self.names, self.nodes = list(names), nodes
        self.packed_size, self.buffers, self.values = packed, buffers, values
        self._parts = self.key = tuple(node.key for node in nodes)
        #: What the step asks about which of them are the same object, and the answers.
        self.questions: Sequence[Question] = ()
        self.answers: tuple[bool | None, ...] = ()
        self._by_place: dict[int, NumberNode | NumbersNode | BufferNode] = {}
        self._places: list[int] = []

    @property
    def structure(self) -> Hashable:
        """The key without the identities of argument Values, and without answers."""
        return _without_identities(self._parts)

    def ask(self, questions: Sequence[Question], arguments: Sequence[Any]) -> None:
        """Make the answers for these arguments part of the structure."""
        self.questions = questions
        self.answers = tuple(question.answer(arguments) for question in questions)
        self.key = *self._parts, *self.answers

    def resembles(self, other: ArgumentPlan) -> bool:
        """Whether the structure is that of `other`, or differs in whether lists have ints or floats."""
        return _without_types(self.structure) == _without_types(other.structure)

    def differs_in_lengths(self, other: ArgumentPlan) -> bool:
        """Whether arguments of another plan are alike but for lengths."""
        return len(self.nodes) == len(other.nodes) and all(map(differ_in_lengths, self.nodes, other.nodes))

    def frame(self) -> Frame:
        """A frame of the right sizes."""
        return Frame(self.packed_size, len(self.buffers), len(self.values), self.precision, len(self.objects))

    def packed(self, arguments: Sequence[Any]) -> Frame:
        """A frame with the arguments that it was made for."""
        frame = self.frame()
        self.pack_parts(arguments, frame)
        return frame

    def pack(self, arguments: Sequence[Any], frame: Frame) -> bool:
        """Write the arguments of a call into `frame`; returns False if the structure differs."""
        return self.pack_parts(arguments, frame) and self._answers_are_the_same(arguments)

    def _answers_are_the_same(self, arguments: Sequence[Any]) -> bool:
        return all(question.answer(arguments) is old for question, old in zip(self.questions, self.answers))

    def pack_parts(self, arguments: Sequence[Any], frame: Frame) -> bool:
        """The same, where it does not matter which of them are the same object."""
        for node, argument in zip(self.nodes, arguments):
            if not node.pack(argument, frame):
                return False
        # The trace took the Values of different slots for different ones.
        slots = [*frame.values, *frame.objects]
        return len(set(map(id, slots))) == len(slots)

    def traced(self, make: MakeNumber) -> list[Any]:
        """The traced arguments, with which the step is called during a trace."""
        return [node.traced(make) for node in self.nodes]

    @property
    def input_size(self) -> int:
        """Number of INPUT indices."""
        return self.packed_size + sum(buffer.size for buffer in self.buffers)

    def static_objects(self) -> list[Any]:
        """All objects and containers among the arguments that are known by identity."""
        nodes = self._all_nodes()
        known = [node.container for node in nodes if isinstance(node, KnownNode)]
        known += {node.kind: None for node in nodes if isinstance(node, (SequenceNode, DataclassNode))}  # their methods
        known += {node.kind: None for node in self.objects}
        return known + [node.argument for node in nodes if isinstance(node, StaticNode) and not node.by_value]

    def number(self, index: int, frame: Frame) -> float:
        """The number of an input, in a frame."""
        if index < self.packed_size:
            return frame.packed[index]
        node = self._node_of(index)
        assert isinstance(node, BufferNode)
        view = flat_view(frame.buffers[node.region], node.format)
        return self.precision.rounded(view[index - node.place])

    def name_of_number(self, index: int) -> str | None:
        """The path of the number that is input `index`, such as `config['n']`; None for an element of a buffer."""
        for name, node in zip(self.names, self.nodes):
            found = _path_of_number(name, node, index)
            if found is not None:
                return found
        return None

    def ints_like(self, path: str) -> set[str]:
        """The paths of the ints that differ from this one in indices only, such as the labels of all rows."""
        every = chain.from_iterable(_paths_of_ints(name, node) for name, node in zip(self.names, self.nodes))
        return {one for one in every if form_of(one) == form_of(path)}

    def table_of_mixed(self, index: int) -> str | None:
        """What says that a table has ints, where input `index` is one of those that the step sees as floats."""
        node = self._node_of(index)
        if not isinstance(node, NumbersNode) or index - node.place not in node.mixed:
            return None
        path = self.name_of_number(index) or ""
        for _ in node.shape:
            path = path.rpartition("[")[0]
        return path + WITH_INTS

    def bound_of_input(self, index: int) -> int | None:
        """How large the int in an input can be; 0 where there is none, None where its limit decides."""
        node = self._node_of(index)
        if isinstance(node, BufferNode):
            return node.largest_integer
        is_whole = isinstance(node, NumbersNode) and index - node.place in node.whole
        return None if node is not None and (node.integer or is_whole) else 0

    def limit_integers(self, indices: Iterable[int], limit: int) -> None:
        """Set the limit of the ints in inputs."""
        for index in indices:
            node = self._node_of(index)
            if isinstance(node, BufferNode):
                node.limit_integers(limit)
            elif node is not None:
                node.limit = limit

    def _node_of(self, index: int) -> NumberNode | NumbersNode | BufferNode | None:
        """The node that an input belongs to; None for what is drawn."""
        if not self._by_place:
            nodes = [n for n in self._all_nodes() if isinstance(n, (NumberNode, NumbersNode, BufferNode))]
            self._by_place = {node.place: node for node in sorted(nodes, key=attrgetter("place"))}
            self._places = list(self._by_place)
        return self._by_place[self._places[bisect_right(self._places, index) - 1]] if index < self.input_size else None

    def aliases(self, names: Collection[str]) -> set[str]:
        """Names of arguments that are the same objects as those of the given names."""
        meant = {identity for name, identity in zip(self.names, self.identities) if name in names}
        return {name for name, identity in zip(self.names, self.identities) if identity in meant}

    @property
    def has_containers(self) -> bool:
        """Whether there are lists, dicts, dataclasses or buffers among the arguments whose contents are inputs."""
        kinds = (NumbersNode, SequenceNode, MappingNode, DataclassNode, BufferNode)
        return any(isinstance(node, kinds) for node in self.nodes)

    def regions(self, drawn: int) -> list[InputRegion]:
        """The memory of the inputs: packed numbers, buffers, and so many numbers that each call draws."""
        form = self.precision.format
        packed = InputRegion(0, self.packed_size, form)
        buffers = [InputRegion(node.place, node.size, node.format) for node in self.buffers]
        return [packed, *buffers, *([InputRegion(self.input_size, drawn, form)] if drawn else [])]

    def outline(self) -> str:
        """The structure of the arguments, in words; `*more` and `**named` that are empty say nothing."""
        told = [(name, node.outline()) for name, node in zip(self.names, self.nodes)]
        return "(" + ", ".join(f"{name}: {outline}" for name, outline in told if outline not in ("()", "{}")) + ")"

    def shared(self, arguments: Sequence[Any], changed: Collection[int]) -> set[str]:
        """Arguments with a container whose contents are inputs, and that the step changes by another way.

        They are names of arguments, or paths of tensors in them.

        Args:
            changed: the identities of what it changes.
        """
        if not changed:
            return set()
        given = zip(self.names, self.nodes, arguments)
        return {
            path or name for name, node, argument in given for one, path in node.containers(argument) if one in changed
        }

    def _all_nodes(self) -> list[Node]:
        found = list(self.nodes)
        for node in found:  # grows during the iteration
            found += [child for _, child in node.children()]
        return found

    def first_difference(self, other: ArgumentPlan) -> str:
        """The first difference from `other`: a path, and both descriptions."""
        for name, mine, theirs in self._different(other):
            return _told(*_innermost(name, mine, theirs))
        return "which arguments are the same object" if self.answers != other.answers else "nothing in the arguments"

    def constant_difference(self, other: ArgumentPlan, static: Collection[str]) -> bool | None:
        """Whether the first difference from `other` is one of containers: the keys of a dict, a set, a Counter.

        False: one of few, as far as one knows, such as texts, ints, and models, which are known by their identity.
        None: other lengths or types, or one of the arguments with these names.
        """
        for name, *nodes in self._different(other):
            _, mine, theirs = _innermost(name, *nodes)
            if name in static:
                return None
            if isinstance(mine, StaticNode) and isinstance(theirs, StaticNode):
                kind = type(theirs.argument)
                is_container = isinstance(theirs.argument, Collection) and kind is not str
                return is_container if kind is type(mine.argument) and kind is not bool else None
            return True if isinstance(mine, MappingNode) and isinstance(theirs, MappingNode) else None
        return None

    def _different(self, other: ArgumentPlan) -> Iterator[tuple[str, Node, Node]]:
        return ((name, a, b) for name, a, b in zip(self.names, self.nodes, other.nodes) if a.key != b.key)


def _without_identities(key: Hashable) -> Hashable:
    if isinstance(key, tuple):
        if len(key) in (2, 3) and key[0] in ("value", "value slot"):
            return ("value",)
        return tuple(_without_identities(part) for part in key)
    return key


def _without_types(key: Hashable) -> Hashable:
    if isinstance(key, tuple):
        if len(key) == 3 and key[0] == "integers":
            return ("numbers", *key[1:])
        return tuple(map(_without_types, key))
    return key


def _innermost(path: str, mine: Node, theirs: Node) -> tuple[str, Node, Node]:
    """The path of the first parts of two nodes that differ, and these."""
    my_parts, their_parts = mine.children(), theirs.children()
    if type(mine) is type(theirs) and [name for name, _ in my_parts] == [name for name, _ in their_parts]:
        for (name, a), (_, b) in zip(my_parts, their_parts):
            if a.key != b.key:
                return _innermost(path + name, a, b)
    return path, mine, theirs


def _told(path: str, mine: Node, theirs: Node) -> str:
    was, now = mine.describe(), theirs.describe()
    if was == now and isinstance(mine, StaticNode) and isinstance(theirs, StaticNode):
        return f"{path} is another object than before, {now}, and known by its identity"
    return f"{path} was {was}, is {now}"


def form_of(path: str) -> str:
    """A path without its indices: the same for all elements of a list, and for those of all rows."""
    return re.sub(r"\[\d+\]", "[]", path)


def _paths_of_ints(path: str, node: Node) -> Iterator[str]:
    if isinstance(node, NumberNode):
        yield from [path] if node.integer else []
    elif isinstance(node, NumbersNode):
        places = [node.place + k for k, is_int in enumerate(node.types or b"") if is_int]
        yield from filter(None, (node.path_of(path, place) for place in places))
    else:
        for name, part in node.children():
            yield from _paths_of_ints(path + name, part)


def _path_of_number(path: str, node: Node, index: int) -> str | None:
    if isinstance(node, NumberNode):
        return path if node.place == index else None
    if isinstance(node, NumbersNode):
        return node.path_of(path, index)
    parts = (_path_of_number(path + name, part, index) for name, part in node.children())
    return next((found for found in parts if found is not None), None)


# ---- planning -----------------------------------------------------------------------------------


def bind(signature: Signature, given: Sequence[Any], named: Mapping[str, Any], name: str) -> BoundArguments:
    """Bind arguments to the parameters of the step; raises an ArgumentError if they do not fit."""
    try:
        return signature.bind(*given, **named)
    except TypeError as reason:
        raise ArgumentError(f"{user_location()}: {name}{signature}: {reason}.") from None


class _Planner:
    def __init__(
        self,
        static: Collection[str],
        is_slot: Callable[[Any], bool] | None,
        precision: Precision,
        shared: Collection[str],
        learned: Collection[str],
    ) -> None:
        self.static, self.precision, self.shared, self.learned = static, precision, shared, learned
        self.packed = 0
        self.buffers: list[BufferNode] = []
        self.values: list[Value] = []
        self.is_slot = is_slot
        self.objects: list[ObjectNode] = []

    def node(self, argument: Any, path: str) -> Node:
        kind = type(argument)
        if path in self.shared and isinstance(argument, Tensor) and not is_traced(argument):
            return AssignedNode(argument, path)
        if path in self.shared and (kind is memoryview or is_numpy_array(argument)):
            return PlainNode(path, f"argument {path} is the memory of a tensor that the step assigns")
        is_buffer = kind in (bytes, bytearray, array, memoryview) or is_numpy_array(argument)
        if is_buffer and path in self.learned and getattr(argument, "shape", None) != ():  # a scalar is a number
            return self.buffer(argument, path)
        if path in self.static or kind is bool or argument is None or kind is str or _is_numpy_bool(argument):
            return StaticNode(argument)
        if is_traced(argument):
            leaked()
        if isinstance(argument, Tensor):
            return StaticNode(argument) if argument.requires_grad else self.tensor(argument, path)
        if isinstance(argument, Value):
            if self.is_slot is None or not self.is_slot(argument):
                return ValueNode(argument, None)
            known = next((slot for slot, value in enumerate(self.values) if value is argument), None)
            if known is not None:
                return ValueNode(argument, known, again=True)
            self.values.append(argument)
            return ValueNode(argument, len(self.values) - 1)
        if isinstance(argument, (Decimal, numbers.Rational)) and not isinstance(argument, numbers.Integral):
            raise ArgumentError(
                f"{user_location()}: argument {path} is a {kind.__name__}, which computes in its own way, not as a "
                "float. Pass float(x), or name it in static= where it takes few different values."
            )
        if isinstance(argument, numbers.Real):
            return self.number(argument, path)
        if is_buffer:
            return self.buffer(argument, path)
        if isinstance(argument, (list, tuple)) and is_rebuilt(argument):
            return self.sequence(argument, path)
        if kind is dict:
            parts = {key: self.node(part, f"{path}[{key!r}]") for key, part in argument.items()}
            return self.container(argument, MappingNode(parts))
        if self.is_slot is not None and (node_class := class_of_slot(argument)) is not None:
            return self.object(argument, node_class, path)
        if is_rebuilt(argument):  # a dataclass
            parts = {name: self.node(part, f"{path}.{name}") for name, part in attributes(argument).items()}
            return self.container(argument, DataclassNode(argument, parts))
        if isinstance(argument, (set, complex)) or has(argument, "__next__"):
            raise ArgumentError(
                f"{user_location()}: argument {path} is a {kind.__name__}, which cannot be an input of a compiled "
                "step. Pass a list, a tuple, a dict or an array of numbers."
            )
        return StaticNode(argument)

    def number(self, argument: Any, path: str) -> Node:
        kind = type(argument)
        if isinstance(argument, Enum):  # there is one of each
            return StaticNode(argument)
        if not (is_number_type(kind) or is_narrow(kind)):
            return PlainNode(path, f"argument {path} is a {kind.__name__}, which may compute in its own way")
        self.packed += 1
        of_numpy = kind if is_numpy_integer(kind) or is_float64(kind) or is_narrow(kind) else None
        return NumberNode(self.packed - 1, path, isinstance(argument, numbers.Integral), of_numpy)

    def tensor(self, argument: Tensor, path: str) -> Node:
        node = TensorNode(len(self.buffers), 0, argument, path)
        self.buffers.append(node)
        return node

    def object(self, argument: Any, known: NodeClass, path: str) -> Node:
        first = next((node for node in self.objects if node.example is argument), None)
        if first is not None:
            return ObjectNode(argument, known, first.slot, path, first)
        self.objects.append(ObjectNode(argument, known, len(self.objects), path))
        return self.objects[-1]

    def buffer(self, argument: Any, path: str) -> Node:
        if getattr(argument, "shape", None) == () and argument.dtype.kind in "biuf":
            what = "an array of no dimension" if has(argument, "__setitem__") else f"a numpy.{type(argument).__name__}"
            return PlainNode(path, f"argument {path} is {what}, which computes in its own way. Pass float({path})")
        node = BufferNode(len(self.buffers), 0, argument, path)
        self.buffers.append(node)
        return node

    def sequence(self, argument: Any, path: str) -> Node:
        shape, kinds, type_ = _regular_shape(argument)
        if shape and not any(fixed.startswith(f"{path}[") for fixed in self.static):
            flat = _flat(argument, len(shape))
            check_exact(flat, path)
            self.packed += len(flat)
            ints = [k for k, number in enumerate(flat) if type(number) is int] if type_ is float else []
            whole, mixed = (ints, []) if path + WITH_INTS in self.static else ([], ints)
            return NumbersNode(self.packed - len(flat), shape, kinds, type_, self.precision, whole, mixed)
        parts = [self.node(part, f"{path}[{index}]") for index, part in enumerate(elements(argument))]
        return self.container(argument, SequenceNode(type(argument), parts))

    def container(self, argument: Any, node: SequenceNode | MappingNode | DataclassNode) -> Node:
        """A container; one of many Values or other objects and no inputs is known by its identity."""
        return KnownNode(argument, node) if node.identified >= _MANY else node


def plan_arguments(
    names: Sequence[str],
    arguments: Sequence[Any],
    static: frozenset[str],
    is_slot: Callable[[Any], bool] | None = None,
    precision: Precision = FLOAT64,
    shared: Collection[str] = (),
    questions: Sequence[Question] = (),
    learned: Collection[str] = (),
) -> ArgumentPlan:
    """Plan the arguments of a call.

    Args:
        names: the names of the parameters of the step, for messages.
        arguments: one object for each name.
        static: paths of what is compared, not traced: names, or numbers in arguments, such as `config['n']`.
        is_slot: whether a Value is copied in and out instead of being known by its identity. Without it, all are known
            so, and nodes of other classes as well.
        precision: what numbers are rounded to.
        shared: paths of what the step changes by another way, too, all of them static.
        questions: that the step asks about which of them are the same object.
        learned: those of the static paths that traces have found, of lists or numbers: buffers are inputs there, too.

    Raises:
        ArgumentError: an argument cannot be an input.
    """
    planner = _Planner(static, is_slot, precision, shared, learned)
    nodes: list[Node] = []
    for name, argument in zip(names, arguments):
        try:
            nodes.append(planner.node(argument, name))
        except RecursionError:
            raise ArgumentError(
                f"{user_location()}: argument {name} is nested too deeply, or contains itself. Pass a flat list."
            ) from None
    place = planner.packed
    for node in planner.buffers:  # buffers are numbered behind everything that is packed
        node.place = place
        place += node.size
    plan = ArgumentPlan(names, nodes, planner.packed, planner.buffers, planner.values, precision)
    plan.objects = planner.objects
    plan.fixed, plan.learned, plan.identities = static, learned, list(map(id, arguments))
    plan.ask(questions, arguments)
    return plan


def _is_numpy_bool(argument: Any) -> bool:
    return type(argument).__module__ == "numpy" and type(argument).__name__ in ("bool_", "bool")


def is_numpy_array(argument: Any) -> bool:
    """Whether an object is an array or scalar of numpy, which need not be installed."""
    return type(argument).__module__ == "numpy" and has(argument, "dtype") and has(argument, "shape")


def _regular_shape(argument: Any) -> tuple[tuple[int, ...], tuple[type, ...], type]:
    """Shape, container types and type of regularly nested numbers of one type, or floats and ints; () for others.

    Tuples of both, such as `(moment, count)`, are records, if there are few.
    """
    shape: list[int] = []
    kinds: list[type] = []
    level: Any = argument
    first: Any = argument
    while type(first) in (list, tuple) and len(first) and len(shape) < _MOST_DIMENSIONS:
        kind, length = type(first), len(first)
        if any(type(row) is not kind or len(row) != length for row in level if row is not argument) and shape:
            return (), (), float
        shape.append(length)
        kinds.append(kind)
        level = level if len(shape) == 1 else list(chain.from_iterable(level))
        first = level[0]
    types = set(map(type, level))
    if shape and types == {int, float} and is_record(kinds[-1], len(level)):
        return (), (), float
    if not shape or not (types <= {int, float} or (len(types) == 1 and is_float64(type(first)))):
        return (), (), float
    return tuple(shape), tuple(kinds), float if float in types else type(first)


def _flat(argument: Any, depth: int) -> list[Any]:
    for _ in range(depth - 1):
        argument = list(chain.from_iterable(argument))
    return list(argument)
