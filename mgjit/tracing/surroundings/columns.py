"""Whether many objects hold what they held, asked often: all that they hold in one list, compared at the speed of C.

1. A `Column` is of objects that are taken apart in the same way: lists, the attributes of the objects of a class, ...
2. `Columns` has those for everything that is added to it.
3. `look` returns what all of them hold at the moment; `Look.changed` compares with that, by identity.  What is added
   later is none of its business.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate, chain, compress, count, islice
from operator import attrgetter, is_, is_not, ne
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
        elif type(thing) in (tuple, frozenset):
            self._add(tuple, thing, place, lambda _: [])  # which hold what they hold
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
        self._add("cell", cell, place, _cell_contents, None, _variable)

    def add_class(self, kind: type, place: Place) -> None:
        """The entries of a class."""
        self._add(type, kind, place, lambda things: list(map(_entries, things)), None, _member)

    def add_function(self, function: FunctionType, place: Place) -> None:
        """The attributes and defaults of a function."""
        if function.__defaults__ is None and function.__kwdefaults__ is None and not vars(function):  # as nearly all
            self._add("bare function", function, place, _signs_of_more)
        else:
            self._add(FunctionType, function, place, lambda things: list(map(_of_function, things)))

    def look(self) -> Look:
        """What all of it holds."""
        return Look([_Flat(column, len(column.things)) for column in self.columns.values()])


class _Flat:
    """What the first so many objects of a column hold."""

    def __init__(self, column: Column, count: int) -> None:
        things = column.things if count == len(column.things) else column.things[:count]
        parts = column.parts(things)
        self.column, self.count = column, count
        self.sizes = list(map(len, parts))
        self.all = list(chain.from_iterable(parts))

    def now(self) -> _Flat:
        """What they hold at the moment."""
        return _Flat(self.column, self.count)

    def is_same(self, other: _Flat) -> bool:
        """Whether they hold the same objects.  Small ints are the same, so that bytes can be compared."""
        return self.sizes == other.sizes and all(map(is_, self.all, other.all))

    def differing(self, before: _Flat) -> Iterator[tuple[Place, str, list[Any]]]:
        """Where objects lie that hold something else than before, what that is called, and what is new in each."""
        things, places, names = self.column.things, self.column.places, self.column.names
        for number, now, old in self._pairs(before):
            known, text = set(map(id, old)), places[number].describe()
            if names is not None and len(now) == len(old):
                text = next(name for name, a, b in zip(names(things[number], text), now, old) if a is not b)
            yield places[number], text, [part for part in now if id(part) not in known]

    def changed_parts(self, before: _Flat) -> Iterator[tuple[Place, Any, Any]]:
        """Where single parts lie in whose place there is something else now, what it was, and what it is."""
        part = self.column.part
        if part is None:
            return
        for number, now, old in self._pairs(before):
            if len(now) == len(old):
                thing = self.column.things[number]
                yield from ((part(thing, k), b, a) for k, (a, b) in enumerate(zip(now, old)) if a is not b)

    def _pairs(self, before: _Flat) -> Iterator[tuple[int, list[Any], list[Any]]]:
        """The numbers of objects that hold something else than before, and what they hold and held."""
        ends, old_ends = self._ends(), before._ends()
        resized = list(compress(count(), map(ne, self.sizes, before.sizes))) if len(self.sizes) == self.count else []
        found = set(resized)
        for first, last in zip((-1, *resized), (*resized, self.count)):  # in between, all sizes are the same
            low, old_low, high = ends[first], old_ends[first], ends[last - 1] if last else 0
            differ = map(is_not, islice(self.all, low, high), islice(before.all, old_low, None))
            found.update(bisect_right(ends, position, 0, self.count) for position in compress(count(low), differ))
        for number in sorted(found):
            now, old = self.all[ends[number - 1] : ends[number]], before.all[old_ends[number - 1] : old_ends[number]]
            yield number, now, old

    def _ends(self) -> list[int]:
        """The end of what each of them holds; at last 0, where the first one begins."""
        each = self.sizes if len(self.sizes) == self.count else [1] * self.count  # a slot of all objects
        return [*accumulate(each), 0]


class Look:
    """What everything held at some time."""

    def __init__(self, flats: list[_Flat]) -> None:
        self._flats = flats

    def changed(self) -> Look:
        """The part of it that is not so any more."""
        return Look([flat for flat in self._flats if not flat.now().is_same(flat)])

    def differences(self) -> Iterator[tuple[Place, str, list[Any]]]:
        """What holds something else now: where it lies, what it is called, and what is new in it."""
        return chain.from_iterable(flat.now().differing(flat) for flat in self._flats)

    def new_parts(self) -> list[Any]:
        """All that is new in anything."""
        return [part for *_, parts in self.differences() for part in parts]

    def __bool__(self) -> bool:
        return bool(self._flats)

    def changed_parts(self) -> Iterator[tuple[Place, Any, Any]]:
        """The places of single parts that hold something else, what they held, and what they hold."""
        return chain.from_iterable(flat.now().changed_parts(flat) for flat in self._flats)


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


def _cell_contents(cells: list[Any]) -> Parts:
    try:
        return list(zip(map(_content_of_cell, cells)))
    except ValueError:  # one has no value yet
        return [[content] for content in map(cell_content, cells)]


def _listed(copied: Any) -> list[Any]:
    return [*copied, *copied.values()] if isinstance(copied, dict) else list(copied)


def _entries(kind: type) -> list[Any]:
    return [part for name, member in vars(kind).items() if name not in MADE_BY_PYTHON for part in (name, member)]


def _signs_of_more(functions: list[Any]) -> Parts:
    """Of functions without attributes and defaults, what they do not have; small ints are the same object."""
    return list(zip(map(_defaults, functions), map(_named_defaults, functions), map(len, map(vars, functions))))


_content_of_cell = attrgetter("cell_contents")
_defaults, _named_defaults = attrgetter("__defaults__"), attrgetter("__kwdefaults__")


def _of_function(function: FunctionType) -> list[Any]:
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return [*defaults, *vars(function), *vars(function).values()]
