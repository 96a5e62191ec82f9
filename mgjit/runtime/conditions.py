"""Conditions, as Python source, for the arguments of a call that a kernel can take.

1. `ConditionWriter.visit` writes the conditions for one argument by its node in the plan, part by part.  They may be
   too strict but never too lax: a call that does not meet them takes the general path.
2. With them it writes how the numbers and buffers of the argument are named in the source, to be packed or passed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from operator import countOf
from types import CellType
from typing import Any

from ..base.ffi import PYPY
from ..engine.precision import FLOAT64
from ..memory.live import raw_attributes
from ..tracing.call.containers import DataclassNode, MappingNode, SequenceNode
from ..tracing.call.exact import PLAIN, exact_key, exact_keys
from ..tracing.call.inputs import EXACT_INTEGERS, BufferNode, NumberNode, NumbersNode, root_of
from ..tracing.call.known import AssignedNode, KnownNode, StaticNode, ValueNode
from ..tracing.call.node import Node
from ..tracing.call.stand_ins import is_rebuilt
from ..tracing.call.tensors import TensorNode
from ..tracing.record.ranges import intersection
from .kernel import Kernel

#: Lists up to this length are packed element by element.
_FEW = 16
#: Lists of more numbers, nested or not, are packed at once, in C where that is possible.
_MANY = 64
#: Up to this many integers are checked one by one.
_FEW_INTEGERS = 8
#: CPython compares integers up to this one quickly; larger ones take the general path.
_QUICK_INTEGERS = 2**30 - 1


class Unsuitable(Exception):
    """Calls with this structure must take the general path."""


class ConditionWriter:
    """Writes conditions for the arguments that a function is called with, and expressions of their numbers.

    Attributes:
        names: the objects that it uses, by their names in the source.
        cells: the cells of variables that the step captures, by their names in the source.
        conditions: what must hold, in order; some name a part of an argument.
        afterwards: what must hold once the numbers of the user's objects have been copied in.
        unpackings: statements that unpack short lists.
        numbers: expressions of the packed numbers, in the order of their places.
        tables: places of those that are bytes of many numbers, and how many bytes.
        pointers: expressions of the buffers that are passed to C; "None" for those that are put into the block.
        puts: slot and expression of the buffers that are put into the block.
    """

    def __init__(self, kernel: Kernel, parameters: list[str]) -> None:
        self.kernel, self.parameters = kernel, parameters
        self.conditions: list[str] = []
        self.afterwards: list[str] = []
        self.unpackings: list[str] = []
        self.numbers: list[str] = []
        self.tables: list[tuple[int, int]] = []
        self.pointers: list[str] = ["None"] * (len(kernel.plan.buffers) + (kernel.draws is not None))
        self.puts: list[tuple[int, str]] = []
        self._prefix = "_"
        while any(name.startswith(self._prefix) for name in parameters):
            self._prefix += "_"
        self._locals = 0
        self._name_of_id: dict[int, str] = {}
        self.names: dict[str, Any] = {}
        self.cells: dict[str, CellType] = {}
        self._type, self._len = self.name_of(type), self.name_of(len)
        allowed: dict[int, list[range]] = {}
        for check in kernel.checks:
            allowed.setdefault(check.input_index, []).append(check.allowed)
        #: For each input that is an index, or that one is computed from: which integers it may be.
        self._allowed = {index: intersection(ranges) for index, ranges in allowed.items()}

    def own(self, name: str) -> str:
        """A name that does not clash with a parameter."""
        return self._prefix + name

    def name_of(self, thing: Any) -> str:
        """The global name of an object."""
        name = self._name_of_id.get(id(thing))
        if name is None:
            name = self._name_of_id[id(thing)] = self.own(str(len(self._name_of_id)))
            self.names[name] = thing  # which also keeps its id from being used again
        return name

    def variable_of(self, cell: CellType) -> str:
        """The name of the variable in a cell."""
        name = self.own(f"cell{len(self.cells)}")
        self.cells[name] = cell
        return name

    def visit(self, node: Node, place: str) -> None:
        """Write the conditions for an argument, or a part of one, that is found at `place`."""
        for kind, write in _WRITERS.items():
            if isinstance(node, kind):
                write(self, node, place)
                return
        raise Unsuitable

    def typed(self, place: str, kind: type) -> str:
        """Require a type; returns a local name for the value."""
        if place.isidentifier():
            self.conditions.append(f"{self._type}({place}) is {self.name_of(kind)}")
            return place
        local = self._new_local()
        self.conditions.append(f"{self._type}({local} := {place}) is {self.name_of(kind)}")
        return local

    def unshared(self, local: str, depth: int = 1) -> None:
        """Require that the kernel does not change a container of an argument, nor lists in it, to a depth."""
        found: list[tuple[list[str], str]] = []
        if self.kernel.changed:
            found.append((self.conditions, self.name_of(self.kernel.changed)))
        if self.kernel.copies is not None and self.kernel.copies.told.changed:
            found.append((self.afterwards, f"{self.name_of(self.kernel.copies.told.lists)}[0]"))
        for conditions, changed in found:
            conditions.append(f"{self.name_of(id)}({local}) not in {changed}")
            if depth > 1:
                conditions.append(f"{self.name_of(_are_unshared)}({local}, {changed}, {depth})")

    def _new_local(self) -> str:
        self._locals += 1
        return self.own(f"part{self._locals}")

    def number(self, node: NumberNode, place: str) -> None:
        local = self.typed(place, node.type)
        if node.place in self._allowed:
            self._index(node.place, local, node.integer)
        elif node.integer:
            ends = self.integers(node)
            self.conditions += [f"{local} >= {ends[0]}", f"{local} <= {ends[-1]}"]  # a chain is slower
        self.numbers.append(local)

    def is_index(self, place: int) -> bool:
        """Whether an input is an index, or one is computed from it."""
        return place in self._allowed

    def integers(self, node: NumberNode) -> range:
        """The ints that an argument may be, for a quick call."""
        limit = min(node.limit, _QUICK_INTEGERS)
        return self._allowed.get(node.place, range(-limit, limit + 1))

    def limits(self, node: BufferNode) -> bytes:
        """The least and the greatest that each of some bytes may be, for a quick call; empty for any."""
        ranges = [self._allowed.get(node.place + k) for k in range(node.size)] if self._allowed else []
        if all(one is None for one in ranges):
            return b""
        ends = [(0, 255) if one is None else (max(one.start, 0), min(one.stop - 1, 255)) for one in ranges]
        return bytes(chain.from_iterable(pair if pair[0] <= pair[1] else (1, 0) for pair in ends))

    def index_ranges(self, node: NumbersNode) -> list[tuple[int, int, int]] | None:
        """The position, least and end of each index among the ints of a table; None if one is seen as a float."""
        places = [k for k in range(math.prod(node.shape)) if node.place + k in self._allowed] if self._allowed else []
        if any(node.types is None or not node.types[k] for k in places):
            return None
        ranges = [(k, self._allowed[node.place + k]) for k in places]
        return [(k, allowed.start, allowed.stop) for k, allowed in ranges]

    def _index(self, index: int, place: str, integer: bool) -> None:
        allowed = self._allowed[index]
        self.conditions += [f"{place} >= {allowed.start}", f"{place} < {allowed.stop}"]
        if not integer:
            self.conditions.append(f"{place} % 1 == 0")

    def numbers_in_rows(self, node: NumbersNode, place: str) -> None:
        size = math.prod(node.shape)
        if node.integer and len(node.shape) == 1 and size <= _FEW_INTEGERS:
            elements = [NumberNode(node.place + k, "", True) for k in range(size)]
            for element in elements:
                element.limit = node.limit
            self.sequence(SequenceNode(node.kinds[0], [*elements]), place)
            return
        checked = [k for k in range(size) if node.place + k in self._allowed] if self._allowed else []
        are_whole = node.whole.issuperset(checked) and self.kernel.plan.precision is FLOAT64
        if size > _MANY and node.is_plain and are_whole and not (node.integer or PYPY):
            local = self._new_local()
            self.conditions.append(f"({local} := {self.name_of(node.table)}({place})) is not None")
            self.unshared(place, len(node.shape))
            places: defaultdict[range, list[int]] = defaultdict(list)
            for k in checked:
                places[self._allowed[node.place + k]].append(k)
            are_in = self.name_of(node.are_in)
            for allowed, some in places.items():
                self.conditions.append(f"{are_in}({local}, {self.name_of(tuple(some))}, {self.name_of(allowed)})")
            self.tables.append((node.place, size * self.kernel.plan.precision.size))
            self.numbers.append(local)
            return
        if len(node.shape) > 1 or node.integer or node.whole or checked:
            flat = self._new_local()
            self.conditions.append(f"({flat} := {self.name_of(node.flatten)}({place})) is not None")
            self.unshared(place, len(node.shape))
            if checked:
                copy = self._new_local()
                self.conditions.append(f"({copy} := {self.name_of(tuple)}({flat}))")
                flat = copy
            for k in checked:
                self._index(node.place + k, f"{flat}[{k}]", node.integer or k in node.whole)
            self.numbers.append(f"*{flat}")
            return
        local = self.typed(place, node.kinds[0])
        self.unshared(local)
        floats = f"{self.name_of(countOf)}({self.name_of(map)}({self._type}, {local}), {self.name_of(node.type)})"
        self.conditions.append(f"({floats} == {size} or {self.name_of(node.are_floats)}({local}))")
        if size > _FEW:
            self.conditions.append(f"{self._len}({local}) == {size}")
            self.numbers.append(f"*{local}")
            return
        parts = [self._new_local() for _ in range(size)]
        self.unpackings.append(f"{''.join(f'{part}, ' for part in parts)}= {local}")  # fails for another length
        self.numbers += parts

    def buffer(self, node: BufferNode, place: str) -> None:
        checked = [k for k in range(node.size) if node.place + k in self._allowed] if self._allowed else []
        if node.type is bytes:
            local = self.typed(place, bytes)
            self.conditions.append(f"{self._len}({local}) == {node.size}")
            for k in checked:
                self._index(node.place + k, f"{local}[{k}]", True)
            self.pointers[node.region] = local
            return
        if node.dtype is not None:
            local = self.typed(place, node.type)
            self.conditions.append(f"{local}.dtype is {self.name_of(node.dtype)}")
            self.conditions.append(f"{local}.shape == {node.shape}")
            self.conditions.append(f"{local}.strides == {node.strides()}")
            if self.kernel.changed:
                self._unshared_root(local)
        else:
            if isinstance(node, TensorNode) and self.kernel.changed:
                given, place = place, self._new_local()
                self.conditions.append(
                    f"{self.name_of(id)}(({place} := {given})._memory) not in {self.name_of(self.kernel.changed)}"
                )
            local = self._new_local()
            self.conditions.append(f"({local} := {self.name_of(node.contiguous)}({place})) is not None")
            if node.type is memoryview and self.kernel.changed:
                self._unshared_root(local)
        if node.limit < EXACT_INTEGERS:
            self.conditions.append(f"{self.name_of(node.is_exact)}({local})")
        if checked:
            local = self._checked_copy(node, local, checked)
        self.puts.append((self.kernel.slot("input", node.region + 1), local))

    def _unshared_root(self, buffer: str) -> None:
        root = f"{self.name_of(id)}({self.name_of(root_of)}({buffer}))"
        self.conditions.append(f"{root} not in {self.name_of(self.kernel.changed)}")

    def _checked_copy(self, node: BufferNode, buffer: str, checked: Sequence[int]) -> str:
        """The name of a copy that nobody can change any more, whose elements are the indices that they may be."""
        copy = self._new_local()
        self.conditions.append(f"({copy} := {self.name_of(_private)}({buffer})) is not None")
        places: defaultdict[range, list[int]] = defaultdict(list)
        for k in checked:
            places[self._allowed[node.place + k]].append(k)
        are_in = self.name_of(node.are_in)
        for allowed, some in places.items():
            which = "" if len(some) == node.size else f", {self.name_of(tuple(some))}"
            self.conditions.append(f"{are_in}({copy}, {self.name_of(allowed)}{which})")
        return copy

    def sequence(self, node: SequenceNode, place: str) -> None:
        local = self.typed(place, node.kind)
        self.unshared(local)
        self.conditions.append(f"{self._len}({local}) == {len(node.parts)}")
        if node.may_have_attributes:
            self.conditions.append(f"{self.name_of(is_rebuilt)}({local})")
        for k, part in enumerate(node.parts):
            self.visit(part, f"{local}[{k}]")

    def mapping(self, node: MappingNode, place: str) -> None:
        local = self.typed(place, dict)
        self.unshared(local)
        if all(type(key) is str for key in node.parts):
            self.conditions.append(f"{self.name_of(list)}({local}) == {self.name_of(list(node.parts))}")
        else:
            self.conditions.append(f"{self.name_of(exact_keys)}({local}) == {self.name_of(node.keys)}")
        for key, part in node.parts.items():
            self.visit(part, f"{local}[{self.name_of(key)}]")

    def dataclass(self, node: DataclassNode, place: str) -> None:
        local = self.typed(place, node.kind)
        self.unshared(local)
        entries = raw_attributes(node.example)
        if entries is not None:  # what has come to it may be asked for by `hasattr`
            self.conditions.append(f"{self._len}({local}.__dict__) == {len(entries)}")
        if entries is not None and self.kernel.changed:
            self.unshared(f"{local}.__dict__")
        for name, part in node.parts.items():
            self.visit(part, f"{local}.{name}")

    def value(self, node: ValueNode, place: str) -> None:
        if node.slot is not None:
            raise Unsuitable
        self.conditions.append(f"{place} is {self.name_of(node.value)}")

    def known(self, node: KnownNode, place: str) -> None:
        container, equals = self.name_of(node.container), self.name_of(node.equals)
        if not place.isidentifier():
            local = self._new_local()
            self.conditions.append(f"(({local} := {place}) is {container} or {equals}({local}))")
            return
        self.conditions.append(f"({place} is {container} or {equals}({place}))")

    def assigned(self, node: AssignedNode, place: str) -> None:
        self.conditions.append(f"{self.name_of(node.pack)}({place}, None)")

    def static(self, node: StaticNode, place: str) -> None:
        if not node.by_value or node.argument is None or isinstance(node.argument, bool):
            self.conditions.append(f"{place} is {self.name_of(node.argument)}")
            return
        if type(node.argument) not in PLAIN:
            self.conditions.append(f"{self.name_of(exact_key)}({place}) == {self.name_of(node.exact)}")
            return
        local = self.typed(place, type(node.argument))
        self.conditions.append(f"{local} == {self.name_of(node.argument)}")


def _private(buffer: Any) -> bytes:
    return memoryview(buffer).tobytes()


def _are_unshared(rows: Any, changed: frozenset[int] | set[int], depth: int) -> bool:
    for level in range(depth - 1):
        rows = list(chain.from_iterable(rows)) if level else rows
        if not changed.isdisjoint(map(id, rows)):
            return False
    return True


_WRITERS: dict[type, Callable[[ConditionWriter, Any, str], None]] = {
    NumberNode: ConditionWriter.number,
    NumbersNode: ConditionWriter.numbers_in_rows,
    BufferNode: ConditionWriter.buffer,
    SequenceNode: ConditionWriter.sequence,
    MappingNode: ConditionWriter.mapping,
    DataclassNode: ConditionWriter.dataclass,
    ValueNode: ConditionWriter.value,
    KnownNode: ConditionWriter.known,
    AssignedNode: ConditionWriter.assigned,
    StaticNode: ConditionWriter.static,
}
