"""Facts about the user's objects: noted once, compared in bulk.

There may be tens of thousands of them, so each kind is kept in parallel lists that functions of C walk through:

1. Entries: what a name means in a namespace, such as a method in a class, and what a variable of an enclosing function
   holds.  Columns: an attribute of all objects of a class, be it one object or thousands of parameters.
2. Rows: lists of objects that are told apart by identity alone, such as parameters.  Numbers: lists of numbers.
3. Parts: what a container holds, in order, where numbers may be among it.
4. Keys: the names that an object has, of which only some matter.
5. Classes of objects, and anything else that a function can ask.

Everything is compared by identity first.  Only when that fails is the one that fails looked for: an equal number in
place of another is no difference, and is what the next comparison expects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from itertools import compress, repeat
from keyword import iskeyword
from operator import eq, is_
from types import CellType, ModuleType
from typing import Any

from ...base.ffi import PYPY
from ...memory.live import Home, original_class
from .places import Place
from .shapes import MISSING, cell_content

_COMPARED = (int, float, complex, str, bytes, bool, type(None))
#: A path is a text, a place, or a path and what comes behind it: most are never put together.
Path = Any
_VARIABLE = "the variable "
#: So many whole numbers of a list are looked at one by one.
_MOST_WHOLE = 16


class Column:
    """An attribute of objects of one class.

    Args:
        holders: the objects, where it is a slot, or their dicts.
        read: a function of C that reads it; it raises AttributeError or KeyError where there is none.
        name: of the attribute.
        paths: of the objects.
        kind: the class of the objects.
    """

    __slots__ = ("holders", "kind", "name", "noted", "paths", "read")

    def __init__(
        self,
        holders: list[Any],
        read: Callable[[Any], Any],
        name: Any,
        paths: list[Path],
        kind: type,
        noted: list[Any] | None = None,
    ) -> None:
        self.holders, self.read, self.name, self.paths, self.kind = holders, read, name, paths, kind
        self.noted = self.now() if noted is None else list(noted)

    def now(self) -> list[Any]:
        """What all objects have now."""
        try:
            return list(map(self.read, self.holders))
        except (AttributeError, KeyError):
            return list(map(self.content, self.holders))

    def content(self, holder: Any) -> Any:
        """What one of them has, perhaps MISSING."""
        try:
            return self.read(holder)
        except (AttributeError, KeyError):
            return MISSING

    def path(self, index: int) -> Path:
        """Of the attribute of an object."""
        return self.paths[index], f".{self.name}"

    @property
    def key(self) -> Any:
        """What the attribute is known by: the class of the objects and the name."""
        return original_class(self.kind), self.name

    def holds(self) -> bool:
        """Whether all is what was noted, by identity."""
        return all(map(is_, self.now(), self.noted))

    def without(self, places: Collection[tuple[int, Any]]) -> bool:
        """Forget the objects that are looked after elsewhere; returns whether there are others."""
        others = [key not in places for key in zip(map(id, self.holders), repeat(self.name))]
        if not all(others):
            self.holders, self.paths = list(compress(self.holders, others)), list(compress(self.paths, others))
            self.noted = list(compress(self.noted, others))
        return bool(self.holders)

    def conditions(self, name_of: Callable[[Any], str]) -> list[str]:
        """The same as `holds` as Python expressions, which may raise something when it does not hold."""
        found = []
        for holder, meant in zip(self.holders, self.noted):
            if type(holder) is dict and type(self.name) is str and meant is not MISSING:
                entry = f"{name_of(holder)}[{self.name!r}]"
            else:
                entry = f"{name_of(self.content)}({name_of(holder)})"
            found.append(f"{entry} is {name_of(meant)}")
        return found

    def first_difference(self) -> int:
        """The index of the first object with something that is not what it was; -1 when there is none."""
        now = self.now()
        for index, (new, old) in enumerate(zip(now, self.noted)):
            if new is not old and not is_equal(new, old):
                return index
        self.noted = list(map(_to_compare, now, self.noted))
        return -1


class Facts:
    """What was noted, and whether it is still so.

    Args:
        names: the names that count among those that an object may get.
    """

    def __init__(self, names: Collection[Any]) -> None:
        self._names = names
        #: Whether code may look for any name that an object gets.
        self.all_names = False
        self._gets: list[tuple[Any, Callable[..., Any], Any, Path]] = []  # namespace, its get, name
        self._meant: list[Any] = []
        self._columns: list[Column] = []
        self._rows: list[Any] = []
        self._row_copies: list[Any] = []
        self._row_paths: list[Path] = []
        self._parts: list[tuple[Any, Callable[[], list[Any]], Path]] = []  # container, what reads it
        self._part_copies: list[list[Any]] = []
        self._keys: list[tuple[Any, Path]] = []
        self._key_copies: list[list[Any]] = []
        self._objects: list[Any] = []
        self._classes: list[type] = []
        self._answers: list[tuple[Callable[[], Any], Any, Path]] = []
        self._cells: list[tuple[CellType, Any, Path]] = []
        self._numbers: list[tuple[Any, list[Any], Path]] = []
        #: How many variables there are.
        self.variables = 0

    # ---- noting -----------------------------------------------------------------------------------

    def entry(self, namespace: Any, name: Any, path: Path, holder: Any = None) -> None:
        """Note what a name means in a dict or the like, which is that of `holder`."""
        self._gets.append((namespace if holder is None else holder, namespace.get, name, path))
        self._meant.append(namespace.get(name, MISSING))
        self.variables += holder is None

    def cell(self, cell: CellType, content: Any, path: Path) -> None:
        """Note what a variable of an enclosing function holds, perhaps MISSING."""
        self._cells.append((cell, content, path))
        self.variables += 1

    def numbers(self, numbers: Any, path: Path) -> None:
        """Note the elements of a list or tuple of numbers."""
        self._numbers.append((numbers, list(numbers), path))

    def row(self, container: Any, path: Path) -> None:
        """Note the elements of a list, all of which are equal only to themselves."""
        self._rows.append(container)
        self._row_copies.append(container.copy())
        self._row_paths.append(path)

    def parts(self, container: Any, read: Callable[[], list[Any]], path: Path) -> None:
        """Note what `read` finds in a container."""
        self._parts.append((container, read, path))
        self._part_copies.append(read())

    def column(self, column: Column) -> None:
        """Note an attribute of objects."""
        self._columns.append(column)

    def keys(self, namespaces: list[Any], paths: list[Path]) -> None:
        """Note which names objects or classes have."""
        self._keys += zip(namespaces, paths)
        self._key_copies += map(list, namespaces)

    def classes_of(self, things: list[Any], kind: type) -> None:
        """Note the class of objects."""
        self._objects += things
        self._classes += repeat(kind, len(things))

    def answer(self, ask: Callable[[], Any], path: Path) -> None:
        """Note what a function returns, to be compared with `==`."""
        self._answers.append((ask, ask(), path))

    def count(self) -> int:
        """How much there is to compare."""
        kinds: tuple[list[Any], ...] = (
            self._gets, self._cells, self._rows, self._numbers, self._parts, self._keys, self._objects, self._answers,
        )  # fmt: skip
        return sum(map(len, kinds)) + sum(len(column.holders) for column in self._columns)

    def size(self) -> int:
        """The same, with the elements of containers counted."""
        contents = (*self._row_copies, *self._part_copies, *(elements for _, elements, _ in self._numbers))
        return self.count() + sum(map(len, contents))

    # ---- comparing ----------------------------------------------------------------------------------

    def hold(self) -> bool:
        """Whether nothing is different, by identity: quick, and wrong where a number has been replaced by an equal."""
        return (
            all(map(is_, [get(name, MISSING) for _, get, name, _ in self._gets], self._meant))
            and all(cell_content(cell) is meant for cell, meant, _ in self._cells)
            and all(map(Column.holds, self._columns))
            and all(are_same(numbers, elements) for numbers, elements, _ in self._numbers)
            and all(map(eq, self._rows, self._row_copies))
            and all(map(is_, map(type, self._objects), self._classes))
            and all(map(eq, map(list, [entry[0] for entry in self._keys]), self._key_copies))
            and all(map(_same, [read() for _, read, _ in self._parts], self._part_copies))
            and all(ask() == noted for ask, noted, _ in self._answers)
        )

    def conditions(
        self,
        name_of: Callable[[Any], str],
        variable_of: Callable[[Any], str],
        globals_: dict[str, Any],
        hidden: Collection[str] = (),
    ) -> list[str]:
        """The same as Python expressions that all hold; they may also raise something when one does not.

        Args:
            name_of: makes a name by which the expressions can refer to an object.
            variable_of: makes the name of a variable that lives in a cell.
            globals_: the global variables that the expressions can refer to, unless their names are `hidden`.
        """
        found = []
        for cell, meant, _ in self._cells:
            content = variable_of(cell) if meant is not MISSING else f"{name_of(cell_content)}({name_of(cell)})"
            found.append(f"{content} is {name_of(meant)}")
        named: dict[int, set[Any]] = {}
        for column in self._columns:
            found += column.conditions(name_of)
            for holder, meant in zip(column.holders, column.noted):
                if meant is not MISSING:
                    named.setdefault(id(holder), set()).add(column.name)
        for (namespace, get, name, _), meant in zip(self._gets, self._meant):
            key = repr(name) if type(name) is str else name_of(name)  # a constant is quicker to load
            if namespace is globals_ and meant is not MISSING and _is_name(name) and name not in hidden:
                entry = name
            elif type(namespace) is dict and meant is not MISSING:
                entry = f"{name_of(namespace)}[{key}]"
                named.setdefault(id(namespace), set()).add(name)
            else:
                entry = f"{name_of(get)}({key}, {name_of(MISSING)})"
            found.append(f"{entry} is {name_of(meant)}")
        found += [f"{name_of(row)} == {name_of(copied)}" for row, copied in zip(self._rows, self._row_copies)]
        found += [f"{name_of(type)}({name_of(x)}) is {name_of(kind)}" for x, kind in zip(self._objects, self._classes)]
        for (namespace, _), known in zip(self._keys, self._key_copies):
            if named.get(id(namespace), set()).issuperset(known):  # each of them is there: none has been added
                found.append(f"{name_of(len)}({name_of(namespace)}) == {len(known)}")
            else:
                found.append(f"[*{name_of(namespace)}] == {name_of(known)}")
        found += _same_elements([(numbers, elements) for numbers, elements, _ in self._numbers], name_of)
        for (container, read, _), copied in zip(self._parts, self._part_copies):
            if type(container) is list:
                found.append(f"{name_of(are_same)}({name_of(container)}, {name_of(copied)})")
            else:
                found.append(f"{name_of(_same)}({name_of(read)}(), {name_of(copied)})")
        found += [f"{name_of(ask)}() == {name_of(noted)}" for ask, noted, _ in self._answers]
        return found

    def difference(self) -> str:
        """The first thing that is not what it was, in words; empty when there is none."""
        if self.hold():
            return ""
        return self._in_entries() or self._in_classes() or self._in_containers()

    def _in_entries(self) -> str:
        for k, (namespace, get, name, path) in enumerate(self._gets):
            now, meant = get(name, MISSING), self._meant[k]
            is_loaded = meant is MISSING and now is not meant and _is_loaded(namespace, name)
            if now is not meant and not is_equal(now, meant) and not is_loaded:
                return describe_difference(spelled(path), meant, now)
            self._meant[k] = _to_compare(now, meant)
        for k, (cell, meant, path) in enumerate(self._cells):
            now = cell_content(cell)
            if now is not meant and not is_equal(now, meant):
                return describe_difference(spelled(path), meant, now)
            self._cells[k] = cell, _to_compare(now, meant), path
        for column in self._columns:
            index = column.first_difference()
            if index >= 0:
                meant, now = column.noted[index], column.content(column.holders[index])
                return describe_difference(spelled(column.path(index)), meant, now)
        for k, (namespace, path) in enumerate(self._keys):
            new = [
                name
                for name in namespace
                if (self.all_names or name in self._names) and name not in self._key_copies[k]
                if not _is_submodule(namespace, name)
            ]
            if new:
                return describe_difference(f"{spelled(path)}.{new[0]}", MISSING, namespace[new[0]])
            self._key_copies[k] = list(namespace)
        return ""

    def changed_numbers(self) -> Iterator[Any]:
        """Keys of all floats, and of lists of numbers, that are not what they were: they need not be constants."""
        for (holder, get, name, _), meant in zip(self._gets, self._meant):
            if type(meant) is float and not is_equal(get(name, MISSING), meant):
                yield id(holder), name
        for cell, meant, name in self._cells:
            if type(meant) is float and not is_equal(cell_content(cell), meant):
                yield id(cell), name
        for column in self._columns:
            if any(type(old) is float and not is_equal(new, old) for new, old in zip(column.now(), column.noted)):
                yield column.key
        for numbers, elements, _ in self._numbers:
            if not are_same(numbers, elements):
                yield "list", id(numbers)
        for (container, read, _), copied in zip(self._parts, self._part_copies):
            if type(container) is list and all(type(part) in (int, float) for part in container):
                if not _same(read(), copied):
                    yield "list", id(container)
            elif isinstance(container, dict) and len(now := read()) == len(copied):
                pairs = zip(container, now[len(container) :], copied[len(container) :])
                yield from ((id(container), n) for n, a, b in pairs if type(b) is float and not is_equal(a, b))

    def _in_classes(self) -> str:
        for k, thing in enumerate(self._objects):
            now, meant = type(thing), self._classes[k]
            if original_class(now) is not original_class(meant):
                return f"a captured object was a {meant.__name__}, is a {now.__name__}"
            self._classes[k] = now
        return ""

    def _in_containers(self) -> str:
        for k, container in enumerate(self._rows):
            if container != self._row_copies[k]:
                return _describe_parts(spelled(self._row_paths[k]), self._row_copies[k], list(container))
        for k, (numbers, elements, path) in enumerate(self._numbers):
            if len(numbers) != len(elements) or not all(map(is_equal, numbers, elements)):
                return f"the numbers in the captured {spelled(path)} have changed (pass them as an argument)"
            self._numbers[k] = numbers, list(numbers), path
        for k, (_, read, path) in enumerate(self._parts):
            now, copied = read(), self._part_copies[k]
            if len(now) != len(copied) or not all(map(is_equal, now, copied)):
                return _describe_parts(spelled(path), copied, now)
            self._part_copies[k] = now
        for ask, noted, path in self._answers:
            if ask() != noted:
                return f"the captured {spelled(path)} has changed"
        return ""


def spelled(path: Path) -> str:
    """The text of a path."""
    if isinstance(path, str):
        return path
    if isinstance(path, Place):
        text = path.describe()
        return text[len(_VARIABLE) :] if text.startswith(_VARIABLE) else text
    around, inside = path
    return spelled(around) + (inside if isinstance(inside, str) else f"[{inside!r}]")


def is_equal(now: Any, meant: Any) -> bool:
    """Whether one thing may stand in place of another: it is the same, or an equal number or text."""
    if now is meant:
        return True
    if type(now) is Home:  # the number has moved into the memory of a kernel, where it may change
        return type(meant) is Home or is_equal(now.number, meant)
    if not isinstance(meant, _COMPARED) or type(now) is not type(meant):
        return False
    if isinstance(meant, float) and isinstance(now, float):
        same_sign = math.copysign(1.0, now) == math.copysign(1.0, meant)
        return (now == meant and same_sign) or (now != now and meant != meant)
    return bool(now == meant)


def _to_compare(now: Any, meant: Any) -> Any:
    """What is noted of two things that are equal: the later one, which is then quick to recognise."""
    return meant if type(now) is Home and type(meant) is not Home else now


def _is_submodule(namespace: Any, name: str) -> bool:
    """Whether an entry of a module is there because a submodule has been imported, by anybody."""
    content = namespace[name]
    return isinstance(content, ModuleType) and content.__name__ == f"{namespace.get('__name__')}.{name}"


def _is_loaded(namespace: Any, name: str) -> bool:
    """Whether an entry of mgjit itself is there because somebody has used it: a program finds it before that, too."""
    ask: Any = namespace.get("__getattr__") if type(namespace) is dict else None
    if getattr(ask, "__module__", "") != __name__.partition(".")[0]:
        return False
    try:
        return ask(name) is namespace[name]
    except AttributeError:
        return False


def describe_difference(path: str, meant: Any, now: Any) -> str:
    """What has changed, in words."""
    if meant is MISSING:
        return f"the captured {path} has been set"
    if now is MISSING:
        return f"the captured {path} is gone"
    if isinstance(meant, _COMPARED):
        return f"the captured {path} was {meant!r}, is {now!r} (pass it as an argument to make it a run-time input)"
    return f"the captured {path} is another object than when the step was traced"


def _describe_parts(path: str, meant: list[Any], now: list[Any]) -> str:
    if len(meant) != len(now):
        return f"the captured {path} has more or fewer elements than when the step was traced"
    index = next(k for k, (a, b) in enumerate(zip(now, meant)) if not is_equal(a, b))
    if isinstance(meant[index], (int, float)):
        return f"the numbers in the captured {path} have changed (pass them as an argument)"
    return f"an element of the captured {path} is another object than when the step was traced"


def _same(now: list[Any], meant: list[Any]) -> bool:
    return len(now) == len(meant) and all(map(is_, now, meant))


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier() and not iskeyword(name)


def _same_elements(lists: list[tuple[Any, list[Any]]], name_of: Callable[[Any], str]) -> list[str]:
    """Conditions that hold only as long as lists have these elements.

    `==` between lists looks at the identity first, and is ten times as fast as anything else; but it takes 1.0 for 1
    and -0.0 for 0.0, so whole numbers need to be looked at one by one.  PyPy has no quick `==`, and a quick `is`.
    """
    quick, found = [], []
    for numbers, elements in lists:
        if type(numbers) is tuple:
            continue  # which is compared by identity where it lies
        whole = [index for index, number in enumerate(elements) if not number % 1 or number - number != 0]
        if PYPY or type(numbers) is not list or len(whole) > _MOST_WHOLE:
            found.append(f"{name_of(are_same)}({name_of(numbers)}, {name_of(elements)})")
        else:
            quick.append((numbers, elements))
            found += [f"{name_of(numbers)}[{index}] is {name_of(elements[index])}" for index in whole]
    if not quick:
        return found
    # All in one comparison; elements before those that may be missing.
    both = tuple(numbers for numbers, _ in quick), tuple(elements for _, elements in quick)
    return [f"{name_of(both[0])} == {name_of(both[1])}", *found]


def are_same(numbers: Any, elements: list[Any]) -> bool:
    """Whether a list or tuple has these very elements."""
    return len(numbers) == len(elements) and all(map(is_, numbers, elements))
