"""What foreign things a survey meets, which no step may use unnoticed (allowed.py), and under which names.

1. Functions and classes that are not allowed: the names of the variables and attributes that hold them.  Where no name
   leads to one, such as in a list, whatever is called is looked at.
2. Objects of foreign classes: all names that these classes give a meaning.  What the code mentions of the attributes
   that such an object keeps in a dict of its own is watched like a variable.
3. Objects that are foreign themselves: weak references to what nothing else keeps, which may be gone at any time, and
   streams in memory that existed before the step.
4. Names of attributes that nothing known has: of what they are is not said anywhere, so that is looked at, too.
5. Functions of math and Python's own that are kept, as in `self.activation = math.tanh`: rewritten code calls others
   for them (source/semantics.py), and has to know under which names.
"""

from __future__ import annotations

import io
import pathlib
import random
import re
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from ...base.lookup import entries, package_of
from ...engine.state import State
from ...engine.value import Value
from ...memory.live import raw_attributes
from ...nn.module import Module
from ...tensor.tensor import Tensor
from .allowed import Outside, foreign_names, has_operators, is_allowed, is_foreign
from .before import is_user_kind
from .code import EVALUATING, read
from .places import Attribute, ClassAttribute, Entry, Place, Variable
from .shapes import slots_of

if TYPE_CHECKING:
    from .survey import Survey

#: Names that the classes which a step computes with have; what is called by them is known, unless paths have the name
#: as well, such as `absolute`.
_CLASSES: tuple[type, ...] = (
    Value, State, Tensor, Module, random.Random, list, dict, tuple, set, frozenset, str, bytes, bytearray, int, float,
    complex, deque, OrderedDict, defaultdict, array, range, slice, GeneratorType, type, FunctionType, property,
    MethodType, BaseException,
)  # fmt: skip
_KNOWN = frozenset(name for kind in _CLASSES for base in kind.__mro__ for name in entries(base)) - {
    "__subclasses__",
    *(name for name in entries(pathlib.Path) if not name.startswith("_")),
}
_OF_STREAMS = frozenset(name for kind in (io.StringIO, io.BytesIO) for base in kind.__mro__ for name in entries(base))
#: Modules of containers that keep nothing.
_WEAK = ("weakref", "_weakrefset")
_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, type)
#: Modules of functions that rewritten code replaces.
_COMPUTING = ("math", "builtins")


class Met:
    """The foreign things that a survey has met."""

    def __init__(self) -> None:
        self.kinds: dict[type, Place] = {}
        self._usual: set[type] = set()  # classes of the user's, of whose objects there is nothing to be noted
        self._functions: set[str] = set()
        self._builtins: set[str] = set()
        self._has_builtins_anywhere = False
        self._names: set[str] = set()
        self._own: set[str] = set()  # of attributes in dicts of foreign objects
        self._everywhere = False
        self._objects: list[tuple[Place, dict[str, Any]]] = []
        self._looked = (0, 0)  # so many of the names have been looked for in so many of the objects
        self._identities: set[int] = set()

    def note(self, place: Place, thing: Any) -> None:
        """Take note of whatever lies at a place."""
        kind = type(thing)
        if kind in self._usual:  # the nodes and parameters of a model are many
            return
        if isinstance(thing, _FUNCTIONS):
            if not is_allowed(thing):
                self.note_function(place)
            elif kind is BuiltinFunctionType and thing.__module__ in _COMPUTING:
                self._has_builtins_anywhere |= not _note_name(place, self._builtins)
        elif is_foreign(kind):
            self._note_object(place, thing)
        elif isinstance(thing, (io.StringIO, io.BytesIO)):
            self.note_one(place, thing)
            self._names |= _OF_STREAMS
        elif is_user_kind(kind):
            self._usual.add(kind)
        elif not is_allowed(thing):
            self.note_function(place)

    def note_one(self, place: Place, thing: Any) -> None:
        """An object that is foreign, although others of its class are not."""
        self._identities.add(id(thing))
        self.note_function(place)

    @property
    def keeps(self) -> bool:
        """Whether the survey keeps what would be gone without it, because only weak references lead there."""
        return bool(self._identities) or any(package_of(kind) in _WEAK for kind in self.kinds)

    def note_function(self, place: Place) -> None:
        """A function or class that is not allowed."""
        self._everywhere |= not _note_name(place, self._functions)

    def _note_object(self, place: Place, thing: Any) -> None:
        kind = type(thing)
        if kind not in self.kinds:
            self.kinds[kind] = place
            self._names |= foreign_names(kind)
        own = raw_attributes(thing)
        if own is not None:
            self._own |= own.keys()
            self._objects.append((place, own))

    def attributes(self, names: Sequence[str]) -> list[tuple[Entry, Any]]:
        """What foreign objects keep under these names, as far as it has not been told before."""
        (old_names, old_objects), self._looked = self._looked, (len(names), len(self._objects))
        return [
            (Entry(own, name, f"{place.describe()}.{name}"), own[name])
            for number, (place, own) in enumerate(self._objects)
            for name in names[old_names if number < old_objects else 0 :]
            if name in own
        ]

    def outside(self, functions: Iterable[FunctionType], known: Iterable[Iterable[str]]) -> Outside:
        """What rewritten code has to look at.

        Args:
            functions: of the user's. known: the names that the user's classes, objects and modules have.
        """
        mentioned: set[str] = set()
        stored: set[str] = set()
        evaluates = False
        for function in functions:
            found = read(function.__code__)
            mentioned |= found.loaded_attributes
            stored |= found.stored_attributes
            if not EVALUATING.isdisjoint(found.names):
                evaluates = True
                mentioned |= {word for text in found.names for word in re.findall(r"\.\s*([A-Za-z_]\w*)", text)}
        unknown = mentioned - _KNOWN - stored
        unknown.difference_update(*known)
        leading = (self._names & (mentioned | stored)) | unknown
        own = self._own & (mentioned | stored)
        return Outside(
            frozenset(leading | own),
            frozenset(self._functions),
            bool(self.kinds),
            any(map(has_operators, self.kinds)),
            self._everywhere,
            frozenset(self._identities),
            evaluates and bool(unknown or self._names or self._functions or self.kinds or self._everywhere),
            frozenset(own - leading - self._functions),
            frozenset(self._builtins),
            self._has_builtins_anywhere,
        )


def _note_name(place: Place, names: set[str]) -> bool:
    """Add the name of a place, if it is a variable or an attribute; returns whether it is."""
    is_named = isinstance(place, (Variable, Attribute, ClassAttribute)) or (
        isinstance(place, Entry) and place.parent is None
    )
    if is_named and isinstance(place.name, str):
        names.add(place.name)
        return True
    return False


def names_of(survey: Survey, modules: Iterable[ModuleType]) -> Iterator[Iterable[str]]:
    """The names that classes, objects, functions and modules of the user's have."""
    for kind in survey.classes:
        yield from map(entries, kind.__mro__)
        yield [slot.name for slot in slots_of(kind)]
    for group in survey.groups.values():
        yield raw_attributes(group.things[0]) or ()
    yield from map(vars, survey.functions_with_attributes())
    yield from map(vars, modules)
    if any("__getattr__" in entries(base) for kind in survey.classes for base in kind.__mro__):
        for _, thing, _, _ in survey.containers():  # in which such a method finds what it answers
            yield [key for key in thing if type(key) is str] if isinstance(thing, dict) else ()
