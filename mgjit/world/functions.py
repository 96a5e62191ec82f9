"""The functions of the user that a step can call, found without running it.

1. Start from the step and the objects it is given.
2. The code of a function names globals, closure variables, attributes of modules and classes: what these are now is
   looked at in turn.  Of classes all methods count, of objects their class and what their attributes hold.
3. Of long containers a few elements of each type are looked at: their classes are what is wanted.

Not found are functions behind computed names (`getattr(x, name)`, `exec`).  They work as any other, only without
what source/installed.py adds.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterable, Iterator
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from .code import codes
from .ownership import is_module_of_python, is_of_user
from .places import Entry, Place, Root, Variable

_SAMPLES = 8


def reachable_functions(function: Any, objects: Iterable[Any] = ()) -> list[FunctionType]:
    """The user's functions that a call of `function` may run, itself first.

    Args:
        function: the step; a function, a bound method, a functools.partial or an object with `__call__`.
        objects: what it is given besides, such as arguments.
    """
    found: dict[int, FunctionType] = {}
    seen: set[int] = set()
    pending: list[Any] = [*objects, function]
    kept: list[Any] = []  # so that no id is used again
    while pending:
        thing = pending.pop()
        if id(thing) in seen or isinstance(thing, (str, bytes, int, float, complex, type(None), ModuleType)):
            continue
        seen.add(id(thing))
        kept.append(thing)
        if isinstance(thing, FunctionType):
            if is_of_user(thing):
                found[id(thing)] = thing
                pending += (place.read() for place in captured(thing))
            pending += [thing.__wrapped__] if hasattr(thing, "__wrapped__") else []
        else:
            pending += _inside(thing)
    return list(found.values())


def captured(function: FunctionType) -> Iterator[Place]:
    """Where the names in the code of a function lie: globals, attributes of modules, closure variables, defaults."""
    names = {name for code in codes(function.__code__) for name in code.co_names}
    namespace = function.__globals__
    for name in sorted(names & namespace.keys()):
        meant = namespace[name]
        if not isinstance(meant, ModuleType):
            yield Entry(namespace, name, f"the variable {name}")
        elif not is_module_of_python(meant):
            entries = vars(meant)
            yield from (Entry(entries, inner, f"{name}.{inner}") for inner in sorted(names & entries.keys()))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        if not is_empty(cell):
            yield Variable(cell, name)
    yield from (Root(default, "a default") for default in function.__defaults__ or ())
    yield from (Root(default, name) for name, default in (function.__kwdefaults__ or {}).items())


def is_empty(cell: CellType) -> bool:
    """Whether a variable of an enclosing function has no value yet."""
    try:
        cell.cell_contents  # noqa: B018 - asked for the error
    except ValueError:
        return True
    return False


def _inside(thing: Any) -> Iterator[Any]:
    """What is to be looked at in an object that is not a function."""
    if isinstance(thing, MethodType):
        yield from (thing.__func__, thing.__self__)
    elif isinstance(thing, functools.partial):
        yield from (thing.func, *thing.args, *thing.keywords.values())
    elif isinstance(thing, (staticmethod, classmethod)):
        yield thing.__func__
    elif isinstance(thing, property):
        yield from (method for method in (thing.fget, thing.fset, thing.fdel) if method is not None)
    elif isinstance(thing, type):
        for base in thing.__mro__:
            if is_of_user(base):
                yield from vars(base).values()
    elif isinstance(thing, (list, tuple, set, frozenset)):
        yield from samples(thing)
    elif isinstance(thing, dict):
        yield from samples(thing.values())
    else:
        yield type(thing)
        yield from attributes(thing).values()
        if not isinstance(thing, FunctionType) and hasattr(thing, "_function"):
            yield thing._function  # a compiled step that is called inside of this one


def samples(elements: Collection[Any]) -> Iterator[Any]:
    """A few elements of each type."""
    if len(set(map(type, elements))) == 1:
        yield from itertools.islice(elements, _SAMPLES)
        return
    counts: dict[type, int] = {}
    for element in elements:
        kind = type(element)
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] <= _SAMPLES:
            yield element


def attributes(thing: Any) -> dict[str, Any]:
    """The attributes that an object has by itself, in its dict and its slots."""
    found = dict(getattr(thing, "__dict__", None) or {})
    for base in type(thing).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            slot: Any = base.__dict__.get(_mangled(base, name))
            if hasattr(slot, "__get__") and name not in ("__dict__", "__weakref__"):
                try:
                    found[_mangled(base, name)] = slot.__get__(thing, base)
                except AttributeError:
                    continue
    return found


def _mangled(owner: type, name: str) -> str:
    return f"_{owner.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
