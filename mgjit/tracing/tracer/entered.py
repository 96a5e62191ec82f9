"""Traced numbers in place of those in the user's objects: put there, looked up, and taken out again.

Numbers of nodes, and of objects of which there are many, become PARAMETER and GRADIENT leaves; all others are elements
of one State.  Which are which is decided in memory.py.
"""

from __future__ import annotations

from typing import Any

from ...engine.kinds import number_kind
from ...engine.numeric import is_number
from ...engine.state import State, zero_array
from ...ir import opcodes as ops
from ...ir.trace import FOREIGN_BASE
from ...memory.live import Field, Home
from ...memory.parameter import Parameter
from ..call.objects import ObjectNode
from ..copies.copies import Copied
from ..record.counters import Counted
from ..record.recorder import Recorder
from ..record.values import TracedTypes
from ..surroundings.places import Attribute, Place
from ..surroundings.roles import Roles
from ..surroundings.shapes import contents_of
from . import number_kinds
from .knowledge import Again, Knowledge


class Entered:
    """The traced numbers of one trace.

    Args:
        knowledge: of earlier traces.

    Attributes:
        fields: those that become memory.
        copied: those that are copied in and out at each call.
        parameters: the objects that have fields in new memory.
        state: the memory of what is copied; None if there is nothing.
        room: the leaf of the first number in the state that nothing is copied to, and its offset.
        is_over: whether the step has run, so that nothing of it counts any more.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self.fields: list[number_kinds.EnteredField] = []
        self.copied: list[number_kinds.EnteredCopy] = []
        self.parameters: list[Parameter] = []
        self.state: State | None = None
        self.room = 0, 0
        self.is_over = False
        self._contents: list[tuple[Field, Any, Any]] = []  # what the fields held
        self._memory: dict[int, tuple[int, Any]] = {}  # by object: the leaf of its data, and its gradient
        self._places: dict[int, Place] | None = None
        self._bounds: dict[int, int | None] = {}

    def begin(self, recorder: Recorder, types: TracedTypes) -> None:
        """Note what records, and the types of traced numbers."""
        self._recorder, self._types = recorder, types

    # ---- putting them there -----------------------------------------------------------------------

    def put_parameters(
        self, things: list[Any], fields: tuple[Field, ...], live: tuple[str, ...], are_nodes: bool
    ) -> None:
        """Numbers of many objects, which are to live in a kernel's memory.

        Args:
            things: objects of one class.
            fields: one or two of its fields: data and gradient.
            live: the names of all its fields that live in memory.
            are_nodes: whether they are nodes of an autograd graph, with their data and their gradients.
        """
        for thing, *contents in zip(things, *(contents_of(f, things) for f in fields)):
            has_home = Home in map(type, contents)
            if not has_home:
                leaf = ops.leaf(ops.PARAMETER, FOREIGN_BASE + len(self.parameters))
                self.parameters.append(Parameter(thing, fields, leaf, live))
                leaves = leaf, self._recorder.gradient_leaf(leaf)
            for k, (f, content) in enumerate(zip(fields, contents)):
                if type(content) is Home:
                    bound_kind = ops.PARAMETER if content.array is content.storage.data else ops.GRADIENT
                    leaf = ops.leaf(bound_kind, self._recorder.bound_number(content.storage, content.index))
                    self._put(f, thing, content, leaf, are_nodes)
                elif not has_home and (content is None or is_number(content)):
                    self._put(f, thing, content, leaves[k], are_nodes)

    def put_given(self, given: ObjectNode, of_node: bool) -> None:
        """The numbers of a node that stands for one among the arguments: they live in a storage already."""
        for f, kind, number_type in zip(given.fields, (ops.PARAMETER, ops.GRADIENT), given.kinds):
            home = f.read(given.stand_in)
            leaf = ops.leaf(kind, self._recorder.bound_number(home.storage, home.index))
            self._put(f, given.stand_in, home, leaf, of_node, number_type is int)

    def _put(self, f: Field, thing: Any, content: Any, leaf: int, of_node: bool, whole: bool = False) -> None:
        self._contents.append((f, thing, content))
        may_be_reached = of_node and ops.leaf_kind(leaf) == ops.GRADIENT
        is_reset = may_be_reached and not content and self._knowledge.is_for_later  # a gradient: to 0 or None
        is_float = content is None or of_node or Attribute(thing, f).kind in self._knowledge.floats
        if (self._knowledge.is_settled or is_reset) and (content is None or isinstance(content, int)) and is_float:
            content = float(content or 0)
        number_of = self._types.leaf_number if may_be_reached else self._types.number_at
        number = None if content is None else number_of(leaf, whole or isinstance(content, int))
        f.write(thing, number)
        self.fields.append((f, thing, content, number, leaf))

    def put_copied(self, scalars: list[Place], roles: Roles) -> None:
        """Single numbers, and the elements of lists: one State, which calls fill and empty."""
        places = [(place, [place.read()], 0) for place in scalars]
        places += [(place, list(content), len(content)) for place, content in roles.lists]
        size = sum(len(x) * (2 if place.key in self._knowledge.mixed else 1) for place, x, _ in places)
        size += self._knowledge.room
        if not size:
            return
        self.state = State(())
        self.state._precision = self._recorder.precision
        self.state._buffer = zero_array(size, self.state._precision)  # the kernel's from the beginning
        leaf = self._recorder.state(self.state)
        offset = 0
        for place, contents, size in places:
            is_mixed = place.key in self._knowledge.mixed
            if is_mixed:
                start, count = leaf - offset, len(contents)
                numbers = [self._types.mixed.in_memory(start - k, start - count - k) for k in range(count)]
            else:
                number_of = self._types.leaf_number if place.key in self._knowledge.indexed else self._types.number_at
                numbers = [number_of(leaf - offset - k, number_kind(x)) for k, x in enumerate(contents)]
            if place in roles.counters and place.key not in self._knowledge.used and not is_mixed:
                numbers = [self._counted(place, contents[0])]
            if size:
                place.read()[:] = numbers
            else:
                place.write(numbers[0])
            self.copied.append((Copied(place, offset, size, mixed=is_mixed), contents, numbers, leaf - offset))
            offset += len(contents) * (2 if is_mixed else 1)
        self.room = leaf - offset, offset

    def _counted(self, place: Place, start: int) -> Counted:
        def used() -> None:
            if not self.is_over:
                self._knowledge.used.add(place.key)
                raise Again

        return Counted(start, start, used)

    # ---- looking them up --------------------------------------------------------------------------

    def memory_of(self, thing: Any) -> tuple[int, Any] | None:
        """The leaf of an object's data, and the number of its gradient; None if they are not memory."""
        if not self._memory:
            for _, owner, _, number, leaf in self.fields:
                kind = ops.leaf_kind(leaf)
                known = self._memory.get(id(owner), (0, None))
                if kind == ops.PARAMETER and not known[0]:  # data and gradient come first
                    self._memory[id(owner)] = (leaf, known[1])
                elif kind == ops.GRADIENT and known[1] is None:
                    self._memory[id(owner)] = (known[0], number)
        return self._memory.get(id(thing))

    def places(self) -> dict[int, Place]:
        """Single numbers that may be fixed, by leaf."""
        if self._places is None:  # conditions ask again and again
            fields = ((f, thing, leaf) for f, thing, content, _, leaf in self.fields if isinstance(content, int))
            self._places = {leaf: Attribute(thing, f) for f, thing, leaf in fields}
            self._places.update({leaf: copied.place for copied, _, _, leaf in self.copied if not copied.size})
        return self._places

    def bound_of(self, leaf: int) -> int | None:
        """How large the int in a leaf can be; 0 where there is none, None where its limit decides."""
        if not self._bounds:
            self._bounds = number_kinds.bounds(self.fields, self.copied)
        return self._bounds.get(leaf, 0)

    def number_of(self, counter: Counted) -> Any:
        """The number of a counter in the call that runs."""
        leaf = next(leaf for copied, _, numbers, leaf in self.copied if counter.is_of(numbers[0]))
        return self._types.number_at(leaf, True) + counter.growth()

    def live(self) -> list[Any]:
        """The objects whose numbers lived in a kernel's memory before the trace."""
        found = {id(thing): thing for _, thing, before in self._contents if type(before) is Home}
        return list(found.values())

    # ---- taking them out --------------------------------------------------------------------------

    def put_back(self, roles: Roles) -> None:
        """Put back what was there."""
        for f, thing, content in self._contents:
            f.write(thing, content)
        for copied, contents, _, _ in self.copied:
            if copied.size:
                original = roles.identity(copied.place)
                original[:] = contents
                # Where a container around it is another one now, that one is put back (surroundings/before.py).
                if copied.place.lost() is None and copied.place.read() is not original:
                    copied.place.write(original)
            else:
                copied.place.write(contents[0])

    def contents(self) -> dict[int, Any]:
        """What was there, by leaf."""
        numbers = {leaf: content for _, _, content, _, leaf in self.fields}
        for _, contents, _, leaf in self.copied:
            numbers.update((leaf - k, content) for k, content in enumerate(contents))
        return numbers

    def forget(self) -> dict[int, Any]:
        """Let go of the traced numbers, when everything has been put back; returns what was there, by leaf."""
        numbers = self.contents()
        self.fields, self._contents, self.copied, self._memory, self._places = [], [], [], {}, None
        return numbers
