"""The role of each place around a step: which hold numbers that it may change, and which are only watched.

1. Numbers count in variables that are assigned, in attributes of a name that some function of the user's assigns, and
   in lists and dicts that are named in a function which assigns elements of something.
2. What the code does not show, a trace does: places in which a number has been replaced by another one are `variable`
   from then on (tracer/memory.py traces again).  So does a guard that has seen such a number change between calls.
3. Attributes that the step assigns become memory of the kernel, or are copied; variables, lists and entries of dicts
   are copied.  What only `__init__` assigns in single objects is a size or an option: a constant.
4. Everything else is a constant, which guard.py watches.  No place is both.

Of a step that is frozen, numbers that are only read are its weights, which are memory as well: all that are floats.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...base.cached import cached_property
from ...engine.numeric import is_number, is_number_type
from ...engine.value import Value
from ...memory.live import Field, Home, original_class
from .before import Group
from .code import read, stored_variables
from .ownership import is_module_of_user, is_of_user
from .places import Attribute, ClassAttribute, Element, Entry, Place, Root
from .shapes import content_of, contents_of, slots_of
from .survey import Survey

#: Lists of more numbers than this are not watched: comparing them would take longer than most steps.  They are
#: copied in at each call.
LONGEST_LIST = 1000
#: Objects of a class with numbers are moved into the kernel's memory from this many on, and copied below.
MANY = 16
#: So many numbers that a step only reads may be copied in at each call.
_MOST_COPIED = 100_000
_ORDER = {"data": 0, "grad": 1}
_FLOATS = frozenset({float})


@dataclass
class Roles:
    """Which places hold numbers that a step may change.

    Attributes:
        scalars: places of single numbers.
        counters: those of them that are ints in variables and attributes of classes.
        lists: lists of numbers, with their places.
        objects: objects of a class and its fields that hold numbers; the first two are data and gradient, if there
            are fields of these names.
    """

    scalars: list[Place] = field(default_factory=list)
    counters: list[Place] = field(default_factory=list)
    lists: list[tuple[Place, list[Any]]] = field(default_factory=list)
    objects: list[tuple[list[Any], list[Field]]] = field(default_factory=list)

    def identity(self, place: Place) -> Any:
        """The list that was found at a place."""
        return self._lists[id(place)]

    @cached_property
    def _lists(self) -> dict[int, Any]:
        return {id(place): content for place, content in self.lists}


def assign_roles(survey: Survey, variable: Collection[Any], every_float: bool = False) -> Roles:
    """Decide which places hold numbers that the step may change.

    Args:
        variable: keys, or kinds, of places that traces have shown to be assigned; ("list", its id) of lists.
        every_float: whether floats that the step only reads are to be memory, too.
    """
    return _Assignment(survey, variable, every_float).roles


class _Assignment:
    def __init__(self, survey: Survey, variable: Collection[Any], every_float: bool) -> None:
        self.roles = Roles()
        self._survey, self._variable, self._every_float = survey, set(variable), every_float
        readings = [(function.__name__, read(function.__code__)) for function in survey.functions]
        #: Attributes that are assigned once an object exists, and those that are assigned at all.
        self._assigned = {
            name for function, found in readings if function != "__init__" for name in found.stored_attributes
        }
        self._made = {name for _, found in readings for name in found.stored_attributes}
        self._beside_stores = {name for _, found in readings for name in found.beside_stores}
        self._copied = 0
        self._variables()
        for place, content in survey.lists:
            self._list(place, content)
        for place, entries in survey.dicts:
            self._dict(place, entries)
        for group in survey.groups.values():
            self._objects(group)
        self._classes()
        self._learned()

    def _scalar(self, place: Place, content: Any) -> None:
        self.roles.scalars.append(place)
        if type(content) is int:
            self.roles.counters.append(place)

    # ---- variables ----------------------------------------------------------------------------------------------

    def _variables(self) -> None:
        assigned = stored_variables(self._survey.functions)
        keys = {place.key for place in assigned}
        others = [
            place
            for place, content in self._survey.variables.values()
            if place.key not in keys
            and (place.key in self._variable or (self._is_weight(content) and not _is_of_library(place)))
        ]
        for place in [*assigned, *others]:
            content = place.read()
            if is_number(content):
                self._scalar(place, content)
            elif type(content) is list:
                self._variable.add(place.key)

    # ---- containers ---------------------------------------------------------------------------------------------

    def _list(self, place: Place, content: list[Any]) -> None:
        kinds = self._survey.kinds[id(content)]
        if not content or not all(map(is_number_type, kinds)):
            return
        if not all(issubclass(kind, int) for kind in kinds):
            known = self._every_float or ("list", id(content)) in self._variable
            found = known or self._is_assigned(place) or self._is_long(content, place)
        else:  # sizes and tables, until a trace has shown that they change
            found = ("list", id(content)) in self._variable or place.key in self._variable
        if found:
            self.roles.lists.append((place, content))

    def _is_long(self, content: list[Any], place: Place) -> bool:
        """Whether a list that is only read is too long for a guard, and not too long to be copied at each call."""
        rows = place.siblings if isinstance(place, Element) else 1
        if len(content) * rows <= LONGEST_LIST or self._copied + len(content) > _MOST_COPIED:
            return False
        self._copied += len(content)
        return True

    def _dict(self, place: Place, entries: dict[Any, Any]) -> None:
        for name, content in entries.items():
            if is_number(content):
                entry = Entry(entries, name, "", place)
                learned = entry.key in self._variable or self._is_weight(content)
                if learned or (not isinstance(content, int) and self._is_assigned(entry)):
                    self.roles.scalars.append(entry)

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

    def _learned(self) -> None:
        """Numbers in other dicts, and in attributes of functions, once a trace has shown that the step assigns them."""
        others: list[tuple[Any, Place]] = [
            (vars(f), Root(f, f.__name__)) for f in self._survey.functions_with_attributes()
        ]
        for _, thing, _, place in self._survey.containers():
            if isinstance(thing, dict) and type(thing) is not dict and _is_plain_dict(type(thing)):
                others.append((thing, place))
        for entries, place in others:
            for name, content in dict.items(entries):
                entry = Entry(entries, name, "", place)
                if entry.key in self._variable and is_number(content):
                    self.roles.scalars.append(entry)

    # ---- objects and classes ------------------------------------------------------------------------------------

    def _objects(self, group: Group) -> None:
        """The fields of the objects of a class that the step may assign: data and gradient first."""
        kinds: dict[Field, set[type]] = {}
        original = original_class(group.kind)
        # Of what another step has moved into its memory, Python sees a number and no place: it is never a constant.
        is_of_many = len(group.things) >= MANY or hasattr(group.kind, "backward")
        assigned = self._made if is_of_many else self._assigned
        for f in self._fields(group):
            found = set(map(type, contents_of(f, group.things)))
            known = (original, f.name) in self._variable or (self._every_float and not _FLOATS.isdisjoint(found))
            if known or f.name in assigned or Home in found:
                kinds[f] = found
        # Where all is None, the step may put numbers; where there are other things, it must not.
        numeric = {f for f, found in kinds.items() if any(kind is Home or is_number_type(kind) for kind in found)}
        fields = [f for f, found in kinds.items() if f in numeric or found == {type(None)}]
        if not numeric:
            return
        if issubclass(group.kind, Value):  # whose data and gradients the engine keeps
            for f in sorted(fields, key=lambda f: (f not in numeric, _ORDER.get(f.name, 2), f.name)):
                self._copy_of_values(group, f)
            return
        for things, empty in _by_what_is_none(group.things, [f for f in fields if type(None) in kinds[f]]):
            own = sorted(fields, key=lambda f: (f in empty, _ORDER.get(f.name, 2), f.name))
            if len(empty) < len(fields):
                self.roles.objects.append((things, own))

    def _copy_of_values(self, group: Group, f: Field) -> None:
        places = (Attribute(thing, f) for thing in group.things)
        self.roles.scalars += [place for place in places if is_number(content_of(f, place.holder))]

    def _fields(self, group: Group) -> Iterable[Field]:
        names = dict.fromkeys(name for own in group.copies if own is not None for name in own)
        return (*slots_of(group.kind), *(group.entry(name) for name in names))

    def _classes(self) -> None:
        """Numbers in attributes of classes, once a trace has shown that the step assigns them."""
        for kind in self._survey.classes:
            for name, content in vars(kind).items():
                place = ClassAttribute(kind, name)
                if (place.key in self._variable and is_number(content)) or self._is_weight(content):
                    self._scalar(place, content)

    def _is_weight(self, content: Any) -> bool:
        """Whether a number is memory even where the step only reads it."""
        return self._every_float and type(content) is float


def _by_what_is_none(things: Sequence[Any], fields: Sequence[Field]) -> Iterable[tuple[list[Any], frozenset[Field]]]:
    """Objects that have None in the same fields, with these: None is no number, of which a gradient may be 0.0."""
    found: dict[frozenset[Field], list[Any]] = {}
    columns = [contents_of(f, things) for f in fields]
    for k, thing in enumerate(things):
        found.setdefault(frozenset([f for f, column in zip(fields, columns) if column[k] is None]), []).append(thing)
    return [(things, empty) for empty, things in found.items()]


def _is_of_library(place: Place) -> bool:
    """Whether a variable is one of a module that is not the user's, such as `math.inf`."""
    names = place.holder
    module = sys.modules.get(names.get("__name__", "")) if type(names) is dict else None
    return module is not None and vars(module) is names and not is_module_of_user(module)


def _is_plain_dict(kind: Any) -> bool:
    """Whether entries of a class derived from dict are read and assigned as those of a dict are."""
    is_plain = kind.__setitem__ is dict.__setitem__ and kind.__getitem__ is dict.__getitem__
    return is_plain or not is_of_user(kind)
