"""What everything around a step held before it was traced: compared afterwards, and put back.

1. The survey hands over what it meets: containers, objects by class, variables, modules, classes, functions, buffers.
   Of each there is a shallow copy.
2. `changes` compares by identity, and names every place that holds something else now.
3. `restore` puts everything back; it may be called again, and after any error.
"""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import is_
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

from ...memory.live import Field, entry_of, original_class, raw_attributes
from ...memory.live import slot as member_of
from ...nn.module import Module
from .code import SEARCHING
from .columns import MADE_BY_PYTHON, Columns
from .ownership import is_module_of_user, is_of_layers, is_of_user, library_bases
from .places import Attribute, ClassAttribute, Element, Entry, FunctionDefaults, Place, Root, Variable
from .shapes import (
    MISSING,
    Shape,
    buffer_bytes,
    cell_content,
    contents_of,
    for_each_class,
    is_buffer,
    is_same,
    is_stream,
    put_back_buffer,
    slots_of,
)

#: Classes of these modules whose objects are bags of attributes of the user's.
_BAGS = frozenset({("argparse", "Namespace"), ("threading", "local"), ("_thread", "_local")})


@dataclass(eq=False)
class Group:
    """The objects of one class, in the order in which they were met.

    Attributes:
        kind: the class; of objects that live in a kernel's memory, the one that they have there.
        things, places: the objects, and where each lies.
        named: how many of the survey's names each was looked at for.
        copies: the dict of each, as it was; None for objects without one.
        slots: for each slot of the class, what each object had in it.
    """

    kind: type
    things: list[Any] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    named: list[int] = field(default_factory=list)
    copies: list[dict[str, Any] | None] = field(default_factory=list)
    slots: list[tuple[Field, list[Any]]] = field(default_factory=list)

    def entry(self, name: str) -> Field:
        """The field that is an entry of the dict of each object."""
        return _entry_field(self.kind, name)

    def is_user(self) -> bool:
        """Whether only the attributes count that the code mentions, as no base class of a library reads others."""
        return is_user_kind(self.kind) and not has_library_base(self.kind)


@dataclass(frozen=True)
class Change:
    """One place that does not hold what it held before.

    Attributes:
        place: where; of sets and of what has grown, the container.
        before, now: MISSING for what was not, or is not there.
        holder: of elements and entries, the container.
        is_growth: whether `before` is what a container held, and `now` what has come to it.
    """

    place: Place
    before: Any
    now: Any
    holder: Any = None
    is_growth: bool = False


class Before:
    """What was where.

    Args:
        names: that the code mentions; of the variables of a module, only these can be assigned.
        groups: objects by class, which `note_objects` copies when all of them are there.

    Attributes:
        containers: each with how it is taken apart, what it held, and its place.
    """

    def __init__(self, names: Mapping[str, Any], groups: dict[type, Group]) -> None:
        self._names, self._groups = names, groups
        self._loaded = set(sys.modules)
        self.containers: list[tuple[Shape, Any, Any, Place]] = []
        self._modules: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._steps: list[tuple[dict[str, Any], dict[str, Any], Place]] = []
        self._buffers: list[tuple[Any, bytes, Place]] = []
        self._variables: list[tuple[Variable, Any]] = []
        self._classes: list[tuple[type, dict[str, Any]]] = []
        self._functions: list[tuple[FunctionType, Any, Any, dict[str, Any]]] = []
        #: As `changes` has found: whether nothing has changed, and whether attributes have another order.
        self._is_unchanged = self._is_reordered = False

    # ---- 1: what is noted -------------------------------------------------------------------------------------

    def note_container(self, shape: Shape, thing: Any, place: Place) -> None:
        """A container, or whatever else a shape takes apart."""
        self.containers.append((shape, thing, shape.copy(thing), place))

    def note_buffer(self, thing: Any, place: Place) -> None:
        """A block of numbers, or a file in memory."""
        self._buffers.append((thing, buffer_bytes(thing), place))

    def note_variable(self, place: Variable) -> None:
        """A variable of an enclosing function, which may have no value yet."""
        self._variables.append((place, cell_content(place.holder)))

    def note_module(self, namespace: dict[str, Any]) -> None:
        """The global variables of a function, or the attributes of a module."""
        if id(namespace) not in self._modules:
            self._modules[id(namespace)] = namespace, dict(namespace)

    def note_class(self, kind: type) -> None:
        """The entries of a class."""
        self._classes.append((kind, dict(vars(kind))))

    def note_function(self, function: FunctionType) -> None:
        """Attributes and defaults of a function."""
        self._functions.append((function, function.__defaults__, function.__kwdefaults__, dict(vars(function))))

    def note_step(self, own: dict[str, Any], place: Place) -> None:
        """The attributes of a compiled step."""
        self._steps.append((own, named_by_user(own), place))

    def note_objects(self) -> None:
        """The attributes of all objects."""
        for group in self._groups.values():
            dicts = list(map(raw_attributes, group.things))
            group.copies = [None if own is None else dict(own) for own in dicts]
            group.slots = [(slot, contents_of(slot, group.things)) for slot in slots_of(group.kind)]

    def columns(self) -> Columns:
        """The same objects, to be compared often."""
        made = Columns()
        for shape, thing, _, place in self.containers:
            made.add_container(shape, thing, place)
        for group in self._groups.values():
            for thing, place in zip(group.things, group.places):
                made.add_object(thing, place)
        for namespace, _ in self._modules.values():
            made.add_module(namespace)
        for own, _, place in self._steps:
            made.add_step(own, place, named_by_user)
        for thing, _, place in self._buffers:
            made.add_buffer(thing, place)
        for variable, _ in self._variables:
            made.add_cell(variable.holder, variable)
        for kind, _ in self._classes:
            made.add_class(kind, Root(kind, kind.__name__))
        for function, *_ in self._functions:
            made.add_function(function, Root(function, function.__name__))
        return made

    # ---- 2: what has changed ----------------------------------------------------------------------------------

    def changes(self) -> list[Change]:
        """All places that do not hold what they held."""
        self._is_unchanged = self._is_reordered = False
        found = list(self.differences())
        self._is_unchanged = not (found or self._is_reordered)  # at the end: it may be interrupted before
        return found

    def differences(self) -> Iterator[Change]:
        """The same while the step runs, without a note for `restore`."""
        return chain(
            self._changes_of_containers(), self._changes_of_objects(), self._changes_of_variables(),
            self._changes_of_classes(), self._changes_of_functions(),
        )  # fmt: skip

    def _changes_of_containers(self) -> Iterator[Change]:
        for shape, thing, copied, place in self.containers:
            if is_same(thing if type(thing) is list else shape.copy(thing), copied):
                continue
            now = shape.copy(thing)
            if type(copied) is dict:
                yield from _of_entries(thing, copied, now, place)
            elif len(now) == len(copied) and type(thing) in (list, deque):
                for index, (new, old) in enumerate(zip(now, copied)):
                    if new is not old:
                        yield Change(Element(place, thing, index), old, new, thing)
            else:
                before = set(map(id, copied))
                added = [part for part in now if id(part) not in before]
                yield Change(place, copied, added or now, thing, is_growth=True)

    def _changes_of_objects(self) -> Iterator[Change]:
        for group in self._groups.values():
            for thing, copied in zip(group.things, group.copies):
                if copied is not None and not is_same(now := raw_attributes(thing), copied):
                    self._is_reordered = True  # perhaps nothing else
                    for name in {**copied, **now}:
                        old, new = copied.get(name, MISSING), now.get(name, MISSING)
                        if old is not new:
                            yield Change(Attribute(thing, group.entry(name)), old, new, thing)
            for slot, contents in group.slots:
                for thing, old, new in zip(group.things, contents, contents_of(slot, group.things)):
                    if new is not old:
                        yield Change(Attribute(thing, slot), old, new, thing)

    def _changes_of_variables(self) -> Iterator[Change]:
        every = not SEARCHING.isdisjoint(self._names)
        for namespace, copied in self._modules.values():
            if not is_same(namespace, copied):
                for name in list({**copied, **namespace}):
                    old, new = copied.get(name, MISSING), namespace.get(name, MISSING)
                    if old is not new and (every or name in self._names):
                        yield Change(Entry(namespace, name, f"the variable {name}"), old, new, namespace)
        for own, copied, place in self._steps:
            yield from _of_entries(own, copied, named_by_user(own), place)
        for thing, before, place in self._buffers:
            if buffer_bytes(thing) != before:
                yield Change(place, before, (), thing, is_growth=True)
        for place, old in self._variables:
            new = cell_content(place.holder)
            if new is not old:
                yield Change(place, old, new, place.holder)

    def _changes_of_classes(self) -> Iterator[Change]:
        for kind, copied in self._classes:
            now = dict(vars(kind))
            if not is_same(now, copied):
                for name in {**copied, **now}:
                    old, new = copied.get(name, MISSING), now.get(name, MISSING)
                    if old is not new and name not in MADE_BY_PYTHON:
                        yield Change(ClassAttribute(kind, name), old, new, kind)

    def _changes_of_functions(self) -> Iterator[Change]:
        for function, defaults, named_defaults, copied in self._functions:
            if not is_same(vars(function), copied):
                yield from _of_entries(vars(function), copied, vars(function), Root(function, function.__name__))
            if not _are_defaults(function, defaults, named_defaults):
                place = FunctionDefaults(function, "__defaults__")
                yield Change(place, (defaults, named_defaults), place.read(), function)

    def unload_new_modules(self) -> list[str]:
        """Forget the modules of the user's that have been loaded since: nobody knows what they held."""
        new = [name for name in sys.modules.keys() - self._loaded if isinstance(sys.modules[name], ModuleType)]
        users = [name for name in new if _has_source(sys.modules[name]) and is_module_of_user(sys.modules[name])]
        for name in users:
            del sys.modules[name]
        return users

    # ---- 3: putting back --------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Put back everything that can be put back; may be called more than once."""
        if self._is_unchanged:
            return
        for shape, thing, copied, _ in self.containers:
            if shape.restore is not None and not is_same(shape.copy(thing), copied):
                shape.restore(thing, copied)
        for group in self._groups.values():
            for thing, before in zip(group.things, group.copies):
                if before is not None and not is_same(own := raw_attributes(thing), before):
                    _put_back(own, before)
            for slot, contents in group.slots:
                for thing, old, new in zip(group.things, contents, contents_of(slot, group.things)):
                    if new is not old:
                        _write_slot(slot, thing, old)
        for change in list(self._changes_of_variables()):
            if type(change.before) is bytes and (is_buffer(change.holder) or is_stream(change.holder)):
                put_back_buffer(change.holder, change.before)
            elif change.before is MISSING:
                change.place.delete()
            else:
                change.place.write(change.before)
        for change in list(self._changes_of_classes()):
            if change.before is MISSING:
                type.__delattr__(change.holder, change.place.name)
            else:
                type.__setattr__(change.holder, change.place.name, change.before)
        for function, defaults, named_defaults, copied in self._functions:
            if not is_same(vars(function), copied):
                _put_back(vars(function), copied)
            if not _are_defaults(function, defaults, named_defaults):
                function.__defaults__, function.__kwdefaults__ = defaults, named_defaults


def _of_entries(thing: Any, copied: dict[Any, Any], now: Any, place: Place) -> Iterator[Change]:
    for name in list({**copied, **now}):
        old, new = copied.get(name, MISSING), now.get(name, MISSING)
        if old is not new:
            yield Change(Entry(thing, name, "", place), old, new, thing)
    if copied.keys() == now.keys() and list(copied) != list(now):
        yield Change(place, copied, [], thing, is_growth=True)


def named_by_user(own: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a compiled step that are not its own."""
    return {name: content for name, content in own.items() if not name.startswith("_")}


def _put_back(own: dict[Any, Any], before: dict[Any, Any]) -> None:
    if list(own) != list(before) and own.keys() >= before.keys():
        for name in own.keys() - before.keys():
            del own[name]
    own.update(before)
    for name in own.keys() - before.keys():
        del own[name]


def _write_slot(slot: Field, thing: Any, content: Any) -> None:
    if content is not MISSING:
        slot.write(thing, content)
    else:
        member_of(type(thing), slot.name).__delete__(thing)


def _are_defaults(function: FunctionType, defaults: Any, named_defaults: Any) -> bool:
    """Whether a function has these defaults; PyPy makes the containers around them anew."""
    same = len(function.__defaults__ or ()) == len(defaults or ()) and all(
        map(is_, function.__defaults__ or (), defaults or ())
    )
    return same and is_same(function.__kwdefaults__ or {}, named_defaults or {})


def _has_source(module: ModuleType) -> bool:
    file = vars(module).get("__file__")
    return isinstance(file, str) and file.endswith((".py", ".pyc"))


_entry_field = functools.lru_cache(maxsize=8192)(entry_of)


@for_each_class
def has_library_base(kind: Any) -> bool:
    """Whether a class of the user's is derived from one of a library, written in Python, that has attributes."""
    bases = library_bases(original_class(kind))
    return any(base.__module__ not in _WITHOUT_ATTRIBUTES and not is_of_layers(base) for base in bases)


#: Modules with base classes that read no attributes.
_WITHOUT_ATTRIBUTES = frozenset({"abc", "builtins", "typing", "mgjit.engine.value", "types"})


@for_each_class
def is_user_kind(kind: Any) -> bool:
    """Whether only those attributes of an object matter that the code mentions."""
    kind = original_class(kind)
    return is_of_user(kind) or issubclass(kind, (Module, SimpleNamespace)) or (kind.__module__, kind.__name__) in _BAGS
