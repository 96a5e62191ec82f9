"""What surrounds a step, compared with what it was when the step was traced.

A compiled call works on the objects, functions and numbers of the trace.  Everything that the survey has met and that
is no memory of the kernel's is noted (facts.py):

1. At each call: variables, and data of which there is little, such as numbers in single objects and short lists.
2. Now and then: what takes longer to compare than a step takes to run, such as methods, modules and long lists of
   parameters.  It is compared at the first calls, which are few where there is much of it; then there is a pause after
   each comparison that is fifty times as long.  The guards of a step, one for each of its kernels, keep these pauses
   together, so that steps whose lengths take turns spend no more on it, and each has its turn.  What is noticed late is
   said in a warning.  Where calls follow each other so quickly that to look at the clock would take a good part of
   their time, they are counted in between.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
import warnings
import zlib
from abc import ABCMeta, get_cache_token
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence, Sized
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from time import perf_counter
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakSet

from ...base.ffi import PYPY
from ...base.lookup import entries
from ...engine.numeric import is_number
from ...engine.progress import tracing_threads
from ...errors import RetraceWarning, user_stacklevel
from ...memory.live import deletions, raw_attributes
from ...nn.scalar import Neuron
from ...tensor.memory import LeavesAsBefore, Memory, NumbersOf
from .before import Group
from .code import asked_for, import_names, read, searched
from .facts import Column, Facts, describe_difference, is_equal
from .places import Entry, Place, Variable
from .roles import LONGEST_LIST
from .shapes import MISSING, cell_content, shape_of
from .survey import Survey

#: Groups of fewer objects are data of which there is little.
_FEW_OBJECTS = 16
#: A short list of these, or an empty one, is for hooks, which come and go; layers and parameters stay.
_FUNCTIONS = {FunctionType, MethodType, BuiltinFunctionType}
#: What such things refer to can never be something else; methods of Python, of C and of slots have one shape.
_FIXED = [shape_of(tuple), shape_of(MethodType)]
#: So much data besides variables is compared at each call; variables of functions and classes count only beyond.
_FEW = 24
_MANY_VARIABLES = 64
#: The rest is compared at so many calls after the trace, or for so many seconds in all guards of a step; where there
#: is so much of it that this takes longer than many steps, only at so few calls.  Then, there is a pause after a
#: comparison that is so many times as long as it took.  PyPy needs ten times as long until it has translated what
#: compares.
_FIRST_CALLS, _FIRST_SECONDS = 1000, 0.1 if PYPY else 0.02
_MUCH, _FEW_CALLS = 300, 3
_PAUSE = 50.0
#: Where calls follow each other within so many seconds, so many need not look at the clock after one that has.
QUICK_SECONDS = 10e-6
COUNTED = 15
#: Places in `Guard.times`.
_NEXT, _SKIPPED = 0, 1


class Pace:
    """When the guards of one step may compare what takes long.

    Attributes:
        guards: of all its kernels.
        next: when the pause after the last comparison of any of them is over; one number.
        first_seconds: what the first calls may still take to compare.
    """

    def __init__(self) -> None:
        self.guards: WeakSet[Guard] = WeakSet()
        self.first_seconds = _FIRST_SECONDS
        self.next = array("d", [0.0])


class Guard:
    """Whether what surrounds a step is what it was.

    Args:
        survey: of the step; everything is as it was then.
        looked_after: (identity of the holder, name) of the places that are memory of the kernel, or copied; the name is
            None for all elements of a list.
        pace: of the step.
        replaced: (identity of a list, index) of the elements in whose place the step puts others.

    Attributes:
        times: when the rest is next compared, 0.0 for at once, and whether there have been calls without it: 1.0 or
            0.0.  Quick calls read and write here and in `pace.next` (runtime/vectorcall_source.py).
    """

    def __init__(
        self,
        survey: Survey,
        looked_after: Collection[tuple[int, Any]] = (),
        pace: Pace | None = None,
        replaced: Iterable[tuple[int, int]] = (),
    ) -> None:
        names: Any = survey.names
        self._often, self._rarely = Facts(names), Facts(names)
        self._often.all_names = self._rarely.all_names = survey.all_names
        self._places: list[tuple[Place, Any]] = []
        self._others: list[Callable[[], str]] = []
        self._looked_after = looked_after
        self._replaced: dict[int, set[int]] = defaultdict(set)
        for holder, index in replaced:
            self._replaced[holder].add(index)
        #: Whether the step cannot be used again as it was traced.
        self.expired = False
        self.pace = Pace() if pace is None else pace
        self.pace.guards.add(self)
        self.times = array("d", [0.0, 0.0])
        #: Whether the next comparison is not for the sake of the call.
        self._at_once = False
        #: What the last comparison took; and first calls that are still to come.
        self._seconds, self._first_calls = math.inf, _FIRST_CALLS
        self._looked, self._counted = 0.0, 0
        #: So many of the counted calls are still to come: they need not look at the clock.
        self._left = CellType(0)
        self._note_variables(survey)
        self._note_objects(survey)
        self._note_containers(survey)
        self._note_code(survey)
        self._is_much = self._rarely.size() > _MUCH
        if self._is_much:
            self._first_calls = min(_FEW_CALLS, _FIRST_CALLS)

    def seconds_at_first(self) -> float:
        """How long each of the first calls compares for; 0.0 after these."""
        return self._seconds if self._first_calls > 0 and (self._is_much or self.pace.first_seconds > 0.0) else 0.0

    def watch(self, places: Iterable[tuple[Place, Any]]) -> None:
        """Watch these as well, given with what lies there."""
        self._places += places

    def watch_forms(self, places: Iterable[Place]) -> None:
        """Watch whether numbers, or lists of as many, still lie at places, whichever numbers these are."""
        for place in places:
            self._often.answer(functools.partial(_form_at, place), place.describe())

    def watch_leaves(self, memories: Sequence[Memory]) -> None:
        """Watch whether tensors in these memories require gradients."""
        if memories:
            self._often.answer(LeavesAsBefore(memories), "requires_grad of a tensor")

    def watch_numbers(self, memories: Sequence[Memory]) -> None:
        """Watch whether anything is assigned to elements of tensors in these memories."""
        if memories:
            self._often.answer(NumbersOf(memories), "tensor of whole numbers")

    def ask(self, difference: Callable[[], str]) -> None:
        """Also ask this, which looks at something in each call of its own accord, for a difference in words."""
        self._others.append(difference)

    # ---- what is noted ----------------------------------------------------------------------------------------

    def _note_variables(self, survey: Survey) -> None:
        many = len(survey.variables) > _MANY_VARIABLES
        step = survey.functions[:1]
        own = {id(step[0].__globals__), *map(id, step[0].__closure__ or ())} if step else set()
        for place, content in survey.variables.values():
            if place.key in self._looked_after:
                continue
            is_code = isinstance(content, (ModuleType, BuiltinFunctionType, MethodType)) or (
                (many or place.key[0] not in own) and isinstance(content, (FunctionType, type))
            )
            facts = self._rarely if is_code else self._often
            if isinstance(place, Variable):
                facts.cell(place.holder, content, place.name)
            elif isinstance(place, Entry):
                facts.entry(place.holder, place.name, _short(place))
        for function in survey.functions:
            self._note_missing(function, survey)

    def _note_missing(self, function: FunctionType, survey: Survey) -> None:
        """Names that mean something of Python's own, a module, or nothing yet."""
        namespace = function.__globals__
        for name in read(function.__code__).variables:
            meant = namespace.get(name, MISSING)
            if meant is MISSING:
                self._rarely.entry(namespace, name, name)
                builtin = namespace.get("__builtins__")
                builtin = vars(builtin) if isinstance(builtin, ModuleType) else builtin
                if isinstance(builtin, dict) and name in builtin:
                    self._rarely.entry(builtin, name, name)
            elif isinstance(meant, ModuleType):
                self._rarely.entry(namespace, name, name)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if cell_content(cell) is MISSING:
                self._rarely.cell(cell, MISSING, name)

    def _note_objects(self, survey: Survey) -> None:
        self._rarely.answer(deletions, "deleted attributes")
        for group in survey.groups.values():
            is_ours = group.kind.__module__ == Neuron.__module__  # whose layers nobody changes number by number
            self._note_group(group, len(group.things) < _FEW_OBJECTS and not is_ours, survey)
            self._rarely.classes_of(group.things, group.kind)

    def _note_group(self, group: Group, is_single: bool, survey: Survey) -> None:
        every = survey.all_names or not group.is_user()
        paths = group.places
        for slot, contents in group.slots:
            if every or slot.name in survey.names:
                self._column(is_single, Column(group.things, slot.read, slot.name, paths, group.kind, contents))
        owners = [(own, path) for own, path in zip(map(raw_attributes, group.things), paths) if own is not None]
        spaces, paths = [own for own, _ in owners], [path for _, path in owners]
        for name in dict.fromkeys(name for own in spaces for name in own):
            if every or name in survey.names:
                column = Column(spaces, itemgetter(name), name, paths, group.kind)
                self._column(is_single, column, always=name in getattr(group.kind, "compared_at_each_call", ()))
        if spaces:
            self._rarely.keys(spaces, paths)
            if is_single:
                self._note_hidden_data(group.kind, spaces, paths, survey)
            # `thing.__dict__ = other`; and each thread has its own dict of a threading.local.
            often = issubclass(group.kind, threading.local)
            things = [thing for thing, own in zip(group.things, map(raw_attributes, group.things)) if own is not None]
            dicts = Column(things, raw_attributes, "__dict__", paths, group.kind, spaces)
            (self._often if often else self._rarely).column(dicts)

    def _note_hidden_data(self, kind: type, spaces: list[Any], paths: list[Any], survey: Survey) -> None:
        """Data in a class that an attribute of an object would hide."""
        data = {name for base in kind.__mro__ for name, member in entries(base).items() if _is_data(member)}
        for name in sorted(data & set(survey.names)):
            for own, path in zip(spaces, paths):
                if name not in own and self._has_room():
                    self._often.entry(own, name, (path, f".{name}"), own)

    def _column(self, is_single: bool, column: Column, always: bool = False) -> None:
        if column.without(self._looked_after):
            often = always or (is_single and self._has_room() and all(map(_is_data, column.noted)))
            (self._often if often else self._rarely).column(column)

    def _note_containers(self, survey: Survey) -> None:
        for shape, thing, copied, place in survey.containers():
            kind, path = type(thing), place
            if issubclass(kind, defaultdict) and "default_factory" in survey.names:
                self._rarely.parts(thing, functools.partial(_factory, thing), path)
            if (id(thing), None) in self._looked_after:
                self._rarely.answer(thing.__len__, (path, "'s length"))
            elif kind in (list, tuple) and copied and len(copied) <= LONGEST_LIST and all(map(is_number, copied)):
                (self._often if self._has_room() else self._rarely).numbers(thing, path)
            elif issubclass(kind, dict) and (known := self._names_in(thing)):
                self._facts_of(copied).parts(thing, functools.partial(_others, thing, known), path)
            elif kind is list and id(thing) in self._replaced:
                others = functools.partial(_others_of_list, thing, self._replaced[id(thing)])
                self._facts_of(copied).parts(others, others, path)
            elif kind is list and all(map(_is_told_by_identity, survey.kinds[id(thing)])):
                is_short = len(copied) < _FEW_OBJECTS and survey.kinds[id(thing)] <= _FUNCTIONS
                (self._often if is_short and self._has_room() else self._rarely).row(thing, path)
            elif shape in _FIXED or (not copied and shape.restore is None):
                continue
            else:
                self._facts_of(copied).parts(thing, functools.partial(_parts, shape.copy, thing), path)
        for thing, place in survey.buffers:
            self._rarely.answer(functools.partial(_checksum, thing), place)

    def _facts_of(self, parts: Sized) -> Facts:
        """The facts to which the parts of a container belong."""
        return self._often if len(parts) < _FEW_OBJECTS and self._has_room() else self._rarely

    def _names_in(self, thing: Any) -> set[Any]:
        """The names of the entries of a dict that are not watched."""
        return {name for holder, name in self._looked_after if holder == id(thing)}

    def _note_code(self, survey: Survey) -> None:
        for function in survey.functions:
            path = f"{function.__name__}'s code and defaults"
            self._rarely.parts(function, functools.partial(_of_function, function), path)
            for name in searched(function):
                if (id(function.__globals__), name) not in self._looked_after:
                    self._rarely.entry(function.__globals__, name, name)
            for name, _ in import_names(function):
                if name in sys.modules:
                    self._rarely.entry(sys.modules, name, f"sys.modules[{name!r}]")
        asked = set().union(*map(asked_for, survey.functions))
        for module, name, is_of_user in survey.modules():
            if is_of_user:
                self._rarely.keys([vars(module)], [name])
            for missing in asked - vars(module).keys():
                self._rarely.entry(vars(module), missing, f"{name}.{missing}")
        named = (content for _, content in survey.variables.values())
        if any(isinstance(kind, ABCMeta) for kind in chain(survey.classes, named)):
            self._rarely.answer(get_cache_token, "what is registered with abstract base classes")
        for kind, members in survey.classes.items():
            self._rarely.parts(kind, functools.partial(_bases, kind), f"{kind.__name__}.__bases__")
            for name, member in members.items():
                if (id(kind), name) not in self._looked_after:
                    facts = self._often if _is_data(member) and self._has_room() else self._rarely
                    facts.entry(vars(kind), name, f"{kind.__name__}.{name}", kind)
            self._rarely.keys([vars(kind)], [kind.__name__])
        for function in survey.functions_with_attributes():
            for name in vars(function):
                if (id(vars(function)), name) not in self._looked_after:
                    self._often.entry(vars(function), name, f"{function.__name__}.{name}")
            self._rarely.keys([vars(function)], [function.__name__])

    def _has_room(self) -> bool:
        return self._often.count() - self._often.variables < _FEW

    # ---- comparing --------------------------------------------------------------------------------------------

    def difference(self) -> str:
        """The first captured thing that is not what it was, in words; empty when there is none, or it is not time."""
        if self.expired:
            return "numbers that were None or ints before the first call are floats now"
        found = self._often.difference()
        if found:
            self._warn_if_late(self._rarely.difference() if self.times[_SKIPPED] else "")
            return found
        for place, meant in self._places:
            now = _lying_at(place)
            if now is not meant and not is_equal(now, meant):
                return describe_difference(place.describe(), meant, now)
        return next(filter(None, (difference() for difference in self._others)), "") or self._rare_difference()

    def _rare_difference(self) -> str:
        if self._seem_same():
            return ""
        started = perf_counter()
        found = self._rarely.difference()
        if not found:  # numbers have been replaced by equal ones
            self._note_comparison(started)
        else:
            self._warn_if_late(found)
        return found

    def _warn_if_late(self, found: str) -> None:
        """Say so if a difference in what is not compared at each call may have been there before this call."""
        if found and self.times[_SKIPPED]:
            warnings.warn(
                f"{found}. Calls shortly before this one have not noticed, because to compare all that the step "
                "captures takes longer than to run it: call step.clear() after such a change.",
                RetraceWarning,
                stacklevel=user_stacklevel(),
            )

    def changed_numbers(self) -> list[Any]:
        """Keys of the numbers that are not what they were: in the next trace they are no constants."""
        return [*self._often.changed_numbers(), *self._rarely.changed_numbers()]

    def may_watch(self, place: Place, is_list: bool) -> bool:
        """Whether a number, or a list of them, at a place may be a constant of the trace."""
        holder, name = place.key
        if is_list:
            with suppress(AttributeError, LookupError, ValueError):
                if (id(place.read()), None) not in self._looked_after:
                    return True
        return (holder, name) not in self._looked_after and (holder, None) not in self._looked_after

    def holds(self) -> bool:
        """Whether everything is what it was, also what is otherwise compared from time to time."""
        self.look_at_everything()
        self.times[_SKIPPED] = 0.0  # nothing is noticed late, because this is asked of other contents than calls had
        return not self.difference()

    def look_at_everything(self) -> None:
        """Let the next comparison include what is otherwise compared from time to time."""
        self._at_once = True
        self.times[_NEXT] = 0.0
        self._left.cell_contents = 0

    def _seem_same(self) -> bool:
        """Whether there is no difference in what is not compared at each call, as far as it is time to look."""
        now = perf_counter()
        left = self._left
        next_one = max(self.times[_NEXT], self.pace.next[0]) if self.times[_NEXT] else 0.0
        if now < next_one:
            calls = self._counted - left.cell_contents or 1
            is_quick = now - self._looked < QUICK_SECONDS * calls
            self._counted = left.cell_contents = COUNTED if is_quick else 0
            self._looked, self.times[_SKIPPED] = now, 1.0
            return True
        self._counted = left.cell_contents = 0
        if any(thread > 0 for thread in list(tracing_threads)):  # code is exchanged at the moment
            self.times[_SKIPPED] = 1.0
            return True
        if not self._rarely.hold():
            return False
        self._note_comparison(now)
        return True

    def _note_comparison(self, started: float) -> None:
        """All is as it was, which took from `started` until now to find out."""
        self._looked = now = perf_counter()
        # No more than twice what the last one took: this one may have been interrupted.
        self._seconds = min(now - started, 2.0 * self._seconds)
        if not self._at_once:  # which is not for this call's sake
            self._first_calls -= 1
            if not self._is_much:
                self.pace.first_seconds -= self._seconds
        if not self.seconds_at_first():
            pause = _PAUSE * self._seconds
            self.pace.next[0], self.times[_NEXT] = now + pause, now + pause * len(self.pace.guards)
        self._at_once, self.times[_SKIPPED] = False, 0.0

    def conditions(
        self,
        name_of: Callable[[Any], str],
        variable_of: Callable[[Any], str],
        namespace: dict[str, Any],
        hidden: Collection[str],
    ) -> list[str]:
        """Python expressions that all hold, and raise nothing, only if there is no difference.

        They compare by identity, so they may also fail when there is none.

        Args:
            name_of: makes a name by which the expressions can refer to an object.
            variable_of: makes the name of a variable that lives in a cell.
            namespace: of the global variables that the expressions can refer to, unless their names are `hidden`.
        """
        left = variable_of(self._left)
        found = [
            *self._often.conditions(name_of, variable_of, namespace, hidden),
            *(f"{place.expression(name_of)} is {name_of(meant)}" for place, meant in self._places),
            f"(({left} := {left} - 1) >= 0 or {name_of(self._seem_same)}())",
        ]
        return list(dict.fromkeys(found))


def _bases(kind: type) -> list[type]:
    return list(kind.__bases__)


def _is_data(content: Any) -> bool:
    return isinstance(content, (int, float, str, type(None)))


def _is_told_by_identity(kind: Any) -> bool:
    return kind.__eq__ is object.__eq__


def _short(place: Place) -> Any:
    """The path of a variable: its name."""
    text = place.describe()
    return text[len("the variable ") :] if text.startswith("the variable ") else text


def _form_at(place: Place) -> Any:
    """What can be told of what lies at a place without looking at numbers."""
    content = _lying_at(place)
    return "a number" if is_number(content) else (type(content), len(content) if type(content) is list else 0)


def _lying_at(place: Place) -> Any:
    try:
        return place.read()
    except (AttributeError, LookupError, ValueError):
        return MISSING


def _factory(thing: defaultdict[Any, Any]) -> list[Any]:
    return [thing.default_factory]


def _others(entries: dict[Any, Any], known: Collection[Any]) -> list[Any]:
    return [part for name, content in entries.items() for part in (name, None if name in known else content)]


def _others_of_list(elements: list[Any], known: Collection[Any]) -> list[Any]:
    return [None if k in known else part for k, part in enumerate(elements)]


def _parts(copy: Callable[[Any], Any], thing: Any) -> list[Any]:
    """The contents of a container in order, keys of a dict included."""
    parts = copy(thing)
    return [*parts, *parts.values()] if type(parts) is dict else list(parts)


def _of_function(function: FunctionType) -> list[Any]:
    # The tuple and dict around the defaults may be made anew whenever they are asked for.
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return [function.__code__, *defaults]


def _checksum(thing: Any) -> tuple[int, Any, str]:
    """Tells contents of buffers apart, which may be long, and their shapes."""
    shape, kind = getattr(thing, "shape", None), str(getattr(thing, "dtype", ""))
    try:
        return zlib.crc32(thing), shape, kind
    except (BufferError, TypeError, ValueError):  # not contiguous, or of objects
        return zlib.crc32(thing.tobytes()), shape, kind
