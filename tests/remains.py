"""What a trace has left behind: objects that live only while a step is traced, found in the whole process."""

from __future__ import annotations

import gc
import sys
from operator import is_
from types import FrameType, ModuleType
from typing import Any

from mgjit.engine.leaks import Symbol, Traced

_LONGEST = 12


def living_traced() -> list[Any]:
    """All objects that stand for something in a trace, which must not outlive it."""
    for _ in range(2):  # PyPy: what a finaliser releases is freed by the next collection
        gc.collect()
    return [thing for thing in gc.get_objects() if issubclass(type(thing), (Traced, Symbol))]


def path_to(thing: Any) -> str:
    """How something is reached from a module or a running function, shortest way first."""
    if hasattr(gc, "unfreeze"):  # PyPy has none
        gc.unfreeze()  # among others the variables of modules
    after: dict[int, Any] = {id(thing): None}  # what an object leads to
    level = [thing]
    own: list[Any] = [after, level]  # what this search itself holds them in
    for _ in range(_LONGEST):
        inside = {id(one): one for one in level}
        found: list[Any] = []
        own += [inside, found, own]
        ours = {id(one) for one in own}
        for holder in gc.get_referrers(*level):
            arguments = type(holder) is tuple and len(holder) == len(level) and all(map(is_, holder, level))
            if id(holder) in ours or id(holder) in after or holder is sys._getframe() or arguments:
                continue
            after[id(holder)] = next((one for one in gc.get_referents(holder) if id(one) in inside), thing)
            if isinstance(holder, (ModuleType, FrameType)) or _module_of(holder):
                return _text(holder, after)
            found.append(holder)
        if not found:
            break
        level = found
    return _text(level[0], after)


def _text(holder: Any, after: dict[int, Any]) -> str:
    return " <- ".join(map(_described, reversed(_way(holder, after))))


def _way(thing: Any, after: dict[int, Any]) -> list[Any]:
    way = [thing]
    while after.get(id(way[-1])) is not None:
        way.append(after[id(way[-1])])
    return way


def _module_of(holder: Any) -> str:
    """The name of the module whose variables something is."""
    is_module = type(holder) is dict and "__builtins__" in holder and isinstance(holder.get("__name__"), str)
    return str(holder["__name__"]) if is_module else ""


def _described(thing: Any) -> str:
    kind = type(thing)
    if _module_of(thing):
        return f"the variables of {_module_of(thing)}"
    if isinstance(thing, FrameType):
        return f"a call of {thing.f_code.co_name}"
    name = getattr(thing, "__qualname__", None) if kind.__module__ == "builtins" else None
    return f"{kind.__qualname__} {name}" if isinstance(name, str) else f"{kind.__module__}.{kind.__qualname__}"
