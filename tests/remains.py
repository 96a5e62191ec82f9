"""What a trace has left behind: objects that live only while a step is traced, found in the whole process."""

from __future__ import annotations

import gc
import sys
from types import FrameType, ModuleType
from typing import Any

from mgjit.record.leaks import Symbol, Traced

_LONGEST = 12


def living_traced() -> list[Any]:
    """All objects that stand for something in a trace, which must not outlive it."""
    for _ in range(2):  # PyPy: what a finaliser releases is freed by the next collection
        gc.collect()
    return [thing for thing in gc.get_objects() if issubclass(type(thing), (Traced, Symbol))]


def path_to(thing: Any) -> str:
    """How something is reached from a module or a running function, shortest way first."""
    ways: list[list[Any]] = [[thing]]
    seen = {id(thing), id(ways)}
    while ways:
        way = ways.pop(0)
        holders = gc.get_referrers(way[-1])
        seen.add(id(holders))
        for holder in holders:
            if id(holder) in seen or holder is way or holder is ways:
                continue
            seen.add(id(holder))
            if isinstance(holder, (ModuleType, FrameType)) or _module_of(holder) or len(way) >= _LONGEST:
                if holder is not sys._getframe():
                    return " <- ".join(map(_described, [*way, holder]))
                continue
            ways.append([*way, holder])
    return f"{_described(thing)}, which nothing holds that can be found"


def _module_of(holder: Any) -> str:
    """The name of the module whose variables something is."""
    if type(holder) is dict and isinstance(holder.get("__name__"), str):
        module = sys.modules.get(holder["__name__"])
        if module is not None and vars(module) is holder:
            return str(holder["__name__"])
    return ""


def _described(thing: Any) -> str:
    kind = type(thing)
    if _module_of(thing):
        return f"the variables of {_module_of(thing)}"
    if isinstance(thing, FrameType):
        return f"a call of {thing.f_code.co_name}"
    name = getattr(thing, "__qualname__", None) if kind.__module__ == "builtins" else None
    return f"{kind.__qualname__} {name}" if isinstance(name, str) else f"{kind.__module__}.{kind.__qualname__}"
