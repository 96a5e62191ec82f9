"""Sides of conditions on traced numbers: both run in a trace, and the one that is not taken must leave nothing behind.

Python runs one side, a trace runs both (semantics.py, sides.py).  So a side may compute, and do what it likes with what
it has made itself.  Anything else that it does ends the trace, and the call is plain:

1. What is recorded is seen in the records: backward passes, draws; and what waits to be printed.
2. An exception of the user's is one that Python may never see.
3. What a side does to objects cannot be seen, as it may happen anywhere and in C.  So all that it can reach is compared
   by identity: everything around the step (surroundings/before.py), and what the step has made so far, which is found
   from the variables of the side.  Rewritten code says which sides need that: not those that only compute
   (implicit.py).
4. How far an iterator is cannot be compared: a side must not reach one that is older.

Numbers that a side leaves in place of older ones are put back, and selected behind both (stores.py).
"""

from __future__ import annotations

import builtins
import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CellType, FrameType, FunctionType, MappingProxyType, ModuleType, TracebackType
from typing import Any, NamedTuple

from ...base.cached import cached_property
from ...base.lookup import package_of
from ...engine.leaks import is_traced
from ...errors import MgjitError, TraceError, user_location
from ...ir import opcodes as ops
from ...nn.module import Module
from ..record.recorder import Recorder
from ..surroundings.columns import Columns, Look
from ..surroundings.ownership import is_of_user
from ..surroundings.places import Element, Place, Root, Variable
from ..surroundings.shapes import (
    attributes,
    cell_content,
    is_bag,
    is_buffer,
    is_iterator,
    is_stream,
    leads_nowhere,
    shape_of,
)
from ..surroundings.survey import Survey
from .implicit import CALLS, ITERATED, NEW, Doing, Implicit
from .stores import Change, Changes, Noted, is_number, put_back_memory

#: So many objects are compared for the conditions of one trace.
_MOST = 20_000_000
#: Where code has one of these names, it may see that something made by the step is still there.
_SEES_LIFETIMES = frozenset({
    "__del__", "WeakKeyDictionary", "WeakMethod", "WeakSet", "WeakValueDictionary", "finalize", "getrefcount",
    "getweakrefcount", "getweakrefs", "get_objects", "get_referrers", "proxy", "ref", "ReferenceType",
})  # fmt: skip
_NOTHING = object()
_STORES = bytes(byte == ops.STORE for byte in range(256))
_BACKWARDS = bytes(byte == ops.BACKWARD for byte in range(256))


class Reached(NamedTuple):
    """What a side can name.

    Attributes:
        variables: gives the variables, each with its name; of closures the cell.
        names: gives the global variables.
    """

    variables: Callable[[], Iterable[tuple[str, Any]]]
    names: Callable[[], Mapping[str, Any]]

    def meant(self, name: str) -> Any:
        """What a name means, perhaps with attributes that objects keep themselves; None if that cannot be told."""
        name, *further = name.split(".")
        found = dict(self.variables()).get(name, _NOTHING)
        if isinstance(found, CellType):
            found = cell_content(found)
        elif found is _NOTHING:
            found = self.names().get(name, getattr(builtins, name, None))
        for part in further:
            own = None if isinstance(found, type) or hasattr(type(found), part) else getattr(found, "__dict__", None)
            found = own.get(part) if type(own) is dict else None
        return found

    @staticmethod
    def by(*functions: Any) -> Reached:
        """What functions without arguments name."""

        def variables() -> list[tuple[str, Any]]:
            return [pair for f in functions for pair in zip(f.__code__.co_freevars, f.__closure__ or ())]

        return Reached(variables, lambda: functions[0].__globals__)

    @staticmethod
    def by_frame(frame: FrameType, named: Sequence[str]) -> Reached:
        """What statements of a function that runs reach, with the names in them."""
        variables, names = frame.f_locals, frame.f_globals  # the frame itself would be kept by one of its variables
        found = [(name, variables[name]) for name in named if name in variables]
        return Reached(lambda: found, lambda: names)

    @staticmethod
    def by_iterating(iterable: Any, caller: FrameType) -> Reached:
        """What the elements of something name, which a function asks for; how far it is itself, is nobody's matter."""
        frame = getattr(iterable, "gi_frame", None)
        found = list(caller.f_locals.items())
        if frame is not None:
            found += [(name, thing) for name, thing in frame.f_locals.items() if name != ".0"]
        elif not is_iterator(type(iterable)):
            found.append(("what is asked for its elements", iterable))
        else:
            parts = gc.get_referents(iterable)
            found += [("what makes the elements", part) for part in parts if not is_iterator(type(part))]
        names = caller.f_globals
        return Reached(lambda: found, lambda: names)


class Surroundings:
    """What is around the sides of one trace.

    Args:
        survey: of the step.
        implicit: what its classes do without a call to be seen.
        counts: tells how much has been drawn, and how much waits to be shown.
    """

    def __init__(self, survey: Survey | None, implicit: Implicit, counts: Callable[[], tuple[int, int]]) -> None:
        self._before = None if survey is None else survey.before
        self._may_remember = survey is not None and _SEES_LIFETIMES.isdisjoint(survey.names)
        self._implicit, self.counts = implicit, counts
        self._covered: set[int] = set()
        self._last = Columns().look()
        self._compared = 0
        self._kept: list[Any] = []  # what the step has put around it
        self._forget()

    def _forget(self) -> None:
        """What sides have reached of what the step has made, and as it was last."""
        self._inside, self._seen = Columns(), dict[int, Any]()
        self._last_inside = self._inside.look()

    def must_compare(self, does: Doing, reached: Reached) -> bool:
        """Whether a side that does this may change objects."""
        what, *names = (part for part in does if part != NEW)
        if not what:
            return False
        if what & (CALLS | self._implicit.doing):
            return True
        called = [name for name in names if not name.startswith(ITERATED)]
        iterated = [name[len(ITERATED) :] for name in names if name.startswith(ITERATED)]
        return not (
            self._implicit.are_still(map(reached.meant, called))
            and self._implicit.iterate_still(map(reached.meant, iterated))
        )

    def look(self, reached: Iterable[tuple[Any, Any]]) -> list[Look]:
        """All that sides can change, as it is.

        Args:
            reached: what they reach, each with a name; of variables the cell.
        """
        around = self._around
        self._note_kept(around)
        roots = [*reached, *(("what the step keeps", part) for part in self._kept)]
        if not self._may_remember:
            self._forget()
        new = self._last_inside.changed().new_parts()
        remembers = bool(self._seen)
        try:
            self._walk([*roots, *(("what the step has made", part) for part in new)])
        except TraceError:
            if not remembers:
                raise
            self._forget()  # this side may not reach what another one has
            self._walk(roots)
        self._last_inside = self._inside.look()
        self._compared += len(self._covered) + len(self._seen)
        if self._compared > _MOST:
            raise TraceError(
                f"{user_location()}: both sides of many conditions on traced numbers are computed, and the functions "
                "that they call can reach too many objects to see that they change none. Call them in front of the "
                "condition, and select the numbers."
            )
        return [self._last_inside, self._last]

    def _note_kept(self, around: Columns) -> None:
        """See what the step has put around it."""
        changed = self._last.changed()
        self._kept += filter(self._walk_of(self._inside).may_lead, changed.new_parts())
        if changed:
            self._last = around.look()

    def _walk_of(self, columns: Columns) -> _Walk:
        return _Walk(columns, self._covered, self._seen)

    def _walk(self, roots: Iterable[tuple[str, Any]]) -> None:
        walk = self._walk_of(self._inside)
        for name, thing in roots:
            walk.meet(Root(thing, name), thing)
        walk.run()

    def kept(self, returned: Any) -> set[int]:
        """The identities of what the step returns or has put around it, and of all that this leads to."""
        around = self._around
        self._forget()
        self._note_kept(around)
        self._walk([("what is kept", part) for part in (returned, *self._kept)])
        found = set(self._seen)
        self._forget()
        return found

    @cached_property
    def _around(self) -> Columns:
        """What was there before the step."""
        before = self._before
        columns = Columns() if before is None else before.columns()
        self._covered, self._last = columns.identities(), columns.look()
        walk = self._walk_of(columns)
        for change in before.differences() if before is not None else ():
            self._kept += filter(walk.may_lead, change.now if change.is_growth else [change.now])
        return columns


class _Walk:
    """Adds what the step has made so far, as far as it can be reached.

    Args:
        columns: get it. covered: the identities of what was there before.
        seen: what has been met, by identity, which nothing else gets as long as it is there.
    """

    def __init__(self, columns: Columns, covered: set[int], seen: dict[int, Any]) -> None:
        self._columns, self._covered, self._seen = columns, covered, seen
        self._pending: list[tuple[Place, Any]] = []

    def may_lead(self, thing: Any) -> bool:
        """Whether something may have been made by the step, and hold something else."""
        # Traced ones first: their types must not be remembered.
        return not (is_traced(thing) or leads_nowhere(type(thing)) or id(thing) in self._covered)

    def meet(self, place: Place, thing: Any) -> None:
        """Something lies at a place."""
        if self.may_lead(thing):
            self._pending.append((place, thing))

    def run(self) -> None:
        """Follow all that has been met."""
        while self._pending:
            place, thing = self._pending.pop()
            if id(thing) not in self._seen:
                self._seen[id(thing)] = thing
                self._add(place, thing, type(thing))

    def _add(self, place: Place, thing: Any, kind: Any) -> None:
        columns = self._columns
        if isinstance(thing, ModuleType) or (package_of(kind) == "mgjit" and not issubclass(kind, (Module, list))):
            return
        if isinstance(thing, type):
            if is_of_user(thing):
                columns.add_class(thing, place)
                for name, member in vars(thing).copy().items():
                    self.meet(Root(member, f"{place.describe()}.{name}"), member)
        elif is_buffer(thing) or is_stream(thing):
            columns.add_buffer(thing, place)
        elif isinstance(thing, FunctionType):
            columns.add_function(thing, place)
            for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or ()):
                self.meet(Variable(cell, name), cell)
            for part in (*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values(), *vars(thing).values()):
                self.meet(Root(part, thing.__name__), part)
        elif isinstance(thing, CellType):
            columns.add_cell(thing, Variable(thing, place.name))
            self.meet(place, cell_content(thing))
        elif is_iterator(kind):
            raise TraceError(
                f"{user_location()}: both sides of a condition on a traced number are computed, and how far the "
                f"iterator {place.describe()} is in either cannot be told. Make it inside, or a list of it before."
            )
        else:
            self._add_parts(place, thing, kind)

    def _add_parts(self, place: Place, thing: Any, kind: Any) -> None:
        shape = shape_of(kind)
        if shape is not None:
            self._columns.add_container(shape, thing, place)
            base = next((base for base in (list, tuple, deque) if isinstance(thing, base)), None)
            if base is not None:  # of which the shape would remember the types
                parts: Iterable[tuple[Place, Any]] = [
                    (Element(place, thing, k), part) for k, part in enumerate(base.__iter__(thing))
                ]
            else:
                parts = shape.contents(thing, place)
            for part_place, part in parts:
                self.meet(part_place, part)
        if is_bag(kind):
            self._columns.add_object(thing, place)
            for name, part in attributes(thing).items():
                self.meet(Root(part, f"{place.describe()}.{name}"), part)


class Untaken:
    """A context around a side that may not be taken, or around several.

    Args:
        does: what it does, as implicit.py has it.
        reached: what it reaches.

    Attributes:
        changes: behind the context, what the last side has changed.
        frame: the identity of the frame whose statements are the sides.
    """

    changes: Changes
    frame = 0

    def __init__(self, recorder: Recorder, does: Doing, reached: Reached) -> None:
        self._recorder, self._does = recorder, does
        self._reached: Reached | None = reached

    def __enter__(self) -> Untaken:
        recorder = self._recorder
        self.begin()
        around = recorder.surroundings
        self._counts = around.counts() if around is not None else (0, 0)
        reached, self._reached = self._reached, None  # which refers to all variables
        must_compare = around is not None and around.must_compare(self._does, reached)
        self._looks = around.look(reached.variables()) if must_compare and reached is not None else []
        return self

    def begin(self) -> None:
        """In front of a side: of the second one, everything is as it was in front of the first."""
        recorder = self._recorder
        self._records, self._nests = len(recorder.op), len(recorder.nests)
        self._locals, self._room = len(recorder.local_values), recorder.tensor_room.next()
        self._noted = Noted(self.frame)
        recorder.noted.append(self._noted)

    def put_back(self, own: Mapping[str, Any] = MappingProxyType({})) -> Changes:
        """Behind a side: let all numbers be what they were.

        Args:
            own: what the side has assigned to variables, which are put back or selected.

        Returns:
            What they have become.

        Raises:
            TraceError: it has left something else behind.
        """
        recorder = self._recorder
        recorder.noted.remove(self._noted)
        around = recorder.surroundings
        drawn, shown = around.counts() if around is not None else self._counts
        if drawn != self._counts[0]:
            self.refuse("draws random numbers", "Draw in front of the condition, whichever side is taken")
        if shown != self._counts[1]:
            self.refuse("prints, logs or writes something", "Return what is to be shown")
        memory = put_back_memory(recorder, self._stored(), self._records)
        places = self._noted.put_back()
        for look in map(Look.changed, self._looks):
            found = [Change(*part) for part in look.changed_parts()]
            for change in found:
                if is_number(change.before) and is_number(change.after):
                    change.place.write(change.before)
                    noted = places.get(change.place.key, change)  # perhaps only after a function had assigned it
                    places[change.place.key] = Change(change.place, change.before, noted.after)
            for place, text, new in look.differences():
                if not (isinstance(place, Variable) and [*map(id, new)] == [id(own.get(place.name, _NOTHING))]):
                    self.refuse(f"changes {text}")
        return Changes(places, memory)

    def _stored(self) -> Iterator[int]:
        """The older memory that a side has assigned."""
        recorder, first = self._recorder, self._records
        count = len(recorder.op)
        if count == first:
            return
        codes = recorder.op[first:]
        if max(codes) >= ops.PUT:
            self.refuse("assigns to an element of a list")
        for k in recorder.positions(_BACKWARDS, first):
            if codes[k - first] & (ops.NUMBER - 1) == ops.BACKWARD:
                self.refuse("runs a backward pass")
        for k in recorder.positions(_STORES, first):
            target = recorder.a[k]
            is_new = ops.leaf_kind(target) in (ops.LOCAL, ops.LOCAL_GRADIENT) and ops.leaf_index(target) >= self._locals
            if codes[k - first] & (ops.NUMBER - 1) == ops.STORE and not is_new:
                yield target
        for nest in recorder.nests[self._nests :]:
            target = nest.target.leaf
            is_of_tensor = ops.leaf_kind(target) in (ops.TENSOR, ops.TENSOR_GRADIENT)
            if not (is_of_tensor and self._is_new(ops.leaf_index(target))):
                self.refuse("assigns to a tensor that was there before")

    def _is_new(self, index: int) -> bool:
        """Whether the memory of a tensor has been made inside."""
        near, far = self._room
        return index >= (far if index > ops.INDEX_MASK else near)

    def refuse_changes(self) -> None:
        """Behind sides of which nothing is selected.

        Raises:
            TraceError: they have changed something.
        """
        if any(self.changes):
            self.refuse("assigns a number that was there before")

    def refuse(self, does: str, instead: str = "") -> None:
        """End the trace.

        Raises:
            TraceError: always.
        """
        instead = instead or "Do that in front of it, or return the numbers and select them: mgjit.where(test, a, b)"
        raise self._ended(
            TraceError(
                f"{user_location()}: both sides of a condition on a traced number are computed, and one {does}, which "
                f"Python does only if it takes that side. {instead}."
            )
        )

    def _ended(self, error: TraceError) -> TraceError:
        """An error that ends the trace, whoever takes it."""
        self._recorder.interrupted = self._recorder.interrupted or error
        return error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.changes = self.put_back()
        else:
            self.note(error)

    def note(self, error: BaseException) -> None:
        """A side has been left by an error.

        Raises:
            TraceError: the error is the user's.
        """
        is_ours = isinstance(error, MgjitError) or package_of(type(error)) == "mgjit"
        if not is_ours and not isinstance(error, (RecursionError, KeyboardInterrupt, GeneratorExit)):
            raise self._ended(
                TraceError(
                    f"{user_location()}: both sides of a condition on a traced number are computed, and one raises "
                    f"{type(error).__name__}, which Python sees only if it takes that side. Let both sides be fit for "
                    "all numbers."
                )
            ) from None
