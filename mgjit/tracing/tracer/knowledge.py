"""What one trace has found out: for the next trace of the same step, and for the kernel that is built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...engine.state import State
from ..call.sameness import Question
from ..copies.built import Built
from ..copies.copies import Copied
from ..copies.tables import Table
from ..surroundings.places import Place


class Again(BaseException):
    """The trace is to be made once more, with what has been learned."""


@dataclass
class Knowledge:
    """What traces of a step have found out about places, for later ones.

    Attributes:
        variable: keys of the places of lists whose numbers the step assigns, though its code does not show it.
        gradients: keys of the fields in which None was, and the step puts numbers.
        whole: keys of the fields with ints that stay ints.
        floats: keys of the fields in which floats take the place of ints.
        used: keys of the places of counters whose value the step uses.
        mixed: keys of the places where ints and floats take turns.
        indexed: keys of the places of lists to whose elements run-time indices assign.
        fixed: keys of the places whose numbers are used as lengths, indices or keys: they shape the trace.
        fixed_arguments: names of the arguments that are used so.
        needed: those of the fixed ones that are used as lengths, indices or keys, and not only in tests.
        changing: keys of the places that tests ask for, but which the step assigns.
        no_flow: why `backward()` is recorded operation by operation; empty when it is not.
        is_settled: whether fields that hold None or ints are traced as the floats that a kernel leaves in them.
        is_for_later: whether the call that is traced runs as plain Python, and its kernel makes later ones.
        may_append: whether the step may append to lists among its arguments (call/appended.py).
        questions: that the step asks about which arguments are the same object, by their keys.
        decided: files and lines of tests both of whose sides cannot be computed, so that their answers shape the trace.
        every_float: whether floats that the step only reads are memory, too: the weights of a frozen step.
        built: keys of the places where the step leaves what it has built (tracer/building.py).
        carried: of those that are read as well, in the form that the call before has left.
        linked: of those where tensors with a graph are left.
        logs: of those where a list lies to which the step only appends.
        holders: dicts of the objects with such places: as long as one is kept, Python makes no other for its object.
        unbuilt: of those where that cannot be built again, or is read in the next call.
        room: for so many numbers of these.
    """

    variable: set[Any] = field(default_factory=set)
    gradients: set[Any] = field(default_factory=set)
    whole: set[Any] = field(default_factory=set)
    floats: set[Any] = field(default_factory=set)
    used: set[Any] = field(default_factory=set)
    mixed: set[Any] = field(default_factory=set)
    indexed: set[Any] = field(default_factory=set)
    fixed: set[Any] = field(default_factory=set)
    fixed_arguments: set[str] = field(default_factory=set)
    needed: set[Any] = field(default_factory=set)
    changing: set[Any] = field(default_factory=set)
    no_flow: str = ""
    is_settled: bool = False
    is_for_later: bool = False
    may_append: bool = False
    questions: dict[Any, Question] = field(default_factory=dict)
    decided: set[tuple[str, int]] = field(default_factory=set)
    every_float: bool = False
    built: set[Any] = field(default_factory=set)
    carried: set[Any] = field(default_factory=set)
    linked: set[Any] = field(default_factory=set)
    logs: set[Any] = field(default_factory=set)
    holders: list[Any] = field(default_factory=list)
    unbuilt: set[Any] = field(default_factory=set)
    room: int = 0


@dataclass
class HeapPlan:
    """What became of the places.

    Attributes:
        state: where copied numbers are; None when there are none.
        copied: what is copied before and after each call.
        tables: lists among them of which a call needs only what its indices choose.
        valid_once: whether places that held None or ints hold floats from the first call on, and the step can tell.
        fixed: places whose numbers have shaped the trace, and the numbers: guards must watch them.
        backward: how the backward passes of other people's classes were taken, for people; empty where there are none.
        looked_after: (id of the holder, name) of the places that are memory of the kernel, or copied: guards must not
            watch them.
        bound: objects whose numbers lived in the memory of kernels before.
        assigned: identities of the objects, or of their dicts, whose fields in the kernel's memory the step assigns.
        built: what the step builds and leaves.
        logs: the lists to which it only appends.
        replaced: (identity of a list, index) of the elements in whose place the step puts others.
        unread: places whose numbers the step does not read: guards must see whether numbers lie there at all.
    """

    state: State | None = None
    copied: list[Copied] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    valid_once: bool = False
    fixed: list[tuple[Place, Any]] = field(default_factory=list)
    backward: str = ""
    bound: list[Any] = field(default_factory=list)
    looked_after: set[tuple[int, Any]] = field(default_factory=set)
    assigned: set[int] = field(default_factory=set)
    built: Built = field(default_factory=Built)
    logs: list[list[Any]] = field(default_factory=list)
    replaced: set[tuple[int, int]] = field(default_factory=set)
    unread: list[Place] = field(default_factory=list)

    @property
    def copies(self) -> bool:
        """Whether anything is copied."""
        return bool(self.copied or self.built.places or self.built.carried)

    def changed(self, also_movable: bool) -> frozenset[int]:
        """The identities of the lists, dicts and objects in which a kernel assigns numbers.

        Args:
            also_movable: whether those of lists are among them in whose place the program may put others.
        """
        assigned = [copied for copied in self.copied if copied.assigned]
        lists = [copied for copied in assigned if copied.size and not copied.replaced]
        stay = [copied for copied in lists if also_movable or copied.place.container is not None]
        identities = {id(copied.place.read()) for copied in stay}
        places = [*(copied.place for copied in assigned), *self.built.places]
        return frozenset({*self.assigned, *identities, *(place.key[0] for place in places), *map(id, self.logs)})
