"""Whether many objects hold what they held, asked often: all that they hold in one list, compared at the speed of C.

1. A `Column` is of objects that are taken apart in the same way: lists, the attributes of the objects of a class, ...
2. `Columns` has those for everything that is added to it.
3. `look` returns what all of them hold at the moment; `Look.difference` compares with that, by identity.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from operator import is_
from types import CellType, FunctionType
from typing import Any, NamedTuple

from ...memory.live import Field, dicts_of, entry_of
from .places import Attribute, ClassAttribute, Entry, Place, Root, Variable
from .shapes import Shape, buffer_bytes, cell_content, contents_of, slots_of

#: Entries of classes that Python keeps for itself.
MADE_BY_PYTHON = frozenset({
    "__dict__", "__weakref__", "__abstractmethods__", "_abc_impl", "__static_attributes__", "__slotnames__", "__doc__",
    "__annotations__", "__annotate__", "__annotations_cache__", "__annotate_func__",
})  # fmt: skip
Parts = Sequence[Collection[Any]]


class Column(NamedTuple):
    """Objects, where they lie, and how they are taken apart.

    Attributes:
        parts: what each of them holds.
        names: what the parts of an object that lies somewhere are called in messages, where they have names.
        part: where one of the parts of an object lies, where something else can be put there.
    """

    things: list[Any]
    places: list[Place]
    parts: Callable[[list[Any]], Parts]
    names: Callable[[Any, str], Iterable[str]] | None = None
    part: Callable[[Any, int], Place] | None = None


class Columns:
    """What is compared."""

    def __init__(self) -> None:
        self.columns: dict[Any, Column] = {}

    def identities(self) -> set[int]:
        """Of all objects."""
        return {id(thing) for column in self.columns.values() for thing in column.things}

    def _add(
        self,
        key: Any,
        thing: Any,
        place: Place,
        parts: Callable[[list[Any]], Parts],
        names: Callable[[Any, str], Iterable[str]] | None = None,
        part: Callable[[Any, int], Place] | None = None,
    ) -> None:
        column = self.columns.get(key)
        if column is None:
            column = self.columns[key] = Column([], [], parts, names, part)
        column.things.append(thing)
        column.places.append(place)

    def add_container(self, shape: Shape, thing: Any, place: Place) -> None:
        """A container, or whatever else a shape takes apart."""
        if type(thing) is list:
            self._add(list, thing, place, lambda things: things, None, Entry)
        elif type(thing) is dict:
            self.add_variables(thing, place)
        else:
            self._add(shape, thing, place, lambda things: [_listed(shape.copy(thing)) for thing in things])

    def add_variables(self, names: dict[str, Any], place: Place) -> None:
        """A dict."""
        self._add(dict, names, place, lambda things: things)
        self._add("values", names, place, _values, lambda own, text: [f"{text}[{key!r}]" for key in own], _entry)

    def add_module(self, names: dict[str, Any]) -> None:
        """The variables of a module."""
        place = Root(names, "the variables of a module")
        self._add("module", names, place, lambda things: things)
        self._add("of modules", names, place, _values, lambda own, _: [f"the variable {key}" for key in own], _entry)

    def add_step(self, own: dict[str, Any], place: Place, named: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """The attributes of a compiled step that are not its own."""
        self._add("step", own, place, lambda things: [_listed(named(each)) for each in things])

    def add_object(self, thing: Any, place: Place) -> None:
        """The attributes of an object."""
        kind = type(thing)
        if dicts_of([thing])[0] is not None:
            self._add(kind, thing, place, dicts_of)
            values = lambda things: _values(dicts_of(things))  # noqa: E731
            self._add((kind, "values"), thing, place, values, _attribute_names, _attribute)
        for slot in slots_of(kind):
            name, part = functools.partial(_slot_name, slot), functools.partial(_slot_place, slot)
            self._add((kind, slot.name), thing, place, functools.partial(_contents, slot), name, part)

    def add_buffer(self, thing: Any, place: Place) -> None:
        """A block of numbers, or a file in memory."""
        self._add("buffer", thing, place, lambda things: list(map(buffer_bytes, things)))

    def add_cell(self, cell: CellType, place: Place) -> None:
        """A variable of an enclosing function."""
        contents = lambda cells: [[content] for content in map(cell_content, cells)]  # noqa: E731
        self._add("cell", cell, place, contents, None, _variable)

    def add_class(self, kind: type, place: Place) -> None:
        """The entries of a class."""
        self._add(type, kind, place, lambda things: list(map(_entries, things)), None, _member)

    def add_function(self, function: FunctionType, place: Place) -> None:
        """The attributes and defaults of a function."""
        self._add(FunctionType, function, place, lambda things: list(map(_of_function, things)))

    def look(self) -> Look:
        """What all of it holds."""
        return Look([_Flat(column) for column in self.columns.values()])


class _Flat:
    """What the objects of a column hold."""

    def __init__(self, column: Column) -> None:
        parts = column.parts(column.things)
        self.column = column
        self.sizes = list(map(len, parts))
        self.all = list(chain.from_iterable(parts))

    def is_same(self, other: _Flat) -> bool:
        """Whether they hold the same objects.  Small ints are the same, so that bytes can be compared."""
        return self.sizes == other.sizes and all(map(is_, self.all, other.all))

    def differing(self, before: _Flat) -> Iterator[tuple[Place, str, list[Any]]]:
        """Where objects lie that hold something else than before, what that is called, and what is new in each."""
        things, places, names = self.column.things, self.column.places, self.column.names
        for thing, place, now, old in zip(things, places, self._each(), before._each()):
            if len(now) != len(old) or not all(map(is_, now, old)):
                known, text = set(map(id, old)), place.describe()
                if names is not None and len(now) == len(old):
                    text = next(name for name, a, b in zip(names(thing, text), now, old) if a is not b)
                yield place, text, [part for part in now if id(part) not in known]

    def changed_parts(self, before: _Flat) -> Iterator[tuple[Place, Any, Any]]:
        """Where single parts lie in whose place there is something else now, what it was, and what it is."""
        part = self.column.part
        if part is None:
            return
        for thing, now, old in zip(self.column.things, self._each(), before._each()):
            if len(now) == len(old):
                yield from ((part(thing, k), b, a) for k, (a, b) in enumerate(zip(now, old)) if a is not b)

    def _each(self) -> Iterator[list[Any]]:
        if len(self.sizes) != len(self.column.things):  # a slot of all objects
            return ([part] for part in self.all)
        return (self.all[end - size : end] for end, size in zip(accumulate(self.sizes), self.sizes))


class Look:
    """What everything held at some time."""

    def __init__(self, flats: list[_Flat]) -> None:
        self._flats = flats

    def differences(self) -> Iterator[tuple[Place, str, list[Any]]]:
        """What holds something else now: where it lies, what it is called, and what is new in it."""
        for flat in self._flats:
            now = _Flat(flat.column)
            if not now.is_same(flat):
                yield from now.differing(flat)

    def changed_parts(self) -> Iterator[tuple[Place, Any, Any]]:
        """The places of single parts that hold something else, what they held, and what they hold."""
        for flat in self._flats:
            now = _Flat(flat.column)
            if not now.is_same(flat):
                yield from now.changed_parts(flat)


def _values(dicts: list[Any]) -> list[Any]:
    return list(map(dict.values, dicts))


def _entry(own: dict[Any, Any], position: int) -> Place:
    name = list(own)[position]
    return Entry(own, name, f"the entry {name!r}")


def _attribute(thing: Any, position: int) -> Place:
    name = list(dicts_of([thing])[0])[position]
    return Attribute(thing, entry_of(type(thing), name))


def _slot_place(slot: Field, thing: Any, _: int) -> Place:
    return Attribute(thing, slot)


def _variable(cell: CellType, _: int) -> Place:
    return Variable(cell, "of a function")


def _member(kind: type, position: int) -> Place:
    return ClassAttribute(kind, _entries(kind)[position - 1])


def _attribute_names(thing: Any, text: str) -> Iterable[str]:
    return (f"{text}.{name}" for name in dicts_of([thing])[0])


def _slot_name(slot: Field, thing: Any, text: str) -> Iterable[str]:
    return (f"{text}.{slot.name}",)


def _contents(slot: Field, things: list[Any]) -> Parts:
    return [contents_of(slot, things)]


def _listed(copied: Any) -> list[Any]:
    return [*copied, *copied.values()] if isinstance(copied, dict) else list(copied)


def _entries(kind: type) -> list[Any]:
    return [part for name, member in vars(kind).items() if name not in MADE_BY_PYTHON for part in (name, member)]


def _of_function(function: FunctionType) -> list[Any]:
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return [*defaults, *vars(function), *vars(function).values()]
