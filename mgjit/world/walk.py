"""From what a step captures to the numbers that it could assign.

1. Start at the variables that its functions name, and at the objects that it is given.
2. Follow elements of lists, tuples and dicts, and attributes that the code names.  The order is that of the
   containers, so that parameters get numbers in the order in which they lie.
3. Numbers count in attributes of a name that some function assigns, in lists and dicts that are named in a function
   which assigns elements of something, and in variables that are assigned.
4. Everything else that could be changed is noted as it is, to be compared after the trace.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

from ..engine.state import State
from ..engine.value import Value
from ..lookup import is_bound_draw
from ..runtime.live import Field, Home, field_of, slot
from .code import names_beside_stores, stored_attributes, stored_variables
from .functions import captured
from .guard import LONGEST_LIST
from .ownership import is_of_user
from .places import Attribute, ClassAttribute, Element, Entry, Place, Root
from .watched import Watched

_ATOMS = frozenset(
    {float, int, bool, str, bytes, type(None), complex, bytearray, range, FunctionType, ModuleType, type}
)
#: So many numbers that a step only reads may be copied in at each call.
_MOST_COPIED = 100_000
_NUMBERS = {float, int, Home}
_ORDER = {"data": 0, "grad": 1}
#: So many objects of a class are looked at to find its fields.
_SAMPLES = 16


@dataclass
class Found:
    """What a walk has found.

    Attributes:
        scalars: places of single numbers.
        lists: lists of numbers, with their places.
        objects: objects of a class and its fields that hold numbers; the first two are data and gradient, if there
            are fields of these names.
        counters: those of the scalars that are ints in variables and attributes of classes.
        watched: what is to be compared after the trace.
        draws: where there are methods of generators that are written in C.
        iterators: places of iterators.
        known: the identities of all that was walked over.
    """

    scalars: list[Place] = field(default_factory=list)
    counters: list[Place] = field(default_factory=list)
    lists: list[tuple[Place, list[Any]]] = field(default_factory=list)
    objects: list[tuple[list[Any], list[Field]]] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)
    draws: list[Place] = field(default_factory=list)
    iterators: list[tuple[Place, Any]] = field(default_factory=list)
    known: set[int] = field(default_factory=set)

    def has_list(self, content: Any) -> bool:
        """Whether something is one of the lists of numbers."""
        return type(content) is list and any(content is known for _, known in self.lists)

    def identity(self, place: Place) -> Any:
        """The list that was found at a place."""
        return next(content for other, content in self.lists if other is place)


def walk(functions: list[FunctionType], roots: Iterable[tuple[str, Any]], variable: set[Any]) -> Found:
    """Find the numbers around a step.

    Args:
        functions: what the step can call.
        roots: objects that it is given, each with its name.
        variable: keys of places whose lists are known to be assigned; ("list", its id) of lists that have changed.
    """
    walker = _Walker(functions, set(variable))
    walker.variables(stored_variables(functions))
    places = [place for function in functions for place in captured(function)]
    walker.run([*places, *(Root(thing, name) for name, thing in roots)])
    walker.fields()
    walker.classes(places)
    return walker.found


def _leads_further(kind: type) -> bool:
    """Whether objects of a class may lead to numbers: the engine keeps account of its own, and atoms have none."""
    return kind not in _ATOMS and not issubclass(kind, (Value, State, type))


def is_number(content: Any) -> bool:
    """Whether something is a float or int, and not bool."""
    return type(content) is float or type(content) is int


class _Walker:
    def __init__(self, functions: list[FunctionType], variable: set[Any]) -> None:
        self.found = Found()
        self._variable = variable
        self._assigned = stored_attributes(functions)
        self._beside_stores = names_beside_stores(functions)
        self._names = {name for function in functions for name in function.__code__.co_names} | self._assigned
        self._objects: dict[type, list[Any]] = {}
        self._slots: dict[type, list[Field]] = {}
        self._entries: dict[tuple[type, str], Field] = {}
        self._is_walked: dict[type, bool] = {}
        self._seen = self.found.known
        self._copied = 0

    def variables(self, places: Iterable[Place]) -> None:
        for place in places:
            content = place.read()
            if is_number(content):
                self._scalar(place, content)
            elif type(content) is list:
                self._variable.add(place.key)
                self.run([place])
            else:
                self.found.watched.append(Watched(place, content))

    def _scalar(self, place: Place, content: Any) -> None:
        self.found.scalars.append(place)
        if type(content) is int:
            self.found.counters.append(place)

    def classes(self, places: Iterable[Place]) -> None:
        """Numbers in attributes of classes, once a trace has shown that the step assigns them."""
        named = [place.read() for place in places]
        kinds = {*self._objects, *(thing for thing in named if isinstance(thing, type))}
        for base in dict.fromkeys(base for kind in kinds for base in kind.__mro__ if is_of_user(base)):
            for name in sorted(self._assigned & vars(base).keys()):
                place, content = ClassAttribute(base, name), vars(base)[name]
                if is_number(content) and place.key in self._variable:
                    self._scalar(place, content)
                elif is_number(content):
                    self.found.watched.append(Watched(place, content))

    def run(self, roots: list[Place]) -> None:
        pending = [(place, place.read()) for place in roots[::-1]]
        while pending:
            place, thing = pending.pop()
            if is_bound_draw(thing) and _is_writable(place):
                self.found.draws.append(place)
            if type(thing) not in _ATOMS and id(thing) not in self._seen:
                self._seen.add(id(thing))
                pending.extend(list(self._inside(thing, place))[::-1])

    def _inside(self, thing: Any, place: Place) -> Iterator[tuple[Place, Any]]:
        """The places in a container or object that may lead to numbers, with what lies there."""
        kind = type(thing)
        if kind is list or kind is tuple:
            kinds = set(map(type, thing))
            if kind is list:
                self._list(thing, kinds, place)
            if any(_leads_further(part) for part in kinds):
                yield from ((Element(place, thing, index), part) for index, part in enumerate(thing))
            elif not kinds <= _ATOMS:
                self._seen.update(map(id, thing))  # thousands of parameters
        elif kind is dict:
            yield from self._dict(thing, place)
        elif kind is MethodType or kind is BuiltinMethodType:
            yield Root(thing.__self__, "self"), thing.__self__
        elif kind is functools.partial:
            yield from ((Root(part, "an argument"), part) for part in (*thing.args, *thing.keywords.values()))
        elif kind is SimpleNamespace:
            yield from self._dict(vars(thing), Root(vars(thing), place.describe()))
        elif hasattr(kind, "__next__") and not is_of_user(kind):
            self.found.iterators.append((place, thing))
        elif self._has_attributes(kind):
            self._objects.setdefault(kind, []).append(thing)
            for attribute in self._attributes(thing, kind):
                content = content_of(attribute, thing)
                leads = content is not NOTHING and type(content) not in _ATOMS and type(content) is not Home
                # Most have been seen already, such as the operands () of thousands of parameters.
                if leads and (id(content) not in self._seen or is_bound_draw(content)):
                    yield Attribute(thing, attribute), content

    def _has_attributes(self, kind: type) -> bool:
        """Whether objects of a class may lead to numbers by their attributes."""
        known = self._is_walked.get(kind)
        if known is None:
            known = self._is_walked[kind] = _leads_further(kind) and is_of_user(kind)
        return known

    def _list(self, thing: list[Any], kinds: set[type], place: Place) -> None:
        if float in kinds:
            assigned = self._is_assigned(place) or ("list", id(thing)) in self._variable or self._is_long(thing, place)
        else:
            assigned = bool(thing) and self._is_counted(thing[0], place)
        if kinds <= {float, int} and assigned:
            self.found.lists.append((place, thing))
        else:
            self.found.watched.append(Watched(place, thing))

    def _dict(self, thing: dict[Any, Any], place: Place) -> Iterator[tuple[Place, Any]]:
        self.found.watched.append(Watched(place, thing))
        for name, content in thing.items():
            entry = Entry(thing, name, f"{place.describe()}[{name!r}]", place)
            if type(content) not in _ATOMS:
                yield entry, content
            elif self._is_assigned(entry) if type(content) is float else self._is_counted(content, place):
                self.found.scalars.append(entry)

    def _is_long(self, thing: list[Any], place: Place) -> bool:
        """Whether a list that is only read is too long for a guard, and not too long to be copied at each call."""
        rows = place.siblings if isinstance(place, Element) else 1
        if len(thing) * rows <= LONGEST_LIST or self._copied + len(thing) > _MOST_COPIED:
            return False
        self._copied += len(thing)
        return True

    def _is_counted(self, content: Any, place: Place) -> bool:
        """Whether an int in a container changes: they are sizes and tables, until a trace has shown that they do."""
        return type(content) is int and place.key in self._variable

    def _is_assigned(self, place: Place) -> bool:
        """Whether the code seems to assign what lies at a place, or elements of it."""
        around: Place | None = place
        while around is not None:
            if around.key in self._variable or around.name in self._beside_stores:
                return True
            if isinstance(around, Attribute) and around.name in self._assigned:
                return True
            around = around.holder if isinstance(around, Element) else getattr(around, "parent", None)
        return False

    def _attributes(self, thing: Any, kind: type) -> list[Field]:
        slots = self._slots.get(kind)
        if slots is None:
            slots = self._slots[kind] = [field_of(kind, n) for n in sorted(self._names) if slot(kind, n) is not None]
        own = getattr(thing, "__dict__", None)
        return slots if own is None else slots + [self._entry(kind, name) for name in own if name in self._names]

    def _entry(self, kind: type, name: str) -> Field:
        """The field that is an entry of the dict of each object."""
        known = self._entries.get((kind, name))
        if known is None:
            known = self._entries[kind, name] = field_of(kind, name)
        return known

    def fields(self) -> None:
        """The fields of each class that hold numbers which the step may assign: data and gradient first."""
        for kind, things in self._objects.items():
            named = {f.name: f for thing in things[:_SAMPLES] for f in self._attributes(thing, kind)}
            kinds = {
                f: {type(content_of(f, thing)) for thing in things}
                for name, f in named.items()
                if name in self._assigned
            }
            # Where all is None, the step may put numbers; where there are other things, it must not.
            fields = [f for f, found in kinds.items() if found & _NUMBERS or found == {type(None)}]
            if any(found & _NUMBERS for found in kinds.values()):
                fields.sort(key=lambda f: (not kinds[f] & _NUMBERS, _ORDER.get(f.name, 2), f.name))
                self.found.objects.append((things, fields))
            else:
                fields = []
            if len(things) < _SAMPLES:
                self._watch_others(things, [f for f in kinds if f not in fields])

    def _watch_others(self, things: list[Any], fields: list[Field]) -> None:
        for thing in things:
            for f in fields:
                content = content_of(f, thing)
                if content is not NOTHING and not self.found.has_list(content):
                    self.found.watched.append(Watched(Attribute(thing, f), content))


def _is_writable(place: Place) -> bool:
    """Whether something else can be put there."""
    return type(place.holder.read()) is list if isinstance(place, Element) else not isinstance(place, Root)


def content_of(f: Field, thing: Any) -> Any:
    """What a field of an object holds; a NOTHING when it does not exist."""
    try:
        return f.read(thing)
    except (AttributeError, KeyError):
        return NOTHING


NOTHING = object()
