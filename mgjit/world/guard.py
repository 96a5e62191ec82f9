"""What a step captures from around it, checked before every call.

A traced step has the numbers it captured baked in, and works on the objects it captured.  A guard notes them
when the step is traced; when one has changed, the step is traced again.

1. Start from the step: its closure variables, the globals that its code names, the instance it is bound to,
   and the objects among its arguments that are not inputs.
2. Functions among them, and methods that the code names, are looked into as well.
3. Numbers are compared by value, other things by identity.  Of dicts, objects and classes the entries that
   the code names are noted in the same way, a few levels deep; of lists and tuples, numbers only.

These are what changes most often, and they are compared at each call.  Everything else that the step can reach is
noted by world/surroundings.py.
"""

from __future__ import annotations

import functools
import marshal
from collections.abc import Callable, Collection, Iterable, Iterator
from keyword import iskeyword
from operator import is_
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from ..runtime.ffi import PYPY
from .code import codes, global_names
from .facts import MISSING, describe_difference, is_equal
from .places import Place
from .surroundings import Surroundings

_COMPARED = (int, float, complex, str, bytes, bool, type(None))
#: Lists of more numbers than this are not watched: comparing them would take longer than most steps.  They are
#: copied in at each call (world/walk.py).
LONGEST_LIST = 1000
_DEPTH = 3
#: So many whole numbers of a list are looked at one by one.
_MOST_WHOLE = 16


class Guard:
    """The captured names of a step and what they meant.

    Args:
        function: the step.
        objects: arguments that are not inputs.
    """

    def __init__(self, function: Callable[..., Any], objects: Iterable[Any] = ()) -> None:
        self._namespaces: list[tuple[Any, Any, Any, str]] = []
        self._cells: list[tuple[Any, Any, Any, str]] = []
        self._lists: list[tuple[Any, bytes, str, list[Any]]] = []  # with the elements
        self._places: list[tuple[Place, Any]] = []
        self._others: list[Callable[[], str]] = []
        self._names: set[Any] = set()
        self._objects: list[Any] = []
        self._seen: set[int] = set()
        #: The class of a namespace that is one, by its identity.
        self._owners: dict[int, type] = {}
        #: The list of numbers that was found to have changed, if that was the difference.
        self.changed: Any = None
        #: Whether the step cannot be used again as it was traced.
        self.expired = False
        roots = [("the step", function), ("self", getattr(function, "__self__", None))]
        roots += [("an argument", thing) for thing in objects]
        if not isinstance(function, (FunctionType, MethodType)):
            self._names.add("__call__")
        self._read_functions([thing for _, thing in roots])
        for name, thing in roots:
            self._watch_inside(thing, name, 0)
        self._surroundings = Surroundings(function, objects)

    def watch(self, places: Iterable[tuple[Place, Any]]) -> None:
        """Watch these as well, given with what lies there."""
        self._places += places

    def ask(self, difference: Callable[[], str]) -> None:
        """Also ask this, which looks at something in each call of its own accord, for a difference in words."""
        self._others.append(difference)

    def settle(self, places: Collection[tuple[int, Any]], grown: Collection[int]) -> None:
        """After the trace.

        Args:
            places: what lies there need not be watched, given by the identity of what holds it and its name.
            grown: identities of containers to which the step adds elements, only while it is traced.
        """
        self._namespaces = [
            entry
            for entry in self._namespaces
            if (id(self._owners.get(id(entry[0]), entry[0])), entry[1]) not in places
        ]
        self._cells = [entry for entry in self._cells if (id(entry[0]), entry[1]) not in places]
        self._lists = [entry for entry in self._lists if (id(entry[0]), None) not in places]
        self._surroundings.settle(places, grown)

    def objects(self) -> list[Any]:
        """The captured objects."""
        return self._objects

    def difference(self) -> str:
        """The first captured thing that is not what it was, in words; empty when there is none."""
        if self.expired:
            return "numbers that were None or ints before the first call are floats now"
        for namespace, name, meant, path in self._namespaces:
            now = namespace.get(name, MISSING)
            if now is not meant and not is_equal(now, meant):
                return describe_difference(path, meant, now)
        for cell, _, meant, path in self._cells:
            now = _content(cell)
            if now is not meant and not is_equal(now, meant):
                return describe_difference(path, meant, now)
        for place, meant in self._places:
            now = _lying_at(place)
            if now is not meant and not is_equal(now, meant):
                return describe_difference(place.describe(), meant, now)
        for numbers, meant, path, _ in self._lists:
            if _contents(numbers) != meant:
                self.changed = numbers
                return f"the numbers in the captured {path} have changed (pass them as an argument)"
        found = next(filter(None, (difference() for difference in self._others)), "")
        if not found:
            found = self._surroundings.difference()
            self.changed = self._surroundings.changed
        return found

    def look_at_everything(self) -> None:
        """Let the next comparison include what is otherwise compared from time to time."""
        self._surroundings.look_at_everything()

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
        found = []
        for entries, name, meant, _ in self._namespaces:
            key = repr(name) if type(name) is str else name_of(name)  # a constant is quicker to load
            if entries is namespace and name.isidentifier() and not iskeyword(name) and name not in hidden:
                entry = name
            elif type(entries) in (dict, MappingProxyType) and meant is not MISSING:
                entry = f"{name_of(entries)}[{key}]"
            elif type(entries) is dict:
                found.append(f"{key} not in {name_of(entries)}")
                continue
            else:
                entry = f"{name_of(entries.get)}({key}, {name_of(MISSING)})"
            found.append(f"{entry} is {name_of(meant)}")
        for cell, _, meant, _ in self._cells:
            content = variable_of(cell) if meant is not MISSING else f"{name_of(_content)}({name_of(cell)})"
            found.append(f"{content} is {name_of(meant)}")
        found += [f"{place.expression(name_of)} is {name_of(meant)}" for place, meant in self._places]
        found += _same_elements([(x, elements) for x, _, _, elements in self._lists if type(x) is not tuple], name_of)
        compared = {id(numbers) for numbers, *_ in self._lists}
        found += self._surroundings.conditions(name_of, variable_of, compared)
        return list(dict.fromkeys(found))

    # ---- 1 and 2: the code ------------------------------------------------------------------------

    def _read_functions(self, roots: Iterable[Any]) -> None:
        """Note what the code of a function, and of the functions it names, captures and names."""
        pending = list(roots)
        seen: set[int] = set()
        while pending:
            thing = pending.pop()
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            function = getattr(getattr(thing, "__wrapped__", thing), "__func__", getattr(thing, "__wrapped__", thing))
            if _has_code(function) and not _is_ours(function.__module__):
                self._names.update(_names_and_constants(function.__code__))
                for owner, name, meant in _captured(function):
                    entry = (owner, name, meant, str(name))
                    (self._namespaces if isinstance(owner, dict) else self._cells).append(entry)
                    self._objects.append(meant)
                    self._watch_inside(meant, str(name), 0)
                    pending.append(meant)
            elif isinstance(thing, functools.partial):
                pending += [thing.func, *thing.args, *thing.keywords.values()]
            elif not isinstance(thing, _COMPARED) and not _is_ours(type(thing).__module__):
                members = {name: member for cls in reversed(type(thing).__mro__) for name, member in vars(cls).items()}
                pending += [members[n] for n in self._names & members.keys() if isinstance(members[n], FunctionType)]

    # ---- 3: containers ------------------------------------------------------------------------------

    def _watch_inside(self, thing: Any, path: str, depth: int) -> None:
        skipped = (*_COMPARED, ModuleType, FunctionType, MethodType, BuiltinFunctionType)
        if depth > _DEPTH or id(thing) in self._seen or isinstance(thing, skipped) or _is_ours(type(thing).__module__):
            return
        self._seen.add(id(thing))
        if isinstance(thing, (list, tuple)):
            if 0 < len(thing) <= LONGEST_LIST and all(isinstance(x, (int, float)) for x in thing):
                self._lists.append((thing, _contents(thing), path, list(thing)))
            elif (
                thing
                and all(isinstance(x, (list, tuple)) for x in thing)
                and len(thing) * len(thing[0]) <= LONGEST_LIST
            ):
                for index, row in enumerate(thing):
                    self._watch_inside(row, f"{path}[{index}]", depth + 1)
            return
        if isinstance(thing, dict):
            self._watch_entries(thing, f"{path}[{{!r}}]", depth)
            return
        own, shared = getattr(thing, "__dict__", None), getattr(type(thing), "__dict__", {})
        self._owners[id(shared)] = type(thing)
        if isinstance(thing, type):
            self._owners[id(own)] = thing
        self._watch_entries(shared, f"{path}.{{}}", depth)
        if own is not None:
            self._watch_entries(own, f"{path}.{{}}", depth)
            # An attribute of the class may come to be hidden by one of the object.
            hidden = [name for name in self._names if name in shared and name not in own]
            self._namespaces += [(own, name, MISSING, f"{path}.{name}") for name in hidden]

    def _watch_entries(self, namespace: Any, form: str, depth: int) -> None:
        for name in self._names:
            meant = namespace.get(name, MISSING)
            if meant is MISSING or isinstance(meant, (FunctionType, property, classmethod, staticmethod)):
                continue
            self._namespaces.append((namespace, name, meant, form.format(name)))
            self._watch_inside(meant, form.format(name), depth + 1)


def _has_code(function: Any) -> bool:
    # PyPy's built-in functions are functions with a code object that names nothing.
    return isinstance(function, FunctionType) and hasattr(function.__code__, "co_names")


def _is_ours(module: Any) -> bool:
    return isinstance(module, str) and module.split(".")[0] == "mgjit"


def _captured(function: FunctionType) -> Iterator[tuple[Any, str, Any]]:
    for cell, name in zip(function.__closure__ or (), function.__code__.co_freevars):
        yield cell, name, _content(cell)
    namespace = function.__globals__
    for name in global_names(function.__code__):
        meant = namespace.get(name, MISSING)
        # builtins and modules are not captured state
        if meant is not MISSING and not isinstance(meant, (ModuleType, BuiltinFunctionType)):
            yield namespace, name, meant


def _names_and_constants(code: CodeType) -> Iterator[Any]:
    for inner in codes(code):
        yield from inner.co_names
        yield from (constant for constant in inner.co_consts if isinstance(constant, (str, int)))


def _lying_at(place: Place) -> Any:
    try:
        return place.read()
    except (AttributeError, LookupError, ValueError):
        return MISSING


def _same_elements(lists: list[tuple[Any, list[Any]]], name_of: Callable[[Any], str]) -> list[str]:
    """Conditions that hold only as long as lists have these elements.

    `==` between lists looks at the identity first, and is ten times as fast as anything else; but it takes 1.0 for 1
    and -0.0 for 0.0, so whole numbers need to be looked at one by one.  PyPy has no quick `==`, and a quick `is`.
    """
    quick, found = [], []
    for numbers, elements in lists:
        whole = [index for index, number in enumerate(elements) if not number % 1 or number - number != 0]
        if PYPY or type(numbers) is not list or len(whole) > _MOST_WHOLE:
            found.append(f"{name_of(_are_same)}({name_of(numbers)}, {name_of(elements)})")
        else:
            quick.append((numbers, elements))
            found += [f"{name_of(numbers)}[{index}] is {name_of(elements[index])}" for index in whole]
    if not quick:
        return found
    # All in one comparison; elements before those that may be missing.
    return [f"{name_of([numbers for numbers, _ in quick])} == {name_of([elements for _, elements in quick])}", *found]


def _are_same(numbers: Any, elements: list[Any]) -> bool:
    return len(numbers) == len(elements) and all(map(is_, numbers, elements))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _contents(numbers: Any) -> bytes:
    """The kinds and bits of numbers: unlike `==`, it tells 0.0 from -0.0 and 1 from 1.0."""
    try:
        return marshal.dumps(list(numbers), 2)
    except ValueError:  # of a class that derives from int or float
        return repr([(type(number), number) for number in numbers]).encode()
