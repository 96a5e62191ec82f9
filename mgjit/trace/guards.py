"""What a step captures from around it: closure variables and globals, checked before every call.

A traced step has the numbers it captured baked in, and works on the objects it captured.  A guard notes
them when the step is traced; when a number has changed or a name means another object, the step is traced
again.  Functions that the step calls by name are looked into as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Callable

_MISSING = object()
_COMPARED = (int, float, complex, str, bytes, bool, type(None))


class Guard:
    """The captured names of a step and what they meant."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._globals: list[tuple[dict[str, Any], str, Any]] = []
        self._cells: list[tuple[Any, str, Any]] = []
        for owner, name, meant in _captured(function):
            (self._globals if isinstance(owner, dict) else self._cells).append((owner, name, meant))

    def objects(self) -> list[Any]:
        """The captured objects."""
        return [meant for _, _, meant in (*self._globals, *self._cells)]

    def difference(self) -> str:
        """The first captured name that means something else now, in words; empty when there is none."""
        for namespace, name, meant in self._globals:
            now = namespace.get(name, _MISSING)
            if now is not meant and not _equal(now, meant):
                return _describe(name, meant, now)
        for cell, name, meant in self._cells:
            now = _content(cell)
            if now is not meant and not _equal(now, meant):
                return _describe(name, meant, now)
        return ""


def _captured(function: Callable[..., Any]) -> Iterator[tuple[Any, str, Any]]:
    pending, seen = [function], set()
    while pending:
        current: Any = pending.pop()
        current = getattr(current, "__wrapped__", current)
        current = getattr(current, "__func__", current)
        if not isinstance(current, FunctionType) or current in seen:
            continue
        seen.add(current)
        if current.__module__ and current.__module__.split(".")[0] == "mgjit":
            continue
        found: list[tuple[Any, str, Any]] = [
            (cell, name, _content(cell)) for name, cell in zip(current.__code__.co_freevars, current.__closure__ or ())
        ]
        namespace = current.__globals__
        found += [(namespace, name, namespace.get(name, _MISSING)) for name in _global_names(current.__code__)]
        for owner, name, meant in found:
            if isinstance(meant, (ModuleType, BuiltinFunctionType)) or meant is _MISSING:
                continue  # co_names also lists attributes, and builtins are not captured
            yield owner, name, meant
            if callable(meant):
                pending.append(meant)


def _global_names(code: CodeType) -> list[str]:
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names.update(dict.fromkeys(_global_names(constant)))
    return list(names)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _equal(now: Any, meant: Any) -> bool:
    if not isinstance(meant, _COMPARED) or type(now) is not type(meant):
        return False
    if isinstance(meant, float) and isinstance(now, float):
        same_sign = math.copysign(1.0, now) == math.copysign(1.0, meant)
        return (now == meant and same_sign) or (now != now and meant != meant)
    return bool(now == meant)


def _describe(name: str, meant: Any, now: Any) -> str:
    if now is _MISSING:
        return f"the captured name {name} is gone"
    if isinstance(meant, _COMPARED):
        return f"the captured {name} was {meant!r}, is {now!r} (pass it as an argument to make it a run-time input)"
    return f"the captured name {name} means another object than when the step was traced"
