"""The survey: everything that a call of a step can reach, found by one walk without running it.

1. Start from the step and from the objects that it is given.  Code comes first: reading functions (code.py) says which
   variables, attributes and methods can be reached at all, and new names reopen what has been passed by.
2. Then data, depth first and in the order of the containers, so that parameters come in the order in which they lie.
   Every type is taken apart by shapes.py.  Of the user's objects and classes the attributes that the code mentions
   count, of containers and of objects of libraries everything.  Libraries and the standard library are not walked into,
   nor is what lies in an attribute that the code mentions only in `__init__`, to assign it: a history of losses.
3. Of everything that can be changed there is a copy from before the trace (before.py).

Which of the places hold numbers that the step may change is decided by roles.py; guard.py watches the others.
"""

from __future__ import annotations

import builtins
import io
import operator
import random
import re
import sys
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from types import FunctionType, MethodType, ModuleType
from typing import Any

from ...base.lookup import is_bound_draw, module_of, package_of
from ...memory.live import keep_quick, raw_attributes
from ...nn.module import Module
from .allowed import Outside
from .before import Before, Group, is_user_kind, named_by_user
from .code import COMPUTED, captured, import_names, loaded_modules, read
from .met import Met, names_of
from .ownership import is_called_by_library, is_module_of_python, is_module_of_user, is_of_layers, is_of_user
from .places import Attribute, ClassAttribute, Contents, Element, Entry, Place, Root, Variable, is_writable
from .shapes import (
    MISSING,
    OPAQUE,
    REFERENCES,
    Shape,
    cell_content,
    content_of,
    contents_of,
    for_each_class,
    is_bag,
    is_buffer,
    is_iterator,
    is_stream,
    leads_nowhere,
    shape_of,
    slots_of,
)

#: Objects of these libraries' own are not looked into: they lead to the whole interpreter, and hold no numbers.
_OUTSIDE = frozenset({
    "logging", "_io", "io", "threading", "subprocess", "socket", "ssl", "sqlite3", "asyncio", "concurrent",
    "multiprocessing", "importlib", "zipimport", "inspect", "traceback", "ctypes", "_ctypes", "cffi", "_cffi_backend",
    "argparse", "unittest", "doctest", "pathlib", "re", "typing", "abc", "_abc", "ast", "decimal", "fractions",
    "datetime", "numpy", "torch", "jax", "pandas", "matplotlib", "tqdm", "pytest", "_pytest", "IPython", "ipykernel",
    "mgjit", "select", "selectors", "tempfile", "warnings", "weakref._remove",
})  # fmt: skip


#: Of fewer objects each is looked at by itself.
_ALONE = 3


class Survey:
    """What surrounds a step.

    Args:
        function: the step.
        given: objects among its arguments that are no inputs.
        built: keys of the places where it leaves what it has built: what lies there now is not looked at.

    Attributes:
        built: these places, as far as they have been found.
        functions: the user's functions that a call may run, the step first.
        variables: the variables that they name, in the order in which they were met, with what they held.
        classes: the user's classes, with the names in each that matter.
        groups: objects by class.
        lists, dicts: containers of exactly these types, with the place of each.
        draws: where there are methods of generators that are written in C.
        generators: of random numbers.
        iterators: that exist before the step, with the place of each.
        buffers: blocks of numbers, with the place of each.
        known: the identities of all that was walked over.
        shared: the identities of containers that lie at several places.
        kinds: by identity of a list, the types of its elements.
        names: that the code mentions.
        met: what there is that a step may not use unnoticed.
    """

    def __init__(
        self, function: Any, given: Iterable[tuple[str, Any]] = (), built: Collection[Any] = frozenset()
    ) -> None:
        self._built = built
        self.built: dict[Any, Place] = {}
        self.functions: list[FunctionType] = []
        self.variables: dict[Any, tuple[Place, Any]] = {}
        self.classes: dict[type, dict[str, Any]] = {}
        self.groups: dict[type, Group] = {}
        self.lists: list[tuple[Place, list[Any]]] = []
        self.dicts: list[tuple[Place, dict[Any, Any]]] = []
        self.draws: list[Place] = []
        self.generators: list[Any] = []
        self.iterators: list[tuple[Place, Any]] = []
        self.buffers: list[tuple[Any, Place]] = []
        self.known: set[int] = {id(vars(builtins))}  # in which Python's own names lie; the guard looks after those
        self.shared: set[int] = set()
        self.kinds: dict[int, set[type]] = {}
        self.names: dict[str, None] = dict.fromkeys(("__call__",))
        self.before = Before(self.names, self.groups)
        self.met = Met()
        self._references: list[tuple[Place, Any]] = []  # weak ones, which are followed last
        self._kept_anyhow: frozenset[int] | None = None  # what is reached without them
        self._first_places: dict[int, Any] = {}  # of lists
        self._sources: set[tuple[int, int]] = set()  # the code that has been read, with the variables around it
        self._kept: list[Any] = []  # so that no id is used again
        self._code: list[Any] = []
        self._data: list[tuple[Place | None, Any]] = []  # None in front of a list of such
        self._classes_named: dict[type, int] = {}
        self._modules_named: list[tuple[ModuleType, str, int]] = []
        self._named: set[int] = set()  # the identities of these modules
        self._name_list: list[str] = list(self.names)
        self._unread: set[str] = set()  # attributes that the code only gives to new objects, and reads of none
        self._walk(deque([("the step", function), *given]))
        self._find_empty_places()
        self.before.note_objects()

    def _find_empty_places(self) -> None:
        """Places where the step leaves something, but nothing lies now that would have been looked at."""
        wanted = self._built - self.built.keys()
        names = {key[1] for key in wanted}
        places: list[Place] = [place for place, _ in self.variables.values()] if wanted else []
        for group in self.groups.values() if wanted else ():
            for thing in group.things:
                found = [slot for slot in slots_of(group.kind) if slot.name in names]
                own = raw_attributes(thing) or {}
                places += [Attribute(thing, f) for f in (*found, *(group.entry(name) for name in own if name in names))]
        for path, entries in self.dicts if wanted else ():
            places += [Entry(entries, name, "", path) for name in names if name in entries]
        for path, things in self.lists if wanted else ():
            places += [Entry(things, name, "", path) for name in names if type(name) is int and name < len(things)]
        self.built.update({place.key: place for place in places if place.key in wanted})

    def _is_built(self, place: Place, thing: Any) -> bool:
        """Whether a place, or the contents of a list, are not looked at; a list is noted all the same."""
        if place.key in self._built:
            if isinstance(place, Element):
                place = Entry(place.holder.read(), place.name, "", place.holder)
            self.built[place.key] = place
            return True
        contents = Contents(thing, place)
        if type(thing) is not list or contents.key not in self._built:
            return False
        if contents.key not in self.built:
            self.built[contents.key] = contents
            self.known.add(id(thing))
            self._kept.append(thing)
            self.before.note_container(shape_of(list), thing, place)  # type: ignore[arg-type]
        return True

    @property
    def all_names(self) -> bool:
        """Whether the code may reach attributes that it does not mention."""
        return not COMPUTED.isdisjoint(self.names)

    @property
    def has_defaults(self) -> bool:
        """Whether there may be dicts in which a look-up makes an entry."""
        return "defaultdict" in self.names or any(held is defaultdict for _, held in self.variables.values())

    def knows(self, thing: Any) -> bool:
        """Whether an object existed before the step."""
        return id(thing) in self.known

    def containers(self) -> Iterable[tuple[Shape, Any, Any, Place]]:
        """All containers, with how they are taken apart, what they held, and the place of each."""
        return self.before.containers

    def modules(self) -> Iterable[tuple[ModuleType, str, bool]]:
        """The modules that the code names, with the names, and whether they are not Python's."""
        return [(module, name, not is_module_of_python(module)) for module, name, _ in self._modules_named]

    def outside(self) -> Outside:
        """Where the code may meet what depends on the world outside of the step."""
        return self.met.outside(self.functions, names_of(self, [module for module, _, _ in self._modules_named]))

    def functions_with_attributes(self) -> list[FunctionType]:
        """The user's functions that have attributes."""
        return [function for function in self.functions if vars(function)]

    # ---- 1 and 2: the walk ------------------------------------------------------------------------------------

    def _walk(self, given: deque[tuple[str, Any]]) -> None:
        self._roots: deque[tuple[Place, Any]] = deque((Root(thing, name), thing) for name, thing in given)
        while True:
            if self._code:
                self._read(self._code.pop())
            elif self._data:
                place, thing = self._data.pop()
                if place is None:
                    self._visit_all(thing)
                else:
                    self._visit(place, thing)
            elif self._roots:
                self._data.append(self._roots.popleft())
            elif not (self._reopen() or self._follow_references()):
                return

    def _follow_references(self) -> bool:
        """Look at what weak references refer to, after all that lies there anyhow; returns whether there is more."""
        references, self._references = self._references, []
        if not references:
            return False
        if self._kept_anyhow is None:
            self._kept_anyhow = frozenset(self.known)
        for place, thing in references:
            parts = list(shape_of(type(thing)).contents(thing, place))  # type: ignore[union-attr]
            if not all(id(part) in self._kept_anyhow or leads_nowhere(type(part)) for _, part in parts):
                self.met.note_one(place, thing)
            self._data += parts
        return True

    def _read(self, thing: Any) -> None:
        """Read a function or a class."""
        if isinstance(thing, FunctionType):
            self._read_function(thing)
        else:
            self._read_class(thing)

    def _read_function(self, function: FunctionType) -> None:
        own = vars(function)
        self.before.note_function(function)
        if "__wrapped__" in own:
            self._see(Root(own["__wrapped__"], "a decorated function"), own["__wrapped__"])
        if not (is_of_user(function) or is_of_layers(function)):
            for cell in function.__closure__ or ():  # such as what functools.singledispatch or a decorator keeps
                content = cell_content(cell)
                if content is not MISSING:
                    self._later(Root(content, f"what {function.__name__} keeps"), content)
            return
        if is_of_user(function):
            self.functions.append(function)
        namespace = function.__globals__
        source = id(function.__code__), id(namespace)
        if source in self._sources and not (function.__closure__ or function.__defaults__ or function.__kwdefaults__):
            self._see_entries(function)
            return  # such as one of `lambda: None` for each object
        self._sources.add(source)
        found = read(function.__code__)
        making = function.__name__ == "__init__"
        unread = found.only_stored - (self.names.keys() - self._unread) if making else frozenset()
        self._mention(found.names)
        self._unread |= unread
        self.before.note_module(namespace)
        for name in found.variables:
            if isinstance(namespace.get(name), ModuleType):
                self._name_module(namespace[name], name)
            elif name not in namespace and name in vars(builtins):
                self.met.note(Entry(vars(builtins), name, name), vars(builtins)[name])
        for name, _ in import_names(function):
            if name in sys.modules:
                self._name_module(sys.modules[name], name)
        for place in captured(function):
            content = place.read()
            if not isinstance(place, Root):
                self.variables.setdefault(place.key, (place, content))
            self._see(place, content)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if id(cell) not in self.known:
                self.known.add(id(cell))
                self.before.note_variable(Variable(cell, name))
        self._see_entries(function)
        if function.__defaults__ or function.__kwdefaults__:
            self._kept.append((function.__defaults__, function.__kwdefaults__))

    def _see_entries(self, function: FunctionType) -> None:
        for name, content in vars(function).items():
            self._later(Entry(vars(function), name, f"{function.__name__}.{name}"), content)

    def _read_class(self, kind: type) -> None:
        """The methods and attributes of a class that the code mentions, and those that Python calls by itself."""
        for base in kind.__mro__:
            if base in self._classes_named or not (is_of_user(base) or issubclass(base, Module)):
                continue
            self._classes_named[base] = 0
            self.classes[base] = {}
            self.before.note_class(base)
            patterns = vars(base).get("__match_args__")  # which `case Point(x, y)` reads
            self._mention(patterns if type(patterns) is tuple else ())
            self._read_entries(base)
        if type(kind) is not type and is_of_user(type(kind)):
            self._see_class(type(kind))

    def _read_entries(self, base: type) -> None:
        found, every = self.classes[base], self.all_names or is_called_by_library(base)
        self._classes_named[base] = len(self._name_list)
        for name, member in vars(base).copy().items():
            if name not in found and (every or name in self.names or _is_special(name, member)):
                found[name] = member
                if not leads_nowhere(type(member)):
                    self._see(ClassAttribute(base, name), member)

    def _see_class(self, kind: type) -> None:
        if id(kind) not in self.known:
            self.known.add(id(kind))
            self._code.append(kind)

    def _see(self, place: Place, thing: Any) -> None:
        """Take note of what lies at a place: code is read before any more data."""
        if not leads_nowhere(type(thing)):
            self.met.note(place, thing)
        if isinstance(thing, FunctionType):
            if id(thing) not in self.known:
                self.known.add(id(thing))
                self._kept.append(thing)
                self._code.append(thing)
        elif isinstance(thing, type):
            self._see_class(thing)
        elif isinstance(thing, (MethodType, staticmethod, classmethod, property)):
            self._visit(place, thing)
        else:
            self._later(place, thing)

    def _name_module(self, module: ModuleType, text: str) -> None:
        if id(module) not in self._named:
            self._named.add(id(module))
            self._kept.append(module)
            self._modules_named.append((module, text, 0))
            if is_module_of_user(module):
                self.before.note_module(vars(module))
            if type(module) is not ModuleType:  # whose class may compute what is not there
                self._see_class(type(module))

    def _later(self, place: Place, thing: Any) -> None:
        if not leads_nowhere(type(thing)):
            self._roots.append((place, thing))

    def _mention(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.names or name in self._unread:
                self._unread.discard(name)
                self.names[name] = None
                self._name_list.append(name)

    def _visit(self, place: Place, thing: Any) -> None:
        """Look at data, and put what it holds on the stack."""
        kind = type(thing)
        if leads_nowhere(kind) or (self._built and self._is_built(place, thing)):
            return
        if isinstance(thing, ModuleType):
            self._name_module(thing, place.describe())
            return
        self.met.note(place, thing)
        if id(thing) in self.known:
            if kind is not list or self._first_places.get(id(thing)) != place.key:  # and not the same cell once more
                self.shared.add(id(thing))
            if is_bound_draw(thing) and is_writable(place):
                self.draws.append(place)
            if is_iterator(kind):
                self.iterators.append((place, thing))
            return
        if isinstance(thing, (FunctionType, type)):
            self._see(place, thing)
            return
        if is_user_kind(kind) and id(kind) not in self.known:  # its methods say which attributes matter
            self._see_class(kind)
            self._data.append((place, thing))
            return
        shape = shape_of(kind)
        if _is_generator(kind):
            self.generators.append(thing)
            if not is_of_user(kind):
                self._kept.append(thing)
                return  # what it holds is its state
        if shape is OPAQUE and _is_outside(kind):
            if issubclass(kind, io.IOBase) and thing is not sys.stdout and thing is not sys.stderr:
                # Its lines are taken one by one.
                self.iterators.append((place, thing))
                if is_stream(thing):
                    self.before.note_buffer(thing, place)
            if package_of(kind) == "mgjit":
                self._see_step(place, raw_attributes(thing) or {})
            return
        self.known.add(id(thing))
        self._kept.append(thing)
        if isinstance(thing, (operator.attrgetter, operator.methodcaller)):
            self._mention(re.findall(r"\w+", repr(thing)))
        if is_buffer(thing):
            self.buffers.append((thing, place))
            self.before.note_buffer(thing, place)
        if is_bound_draw(thing) and is_writable(place):
            self.draws.append(place)
        if is_iterator(kind):
            self.iterators.append((place, thing))
            return  # what it goes through is out of reach while a stand-in is there
        parts: list[tuple[Place, Any]] = []
        if shape is not None:
            self.before.note_container(shape, thing, place)
            if issubclass(kind, REFERENCES):
                self._references.append((place, thing))
            elif kind is list:
                self.lists.append((place, thing))
                self._first_places[id(thing)] = place.key
                kinds = self.kinds[id(thing)] = set(map(type, thing))
                if not all(map(leads_nowhere, kinds)):
                    parts += shape.contents(thing, place)
            else:
                if kind is dict:
                    self.dicts.append((place, thing))
                parts += shape.contents(thing, place)
        if is_bag(kind) and not _is_outside(kind):
            parts += self._attributes(place, thing, kind)
        if len(parts) > _ALONE and kind is list and _is_plain(type(parts[0][1])):
            self._data += [(None, parts[1:]), parts[0]]  # the first one shows how the others are read
        else:
            self._data += parts[::-1]

    def _visit_all(self, parts: list[tuple[Place, Any]]) -> None:
        """Look at what lies side by side: objects of one class that lead nowhere, at once."""
        things = [thing for _, thing in parts]
        kind, identities = type(things[0]), set(map(id, things))
        group = self.groups.get(kind)
        is_new = len(identities) == len(things) and self.known.isdisjoint(identities)
        if group is None or not is_new or set(map(type, things)) != {kind} or not self._lead_nowhere(things, group):
            self._data += parts[::-1]
            return
        self.known |= identities
        self._kept += things
        group.things += things
        group.places += [place for place, _ in parts]
        group.named += [len(self._name_list)] * len(things)

    def _lead_nowhere(self, things: list[Any], group: Group) -> bool:
        """Whether nothing has to be looked at in objects of one class."""
        every = self.all_names or not group.is_user()
        slots = [slot for slot in slots_of(group.kind) if every or slot.name in self.names]
        if group.is_user():
            keep_quick(things)
        contents = [content for slot in slots for content in contents_of(slot, things) if content is not MISSING]
        contents += chain.from_iterable(own.values() for own in map(raw_attributes, things) if own)
        tuples = {id(content) for content in contents if type(content) is tuple}  # mostly the empty one
        return tuples <= self.shared and all(map(leads_nowhere, set(map(type, contents)) - {tuple}))

    def _see_step(self, place: Place, own: dict[str, Any]) -> None:
        """A compiled step that is called inside this one, or this one itself: its function, and what the user adds."""
        function = own.get("_function")
        if function is None:
            return
        self._see(place, function)
        self.before.note_step(own, place)
        for name, content in named_by_user(own).items():
            entry = Entry(own, name, f"{place.describe()}.{name}")
            self.variables.setdefault(entry.key, (entry, content))
            self._later(entry, content)

    def _attributes(self, place: Place, thing: Any, kind: type) -> list[tuple[Place, Any]]:
        group = self.groups.get(kind)
        if group is None:
            group = self.groups[kind] = Group(kind)
        if group.is_user():
            keep_quick([thing])
        group.things.append(thing)
        group.places.append(place)
        group.named.append(len(self._name_list))
        return list(self._contents(thing, group, self.names))

    def _contents(self, thing: Any, group: Group, names: Any) -> Iterator[tuple[Place, Any]]:
        every = self.all_names or not group.is_user()
        unread = () if every else self._unread
        for slot in slots_of(group.kind):
            if every or (slot.name in names and slot.name not in unread):
                content = content_of(slot, thing)
                if content is not MISSING and not leads_nowhere(type(content)):
                    yield Attribute(thing, slot), content
        for name, content in dict.copy(raw_attributes(thing) or {}).items():
            if (every or (name in names and name not in unread)) and not leads_nowhere(type(content)):
                yield Attribute(thing, group.entry(name)), content

    def _reopen(self) -> bool:
        """Look again at what was passed by before all names were known; returns whether there is more to do."""
        count = len(self._name_list)
        for base, named in self._classes_named.copy().items():
            if named < count:
                self._read_entries(base)
        for index, (module, text, named) in enumerate(self._modules_named):
            if not named and "__getattr__" in vars(module):  # which Python calls by itself
                self._see(Root(module, text), vars(module)["__getattr__"])
            if named < count:
                self._modules_named[index] = module, text, count
                entries = vars(module)
                is_library = is_module_of_python(module)
                for name in self._name_list[named:]:
                    if name in entries:
                        place = Entry(entries, name, f"{text}.{name}")
                        self.variables.setdefault(place.key, (place, entries[name]))
                        if not is_library:
                            self._see(place, entries[name])
                        elif callable(entries[name]):
                            self.met.note(place, entries[name])
                        elif entries[name] is sys.modules:
                            self.met.note_one(place, sys.modules)
                            for loaded in loaded_modules(self._name_list):
                                self._name_module(loaded, loaded.__name__)
                        else:
                            self._see(place, entries[name])
        for entry, content in self.met.attributes(self._name_list):
            self.variables.setdefault(entry.key, (entry, content))
            self._see(entry, content)
        for group in list(self.groups.values()):
            for index, named in enumerate(group.named):
                if named < count:
                    group.named[index] = count
                    new = set(self._name_list[named:])
                    self._roots += self._contents(group.things[index], group, new)
        return bool(self._code or self._data or self._roots)


@for_each_class
def _is_outside(kind: Any) -> bool:
    """Whether objects of a class of a library are not looked into."""
    return not is_user_kind(kind) and package_of(kind) in _OUTSIDE


@for_each_class
def _is_plain(kind: Any) -> bool:
    """Whether objects of a class have attributes of the user's and nothing else."""
    return is_user_kind(kind) and not leads_nowhere(kind) and shape_of(kind) is None and is_bag(kind)


def _is_special(name: str, member: Any) -> bool:
    """Whether a method is called by Python itself, which names it nowhere."""
    return name.startswith("__") and name.endswith("__") and isinstance(member, _METHODS)


_METHODS = (FunctionType, staticmethod, classmethod, property)


def _is_generator(kind: type) -> bool:
    """Whether objects of a class draw random numbers."""
    return issubclass(kind, random.Random) or module_of(kind).startswith("numpy.random")
