"""Detach parameters from kernels: during a plain call they are ordinary objects again.

An object whose numbers live in the memory of a kernel has another class, attributes that can only hold floats, and
properties that make plain Python slower.  So before a plain call the numbers return to the objects, and after it the
memory gets what the objects then hold, or the home of a number holds what is none (memory/live.py).

1. Objects of one class whose numbers live in the same arrays are a group, which is handled by a few calls into C.
2. A group is detached by writing the numbers into its objects, and then changing their class.  It is attached by
   copying the numbers into memory, and then changing the class back.  Each is one call into C, between whose parts
   neither a signal nor another thread comes; but where an attribute holds no number.  Each may be repeated.
3. While objects are detached only to be quicker (`meanwhile`, `until_attached`), steps may be called: all general paths
   attach them before they need the memory (`attach_all`).  After a plain call they stay detached: more may follow.
   Until then no step makes quick calls (`NO_THREAD`).
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, TypeVar

from ..base.garbage import without_garbage_collection
from ..base.interruption import new_lock, with_cleanup
from ..base.threads import are_others
from ..engine.kinds import is_float64
from ..engine.precision import FLOAT64
from ..engine.progress import NO_THREAD, tracing_threads
from ..engine.value import Value
from ..memory.live import Field, Home, field_of, holds_others, original_class, require_numbers, set_class

T = TypeVar("T")

_VALUE_FIELDS = (field_of(Value, "_data"), field_of(Value, "_grad"))


def is_attached(thing: Any) -> bool:
    """Whether numbers of an object live in the memory of a kernel."""
    return (isinstance(thing, Value) and thing._is_bound) or hasattr(type(thing), "_mgjit_original")


_kind_of = operator.attrgetter("kind")


class _Group:
    """Objects of one class, and the fields of theirs whose numbers live in memory: those of a field in one array."""

    def __init__(self, kind: type, fields: tuple[Field, ...], memories: Sequence[Any]) -> None:
        self._kind, self._fields, self._memories = kind, fields, memories
        self._is_value = issubclass(kind, Value)
        self._original: type = kind.__bases__[0] if self._is_value else kind._mgjit_original  # type: ignore[attr-defined]
        self.things: list[Any] = []
        self._homes: list[list[Home]] = [[] for _ in fields]
        self._places: list[list[int]] = [[] for _ in fields]
        self._storage: Any = None
        self.is_detached = False

    def add(self, thing: Any, homes: Iterable[Home]) -> None:
        """Add an object."""
        self.things.append(thing)
        for column, places, home in zip(self._homes, self._places, homes):
            column.append(home)
            places.append(home.index)

    def add_values(self, values: Sequence[Value], storage: Any) -> None:
        """Add Values, all of them in this storage."""
        self.things, self._storage = list(values), storage
        self._places = [list(map(operator.attrgetter("_index"), values))] * len(self._fields)

    def is_attached(self) -> bool:
        """Whether all is as it was when the objects were added."""
        if any(map(operator.is_not, map(type, self.things), repeat(self._kind))):
            return False
        if self._is_value:
            storages = map(operator.attrgetter("_storage"), self.things)
            return not any(map(operator.is_not, storages, repeat(self._storage)))
        with contextlib.suppress(AttributeError, KeyError):
            columns = zip(self._fields, self._homes)
            return not any(any(map(operator.is_not, field.read_all(self.things), homes)) for field, homes in columns)
        return False

    def is_only_of(self, user: Any) -> bool:
        """Whether no kernel of others works in the memory."""
        storages = [self._storage] if self._is_value else [home.storage for column in self._homes for home in column]
        return all(storage.is_only_of(user) for storage in storages)

    def detach(self, with_types: bool = True) -> None:
        """Make them ordinary objects.

        Args:
            with_types: whether numbers are of numpy's types where they are so in plain Python.
        """
        if self._is_value:
            self._storage.settle()  # gradients that are late
        columns = zip(self._fields, self._memories, self._places, self._homes)
        written = [
            field.write_all(
                self.things,
                map(Home.read, homes) if with_types and any(map(_kind_of, homes)) else map(memory.__getitem__, places),
            )
            for field, memory, places, homes in columns
        ]
        self._at_once(*written, self._note(True), map(set_class, self.things, repeat(self._original)))

    def attach(self, with_types: bool = True) -> None:
        """Undo it, with the numbers that they hold now.

        Args:
            with_types: as they were detached; without, numbers are floats that may be numpy's in plain Python.
        """
        if not self.is_detached:
            return
        with contextlib.suppress(AttributeError, KeyError):
            for field, homes in zip(self._fields, self._homes):
                self._see(field, homes, with_types)
        columns = list(zip(self._fields, self._memories, self._places))
        copied = [map(operator.setitem, repeat(m), places, field.read_all(self.things)) for field, m, places in columns]
        try:
            self._at_once(*copied, *self._moves_back())
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):  # deleted, back already, or no number
            for (field, memory, places), homes in zip(columns, self._homes):
                for place, thing, home in zip(places, self.things, homes or repeat(None)):
                    _copy_one(field, memory, place, thing, home)
            self._at_once(*self._moves_back())

    def _see(self, field: Field, homes: list[Home], with_types: bool) -> None:
        """Note which numbers are of numpy's type float64."""
        kinds = set(map(type, field.read_all(self.things))) - {float}
        if homes and (any(map(is_float64, kinds)) or (with_types and any(map(_kind_of, homes)))):
            for home, number in zip(homes, list(field.read_all(self.things))):
                if with_types or is_float64(type(number)):
                    home.see(number)

    def _moves_back(self) -> list[Iterator[None]]:
        """What makes the objects attached again, once their numbers are in the memory."""
        homes = [] if self._is_value else zip(self._fields, self._homes)
        back = [field.write_all(self.things, column) for field, column in homes]
        return [map(set_class, self.things, repeat(self._kind)), *back, self._note(False)]

    def _note(self, is_detached: bool) -> Iterator[None]:
        return map(setattr, (self,), ("is_detached",), (is_detached,))

    def _at_once(self, *changes: Iterator[None]) -> None:
        """Make all changes in one call into C."""
        deque(chain(*changes), maxlen=0)


def _copy_one(field: Field, memory: Any, place: int, thing: Any, home: Home | None) -> None:
    number: Any = 0.0
    with contextlib.suppress(AttributeError, KeyError):
        number = field.read(thing)
    if type(number) is Home:
        return
    if home is None:  # a Value, which holds numbers
        memory[place] = number
    else:
        home.put(number, original_class(type(thing)), field.name)


class Detached:
    """The objects whose numbers live in the memory of kernels.

    Args:
        things: these objects, and others, which stay as they are.
        with_types: whether their numbers are of numpy's types where they are so in plain Python; to a kernel that is
            compared with plain Python, all of them are floats.
    """

    def __init__(self, things: Iterable[Any], with_types: bool = True) -> None:
        self._things, self._with_types = list(things), with_types
        self._groups: list[_Group] | None = None

    def __len__(self) -> int:
        return len(self._things)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._things)

    def during(self, work: Callable[[], T]) -> T:
        """Return `work()`, run while they are ordinary objects."""

        def run() -> T:
            self._detach()
            return work()

        return with_cleanup(run, self._attach)

    def meanwhile(self, work: Callable[[], T]) -> T:
        """As `during`, but if a compiled step is called, they become attached again.

        They stay attached while other threads run, which may call steps.
        """
        if not may_detach():
            return work()
        _under_way.append(self)
        return with_cleanup(lambda: self.during(work), self.end)

    def until_attached(self) -> None:
        """Make them ordinary objects until a step needs their memory."""
        if self not in _under_way:
            _under_way.append(self)
        tracing_threads[NO_THREAD] = FLOAT64  # of no meaning here
        self._detach()

    def end(self) -> None:
        """End this; may be repeated."""
        self._attach()
        if self in _under_way:
            _under_way.remove(self)
        _note_attached()

    def _detach(self) -> None:
        if any(group.is_detached for group in self._groups or ()):
            return  # they are: what the objects hold now is newer than the memory
        if not self._groups or not all(group.is_attached() for group in self._groups):
            self._groups = without_garbage_collection(lambda: _groups(self._things))
        for group in self._groups:
            group.detach(self._with_types)

    def _attach(self) -> None:
        """May be repeated."""
        for group in self._groups or ():
            group.attach(self._with_types)


def release(things: Iterable[Any], user: Any) -> None:
    """Make those ordinary objects for good whose numbers live in memory that only this user's kernels have used."""
    groups = [group for group in _groups(things) if group.is_only_of(user)]
    for group in groups:
        group.detach()


#: Those that are detached only to be quicker.
_under_way: list[Detached] = []
_attaching = new_lock()
_HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


def may_detach() -> bool:
    """Whether no other threads run, which may call steps, and those that begin later leave what is under way in C."""
    return _HAS_GIL and not are_others()


def are_detached() -> bool:
    """Whether objects are ordinary ones until a step needs their memory."""
    return NO_THREAD in tracing_threads


def attach_all() -> None:
    """Attach what is detached only to be quicker."""
    if _under_way:
        with _attaching:  # threads that have begun since it was detached
            for detached in _under_way[:]:
                detached.end()


def attach_numbers() -> None:
    """The same, before a kernel is used.

    Raises:
        PlainCall: something else is in place of a number of the memory.
    """
    attach_all()
    if are_detached():
        require_numbers()
        _note_attached()


def _note_attached() -> None:
    if not (_under_way or holds_others()):
        tracing_threads.pop(NO_THREAD, None)


def _groups(things: Iterable[Any]) -> list[_Group]:
    found: dict[Any, _Group] = {}
    values: dict[Any, list[Value]] = {}
    names: dict[type, list[Field]] = {}
    for thing in things:
        if not is_attached(thing):
            continue
        kind = type(thing)
        if isinstance(thing, Value):
            values.setdefault((kind, id(thing._storage)), []).append(thing)
            continue
        if kind not in names:
            names[kind] = [field_of(kind._mgjit_original, name) for name in kind._mgjit_fields]
        held = [(field, content) for field in names[kind] if type(content := field.read(thing)) is Home]
        fields, homes = tuple(field for field, _ in held), [home for _, home in held]
        key = kind, *(field.name for field in fields), *(id(home.array) for home in homes)
        group = found.get(key)
        if group is None:
            group = found[key] = _Group(kind, fields, [home.array for home in homes])
        group.add(thing, homes)
    return [*map(_of_values, values.values()), *found.values()]


def _of_values(values: Sequence[Value]) -> _Group:
    """The group of Values of one class, in one storage."""
    storage = values[0]._storage
    group = _Group(type(values[0]), _VALUE_FIELDS, [storage.data, storage.grad])
    group.add_values(values, storage)
    return group
