"""Facts about the user's objects: noted once, compared in bulk.

There may be tens of thousands of them, so each kind is kept in parallel lists that functions of C walk through:

1. Entries: what a name means in a namespace, such as a method in a class.  Columns: an attribute of all objects of a
   class, be it one object or thousands of parameters.
2. Rows: lists of objects that are told apart by identity alone, such as parameters.
3. Parts: what a container holds, in order, where numbers may be among it.
4. Keys: the names that an object has, of which only some matter.
5. Classes of objects, and anything else that a function can ask.

Everything is compared by identity first.  Only when that fails is the one that fails looked for: an equal number in
place of another is no difference, and is what the next comparison expects.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection
from itertools import compress, repeat
from operator import eq, is_
from typing import Any

from ..runtime.live import Home

MISSING = object()
_COMPARED = (int, float, complex, str, bytes, bool, type(None))
#: A path is a text, or a path and what comes behind it: most are never put together.
Path = Any


class Column:
    """An attribute of objects of one class.

    Args:
        holders: the objects, where it is a slot, or their dicts.
        read: a function of C that reads it; it raises AttributeError or KeyError where there is none.
        name: of the attribute.
        paths: of the objects.
    """

    __slots__ = ("holders", "name", "noted", "paths", "read")

    def __init__(self, holders: list[Any], read: Callable[[Any], Any], name: Any, paths: list[Path]) -> None:
        self.holders, self.read, self.name, self.paths = holders, read, name, paths
        self.noted = self.now()

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

    def settle(self) -> None:
        """Expect new objects where they may stand in place of the old ones."""
        now = self.now()
        if not all(map(is_, now, self.noted)):
            self.noted = [new if _may_replace(new, old) else old for new, old in zip(now, self.noted)]

    def difference(self) -> str:
        """The first thing that is not what it was, in words; empty when there is none."""
        now = self.now()
        for index, (new, old) in enumerate(zip(now, self.noted)):
            if new is not old and not is_equal(new, old):
                return describe_difference(spelled(self.path(index)), old, new)
        self.noted = now
        return ""


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
        #: The list of numbers that was found to have changed, if that was the difference.
        self.changed: Any = None

    # ---- noting -----------------------------------------------------------------------------------

    def entry(self, namespace: Any, name: Any, path: Path, holder: Any = None) -> None:
        """Note what a name means in a dict or the like, which is that of `holder`."""
        self._gets.append((namespace if holder is None else holder, namespace.get, name, path))
        self._meant.append(namespace.get(name, MISSING))

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

    def forget(self, places: Collection[tuple[int, Any]]) -> None:
        """What lies at these places is looked after elsewhere; of lists, the length still matters.

        Args:
            places: the identity of what holds them and their name, which is None for the elements of a list.
        """
        gets = [(get, meant) for get, meant in zip(self._gets, self._meant) if (id(get[0]), get[2]) not in places]
        self._gets, self._meant = [get for get, _ in gets], [meant for _, meant in gets]
        self._columns = [column for column in self._columns if column.without(places)]
        rows, parts = zip(self._rows, self._row_copies, self._row_paths), zip(self._parts, self._part_copies)
        self._rows, self._row_copies, self._row_paths = [], [], []
        self._parts, self._part_copies = [], []
        for container, copied, path in rows:
            self._keep_or_measure(container, None, copied, path, places)
        holders = {holder for holder, _ in places}
        for (container, read, path), copied in parts:
            if type(container) is dict and id(container) in holders:
                known = {name for holder, name in places if holder == id(container)}
                self.parts(container, functools.partial(_others, container, known), path)
            else:
                self._keep_or_measure(container, read, copied, path, places)

    def _keep_or_measure(
        self,
        container: Any,
        read: Callable[[], Any] | None,
        copied: Any,
        path: Path,
        places: Collection[tuple[int, Any]],
    ) -> None:
        if (id(container), None) in places:
            self.answer(container.__len__, (path, "'s length"))
        elif read is None:
            self._rows.append(container)
            self._row_copies.append(copied)
            self._row_paths.append(path)
        else:
            self._parts.append((container, read, path))
            self._part_copies.append(copied)

    def settle(self, grown: Collection[int]) -> None:
        """After a trace, what the step has changed and is not going to change again is what is expected.

        Args:
            grown: identities of lists and dicts about which there has been a warning: what is new there is accepted.
        """
        for k, (_, get, name, _) in enumerate(self._gets):
            now, meant = get(name, MISSING), self._meant[k]
            if _may_replace(now, meant):
                self._meant[k] = now
        for column in self._columns:
            column.settle()
        for k, row in enumerate(self._rows):
            if id(row) in grown and _is_beginning(self._row_copies[k], row):
                self._row_copies[k] = row.copy()
        for k, (container, read, _) in enumerate(self._parts):
            if id(container) in grown:
                before, now = self._part_copies[k], read()
                keys = type(container) is dict
                half, middle = (len(before) // 2, len(now) // 2) if keys else (len(before), len(now))
                if _is_beginning(before[:half], now[:middle]) and _is_beginning(before[half:], now[middle:]):
                    self._part_copies[k] = now

    def count(self) -> int:
        """How much there is to compare."""
        kinds = (self._gets, self._rows, self._parts, self._keys, self._objects, self._answers)
        return sum(map(len, kinds)) + sum(len(column.holders) for column in self._columns)

    # ---- comparing ----------------------------------------------------------------------------------

    def hold(self) -> bool:
        """Whether nothing is different, by identity: quick, and wrong where a number has been replaced by an equal."""
        return (
            all(map(is_, [get(name, MISSING) for _, get, name, _ in self._gets], self._meant))
            and all(map(Column.holds, self._columns))
            and all(map(eq, self._rows, self._row_copies))
            and all(map(is_, map(type, self._objects), self._classes))
            and all(map(eq, map(list, [entry[0] for entry in self._keys]), self._key_copies))
            and all(map(_same, [read() for _, read, _ in self._parts], self._part_copies))
            and all(ask() == noted for ask, noted, _ in self._answers)
        )

    def conditions(self, name_of: Callable[[Any], str], compared: Collection[int] = ()) -> list[str]:
        """The same as Python expressions that all hold; they may also raise something when one does not.

        Args:
            name_of: makes a name by which the expressions can refer to an object.
            compared: identities of lists that are compared elsewhere.
        """
        found = []
        named: dict[int, set[Any]] = {}
        for column in self._columns:
            found += column.conditions(name_of)
            for holder, meant in zip(column.holders, column.noted):
                if meant is not MISSING:
                    named.setdefault(id(holder), set()).add(column.name)
        for (namespace, get, name, _), meant in zip(self._gets, self._meant):
            key = repr(name) if type(name) is str else name_of(name)  # a constant is quicker to load
            if type(namespace) is dict and meant is not MISSING:
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
        for (container, read, _), copied in zip(self._parts, self._part_copies):
            if id(container) not in compared:
                found.append(f"{name_of(_same)}({name_of(read)}(), {name_of(copied)})")
        found += [f"{name_of(ask)}() == {name_of(noted)}" for ask, noted, _ in self._answers]
        return found

    def difference(self) -> str:
        """The first thing that is not what it was, in words; empty when there is none."""
        if self.hold():
            return ""
        self.changed = None
        return self._in_entries() or self._in_classes() or self._in_containers()

    def _in_entries(self) -> str:
        for k, (_, get, name, path) in enumerate(self._gets):
            now, meant = get(name, MISSING), self._meant[k]
            if now is not meant and not is_equal(now, meant):
                return describe_difference(spelled(path), meant, now)
            self._meant[k] = now
        different = next(filter(None, map(Column.difference, self._columns)), "")
        if different:
            return different
        for k, (namespace, path) in enumerate(self._keys):
            new = [
                name
                for name in namespace
                if (self.all_names or name in self._names) and name not in self._key_copies[k]
            ]
            if new:
                return describe_difference(f"{spelled(path)}.{new[0]}", MISSING, namespace[new[0]])
            self._key_copies[k] = list(namespace)
        return ""

    def _in_classes(self) -> str:
        for k, thing in enumerate(self._objects):
            now, meant = type(thing), self._classes[k]
            if _original(now) is not _original(meant):
                return f"a captured object was a {meant.__name__}, is a {now.__name__}"
            self._classes[k] = now
        return ""

    def _in_containers(self) -> str:
        for k, container in enumerate(self._rows):
            if container != self._row_copies[k]:
                return _describe_parts(spelled(self._row_paths[k]), self._row_copies[k], list(container))
        for k, (container, read, path) in enumerate(self._parts):
            now, copied = read(), self._part_copies[k]
            if len(now) != len(copied) or not all(map(is_equal, now, copied)):
                if type(container) is list and all(type(part) in (int, float) for part in container):
                    self.changed = container
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
    around, inside = path
    return spelled(around) + (inside if isinstance(inside, str) else f"[{inside!r}]")


def is_equal(now: Any, meant: Any) -> bool:
    """Whether one thing may stand in place of another: it is the same, or an equal number or text."""
    if now is meant or type(now) is Home:
        return True
    if not isinstance(meant, _COMPARED) or type(now) is not type(meant):
        return False
    if isinstance(meant, float) and isinstance(now, float):
        same_sign = math.copysign(1.0, now) == math.copysign(1.0, meant)
        return (now == meant and same_sign) or (now != now and meant != meant)
    return bool(now == meant)


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


def _is_beginning(before: list[Any], now: list[Any]) -> bool:
    return len(before) <= len(now) and all(map(is_, before, now))


def _others(entries: dict[Any, Any], known: Collection[Any]) -> list[Any]:
    return [part for name, content in entries.items() for part in (name, None if name in known else content)]


def _may_replace(now: Any, meant: Any) -> bool:
    """Whether something is a new object of the kind that was there, such as a function made by the step."""
    if now is meant or type(now) is not type(meant) or isinstance(now, _COMPARED):
        return False
    return type(now) not in (list, dict, set) or len(now) == len(meant) == 0


def _original(cls: type) -> type:
    return getattr(cls, "_mgjit_original", cls)
