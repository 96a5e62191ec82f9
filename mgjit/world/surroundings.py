"""Everything around a step that its code can reach, as it was when the step was traced.

A compiled call uses the objects, elements and functions of the trace.  So all of them are noted (world/facts.py): the
elements of lists and dicts, attributes, methods and other attributes of classes, names in modules, defaults and code of
functions, contents of buffers.

1. Read the code of the step and of the functions that it names, for the names that matter; functions are found by
   names, so this is repeated until there are no new ones.  Of long containers a few elements of each type are enough.
2. Walk once more over everything, and note it.  Of objects and modules, the names that the code mentions count; of
   containers all that is in them.  Libraries are not walked into.
3. What belongs to data is compared at each call where there is little of it.  Everything else, such as methods and long
   lists of parameters, takes longer to compare than a step to run: it is compared at each call at first, and then so
   often that it takes a small part of the time.  What is noticed late is said in a warning.  Where calls follow each
   other so quickly that to look at the clock would take a good part of their time, they are counted in between.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
import warnings
import weakref
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, Mapping, ValuesView
from contextvars import ContextVar
from time import perf_counter
from types import BuiltinFunctionType, CellType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from ..engine.nn import Module
from ..engine.state import State
from ..engine.value import Value
from ..errors import RetraceWarning, user_stacklevel
from ..record.progress import tracing_threads
from .code import codes, global_names
from .facts import MISSING, Column, Facts
from .functions import samples
from .ownership import is_of_user

#: What cannot lead anywhere.
_ATOMS = frozenset({int, float, bool, str, bytes, complex, type(None), range, slice, type(Ellipsis)})
#: Functions with which code reaches attributes that it does not name.
_COMPUTED = frozenset({"getattr", "setattr", "vars", "__dict__", "attrgetter", "asdict", "astuple", "__getattribute__"})
#: Functions with which code reaches variables that it does not name.
_SEARCHING = frozenset({"globals", "eval", "exec"})
#: Classes of Python's own whose objects are bags of attributes.
_BAGS = frozenset({("types", "SimpleNamespace"), ("argparse", "Namespace"), ("_thread", "_local")})
#: What has elements besides attributes.
_CONTAINERS = (list, deque, set, frozenset, tuple, Mapping, ContextVar, weakref.ref, array, bytearray)
#: So much data is compared at each call.
_FEW = 12
#: So many seconds may be spent with comparing the rest at each call, or so many calls; then, there is a pause after it
#: that is so many times as long as it took.
_FIRST_SECONDS = 0.02
_FIRST_CALLS = 1000
_PAUSE = 20.0
#: Where calls follow each other within so many seconds, so many need not look at the clock after one that has.
_QUICK_SECONDS = 10e-6
_COUNTED = 15


class Surroundings:
    """What is around a step.

    Args:
        function: the step.
        objects: arguments that are not inputs.
    """

    def __init__(self, function: Any, objects: Iterable[Any]) -> None:
        self._roots = [("the step", function), *(("an argument", thing) for thing in objects)]
        self._names: set[Any] = {"__call__"}
        self._notes = False
        #: Of a walk: identities of what has been met, what must live on so that none is used again, and objects that
        #: are still to be looked at, with their paths, by class.
        self._seen: set[int] = set()
        self._kept: list[Any] = []
        self._groups: dict[type, tuple[list[Any], list[Any]]] = {}
        self._object_kinds: dict[type, bool] = {}
        self._data, self._code = Facts(self._names), Facts(self._names)
        known = -1
        while len(self._names) != known:
            known = len(self._names)
            self._walk()
        self._notes = True
        self._walk()
        self._data.all_names = self._all_names
        self._has_little = False
        self._spent, self._compared, self._next, self._skipped = 0.0, 0, 0.0, False
        self._looked, self._counted = 0.0, 0
        #: So many of the counted calls are still to come: they need not look at the clock.
        self._left = CellType(0)

    def settle(self, places: Collection[tuple[int, Any]], grown: Collection[int]) -> None:
        """After the trace.

        Args:
            places: what lies there is looked after elsewhere.
            grown: identities of containers to which the step adds elements, only while it is traced.
        """
        self._data.forget(places)
        self._data.settle(grown)
        self._code.forget(places)
        self._code.settle(())
        self._has_little = self._data.count() <= _FEW

    # ---- 3: comparing -------------------------------------------------------------------------------

    def look_at_everything(self) -> None:
        """Let the next comparison include what is otherwise compared from time to time."""
        self._next = 0.0

    def conditions(
        self, name_of: Callable[[Any], str], variable_of: Callable[[Any], str], compared: Collection[int]
    ) -> list[str]:
        """Python expressions that all hold, and raise nothing, only if there is no difference.

        Args:
            name_of: makes a name by which the expressions can refer to an object.
            variable_of: makes the name of a variable that lives in a cell.
            compared: identities of lists that are compared elsewhere.
        """
        left = variable_of(self._left)
        return [
            *(self._data.conditions(name_of, compared) if self._has_little else []),
            f"(({left} := {left} - 1) >= 0 or {name_of(self._seem_same)}())",
        ]

    def _seem_same(self) -> bool:
        """Whether there is no difference in what is not compared at each call, as far as it is time to look."""
        now = perf_counter()
        left = self._left
        if now < self._next:
            calls = self._counted - left.cell_contents or 1
            is_quick = now - self._looked < _QUICK_SECONDS * calls
            self._counted = left.cell_contents = _COUNTED if is_quick else 0
            self._looked, self._skipped = now, True
            return True
        self._counted = left.cell_contents = 0
        if tracing_threads:  # code is exchanged at the moment
            self._skipped = True
            return True
        if not (self._code.hold() and (self._has_little or self._data.hold())):
            return False
        self._looked = then = perf_counter()
        self._spent += then - now
        self._compared += 1
        if self._spent > _FIRST_SECONDS or self._compared > _FIRST_CALLS:
            self._next = then + _PAUSE * (then - now)
        self._skipped = False
        return True

    def difference(self) -> str:
        """The first difference in words; empty when there is none, or it is not time to look."""
        if self._has_little:
            found = self._data.difference()
            if found:
                return found
        if self._seem_same():
            return ""
        found = self._code.difference() or self._data.difference()
        if found and self._skipped:
            warnings.warn(
                f"{found}. Calls shortly before this one have not noticed, because to compare all that the step "
                "captures takes longer than to run it: call step.clear() after such a change.",
                RetraceWarning,
                stacklevel=user_stacklevel(),
            )
        return found

    @property
    def changed(self) -> Any:
        """The list of numbers that was found to have changed, if that was the difference."""
        return self._data.changed

    # ---- 1 and 2: the walk --------------------------------------------------------------------------

    def _walk(self) -> None:
        self._all_names = not _COMPUTED.isdisjoint(self._names)
        self._seen, self._kept, self._groups = set(), [], {}
        pending = [(thing, path) for path, thing in self._roots]
        while pending or self._groups:
            if not pending:
                known, (things, paths) = self._groups.popitem()
                pending += self._objects(known, things, paths)
                continue
            thing, path = pending.pop()
            kind: Any = type(thing)
            if _leads_nowhere(kind) or id(thing) in self._seen:
                continue
            self._seen.add(id(thing))
            if self._is_object(kind):
                things, paths = self._groups.setdefault(kind, ([], []))
                things.append(thing)
                paths.append(path)
            else:
                self._kept.append(thing)
                pending += self._inside(thing, kind, path)
        self._seen, self._kept, self._groups = set(), [], {}

    def _is_object(self, kind: Any) -> bool:
        """Whether objects of a class are bags of attributes: those of one class are looked at together."""
        known = self._object_kinds.get(kind)
        if known is None:
            known = self._object_kinds[kind] = (
                kind not in _READERS
                and not issubclass(kind, (type, ModuleType))
                and (issubclass(kind, Module) or is_of_user(kind) or (kind.__module__, kind.__name__) in _BAGS)
            )
        return known

    def _inside(self, thing: Any, kind: type, path: Any) -> Iterator[tuple[Any, Any]]:
        """What a thing leads to, after it has been noted."""
        reader = _READERS.get(kind)
        if reader is not None:
            yield from reader(self, thing, path)
        elif isinstance(thing, type):
            yield from self._class(thing, path)
        elif isinstance(thing, ModuleType):
            yield from self._named(vars(thing), path, self._code)
        elif hasattr(thing, "_function"):
            yield thing._function, path  # a compiled step that is called inside of this one
            yield from self._named(vars(thing), path, self._data)
        elif hasattr(thing, "__wrapped__"):
            yield thing.__wrapped__, path
        else:
            yield from self._contents(thing, path)

    def _objects(self, kind: type, things: list[Any], paths: list[Any]) -> Iterator[tuple[Any, Any]]:
        """What objects of one class lead to, after their attributes have been noted."""
        self._kept.append(things)
        yield kind, kind.__name__
        if self._notes:
            self._data.classes_of(things, kind)
        if issubclass(kind, _CONTAINERS):
            for thing, path in zip(things, paths):
                yield from self._contents(thing, path)
        if hasattr(things[0], "__dict__"):
            spaces = list(map(vars, things))
            for name in dict.fromkeys(itertools.chain.from_iterable(map(list, spaces))):
                yield from self._attribute(spaces, operator.itemgetter(name), name, paths)
            if self._notes:
                self._data.keys(spaces, paths)
        for name, read in _slots(kind):
            yield from self._attribute(things, read, name, paths)

    def _attribute(self, holders: list[Any], read: Any, name: Any, paths: list[Any]) -> Iterator[tuple[Any, Any]]:
        """One attribute of objects, if the code mentions it."""
        if not self._all_names and name not in self._names:
            return
        column = Column(holders, read, name, paths)
        if self._notes:
            self._data.column(column)
        contents = column.noted
        if not all(map(_leads_nowhere, set(map(type, contents)))):
            for index in dict(zip(map(id, contents), itertools.count())).values():
                if contents[index] is not MISSING:
                    yield contents[index], column.path(index)

    def _function(self, function: FunctionType, path: Any) -> Iterator[tuple[Any, Any]]:
        if hasattr(function, "__wrapped__"):
            yield function.__wrapped__, path
        if not is_of_user(function) and function.__module__ != Module.__module__:
            return
        for code in codes(function.__code__):
            self._names.update(code.co_names)
            self._names.update(constant for constant in code.co_consts if isinstance(constant, str))
        if self._notes:
            self._code.parts(function, functools.partial(_of_function, function), (path, "'s code and defaults"))
        namespace = function.__globals__
        if not _SEARCHING.isdisjoint(self._names):
            words = {word for text in self._names if isinstance(text, str) for word in re.findall(r"\w+", text)}
            for name in sorted(words & namespace.keys()):
                if self._notes:
                    self._data.entry(namespace, name, name)
                yield namespace[name], name
        for name in global_names(function.__code__):
            yield self._global(namespace, name), name
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            yield _content(cell), name
        yield from ((default, (path, "'s default")) for default in function.__defaults__ or ())
        yield function.__kwdefaults__, (path, "'s defaults")
        yield from self._named(function.__dict__, path, self._data, is_function=True)

    def _global(self, namespace: dict[str, Any], name: str) -> Any:
        """What a global name means.  Variables of other kinds are compared at each call (world/guard.py)."""
        meant = namespace.get(name, MISSING)
        if self._notes and (meant is MISSING or isinstance(meant, (ModuleType, BuiltinFunctionType))):
            self._code.entry(namespace, name, name)
        if meant is MISSING:
            builtin = namespace.get("__builtins__")
            builtin = vars(builtin) if isinstance(builtin, ModuleType) else builtin
            if self._notes and isinstance(builtin, dict) and name in builtin:
                self._code.entry(builtin, name, name)
        return None if meant is MISSING else meant

    def _class(self, thing: type, path: Any) -> Iterator[tuple[Any, Any]]:
        for base in thing.__mro__:
            if is_of_user(base) or issubclass(base, Module):
                yield from self._named(vars(base), path, self._code, base)
        yield type(thing), path

    def _named(
        self, namespace: Any, path: Any, facts: Facts, holder: Any = None, is_function: bool = False
    ) -> Iterator[tuple[Any, Any]]:
        """The names in a namespace that the code mentions."""
        for name in list(namespace):
            if name in self._names or (self._all_names and facts is self._data) or _is_operator(namespace, name):
                inner = (path, f".{name}")
                if self._notes:
                    facts.entry(namespace, name, inner, holder)
                yield namespace.get(name), inner
        if self._notes and not is_function:
            facts.keys([namespace], [path])

    def _contents(self, thing: Any, path: Any) -> Iterator[tuple[Any, Any]]:
        """Of containers, also of libraries and of classes derived from Python's own."""
        if isinstance(thing, (list, deque)):
            yield from self._list(thing, path)
        elif isinstance(thing, (set, frozenset, tuple)):
            yield from self._set(thing, path)
        elif isinstance(thing, Mapping):
            yield from self._mapping(thing, path)
        elif isinstance(thing, (ValuesView, ItemsView)):
            yield from self._elements(list(thing), path)
            if self._notes:
                self._data.parts(thing, functools.partial(_listed, thing), path)
        elif isinstance(thing, ContextVar) and self._notes:
            self._data.answer(functools.partial(thing.get, None), path)
        elif isinstance(thing, (operator.attrgetter, operator.methodcaller)):
            self._names.update(re.findall(r"\w+", repr(thing)))  # of PyPy, they have no other
        elif isinstance(thing, weakref.ref):
            yield thing(), path
        elif self._notes and _is_buffer(thing):
            self._data.answer(functools.partial(_checksum, thing), path)

    def _list(self, thing: Any, path: Any) -> Iterator[tuple[Any, Any]]:
        kinds = set(map(type, thing))
        if self._notes:
            if type(thing) is list and all(getattr(kind, "__eq__", None) is object.__eq__ for kind in kinds):
                self._data.row(thing, path)
            else:
                self._data.parts(thing, functools.partial(_listed, thing), path)
        if not all(map(_leads_nowhere, kinds)) and not (self._notes and self._is_group(thing, kinds, path)):
            yield from self._elements(thing, path)

    def _is_group(self, thing: Any, kinds: set[Any], path: Any) -> bool:
        """Whether all elements are objects of one class that have not been met before; they are put into its group."""
        kind = kinds.pop()
        if kinds or not self._is_object(kind):
            return False
        identities = set(map(id, thing))
        if len(identities) < len(thing) or not identities.isdisjoint(self._seen):
            return False
        self._seen |= identities
        things, paths = self._groups.setdefault(kind, ([], []))
        things += thing
        paths += zip(itertools.repeat(path), range(len(thing)))
        return True

    def _elements(self, thing: Any, path: Any) -> Iterator[tuple[Any, Any]]:
        if self._notes:
            yield from ((part, (path, index)) for index, part in enumerate(thing))
        else:
            yield from ((part, path) for part in samples(thing))

    def _set(self, thing: Any, path: Any) -> Iterator[tuple[Any, Any]]:
        if self._notes and isinstance(thing, set):
            self._data.parts(thing, functools.partial(_listed, thing), path)
        yield from self._elements(thing, path)

    def _mapping(self, thing: Any, path: Any) -> Iterator[tuple[Any, Any]]:
        if self._notes:
            self._data.parts(thing, functools.partial(_entries, thing), path)
            yield from ((thing[name], (path, f"[{name!r}]")) for name in list(thing))
        else:
            yield from ((part, path) for part in samples(list(thing.values())))

    def _method(self, thing: Any, path: Any) -> Iterator[tuple[Any, Any]]:
        yield thing.__self__, (path, "'s object")
        yield getattr(thing, "__func__", None), path

    def _partial(self, thing: Any, path: Any) -> Iterator[tuple[Any, Any]]:
        yield from ((part, path) for part in (thing.func, thing.args, thing.keywords))

    def _descriptor(self, thing: Any, path: Any) -> Iterator[tuple[Any, Any]]:
        for name in ("fget", "fset", "fdel", "__func__", "func"):
            yield getattr(thing, name, None), path


_READERS: dict[type, Any] = {
    FunctionType: Surroundings._function,
    MethodType: Surroundings._method,
    BuiltinFunctionType: Surroundings._method,
    type([].__len__): Surroundings._method,
    functools.partial: Surroundings._partial,
    property: Surroundings._descriptor,
    staticmethod: Surroundings._descriptor,
    classmethod: Surroundings._descriptor,
    functools.cached_property: Surroundings._descriptor,
    list: Surroundings._list,
    dict: Surroundings._mapping,
    tuple: Surroundings._set,
}


@functools.lru_cache(maxsize=1024)
def _leads_nowhere(kind: Any) -> bool:
    return kind in _ATOMS or issubclass(kind, (Value, State))


def _is_operator(namespace: Any, name: Any) -> bool:
    """Whether a name is that of a method which code calls without naming it."""
    is_special = isinstance(name, str) and name.startswith("__") and name.endswith("__")
    return is_special and isinstance(namespace.get(name), FunctionType)


@functools.lru_cache(maxsize=256)
def _slots(kind: type) -> list[tuple[str, Callable[[Any], Any]]]:
    """The slots of the objects of a class, with what reads each."""
    found = {
        name: member.__get__
        for base in reversed(kind.__mro__)
        for name, member in vars(base).items()
        if isinstance(member, MemberDescriptorType)
    }
    return list(found.items())


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _listed(container: Iterable[Any]) -> list[Any]:
    return list(container)


def _of_function(function: FunctionType) -> list[Any]:
    # The tuple and dict around the defaults may be made anew whenever they are asked for.
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return [function.__code__, *defaults]


def _entries(mapping: Mapping[Any, Any]) -> list[Any]:
    return [*mapping.keys(), *mapping.values()]


def _is_buffer(thing: Any) -> bool:
    if isinstance(thing, (array, bytearray, memoryview)):
        return True
    return type(thing).__module__ == "numpy" and type(thing).__name__ == "ndarray"


def _checksum(thing: Any) -> int:
    """Tells contents of buffers apart, which may be long."""
    try:
        return zlib.crc32(thing)
    except (BufferError, TypeError, ValueError):  # not contiguous, or of objects
        return zlib.crc32(thing.tobytes())
