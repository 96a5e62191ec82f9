"""Autograd engines over whole numpy arrays: they are not for mgjit, and run as plain Python from the first call on.

Such an engine keeps an array where others keep a number (`p.data` is an ndarray).  Its arithmetic is numpy's already,
so nothing is to be gained; a trace would only end at the first operation.  `array_engine` looks for its nodes among the
arguments and what the step captures: objects of a class with a `backward` method, and a numpy array in an attribute.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ...base.lookup import variables
from ..surroundings.ownership import is_of_user

#: So deep, and among so many objects, it is looked for nodes.
_DEPTH, _MOST = 6, 20_000
_OPAQUE = (ModuleType, type, str, bytes, float, int)
_OPEN = (FunctionType, MethodType, CellType, list, tuple, dict)


def array_engine(function: Callable[..., Any], arguments: Iterable[Any]) -> str:
    """Why a step cannot be compiled, if its nodes hold whole arrays; empty if they do not."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return ""
    is_node: dict[type, bool] = {}
    for thing in _around([function, *arguments]):
        kind = type(thing)
        if kind not in is_node:
            is_node[kind] = callable(getattr(kind, "backward", None)) and is_of_user(kind)
        if is_node[kind] and any(type(part) is numpy.ndarray and part.ndim for part in _inside(thing)):
            name = kind.__name__
            return (
                f"objects of class {name} hold numpy arrays. mgjit compiles steps that compute with single numbers; "
                f"those of {name} are operations of numpy on whole arrays already"
            )
    return ""


def _around(things: list[Any]) -> Iterator[Any]:
    """What a step captures and is given, a few levels deep: what has something inside, or may be a node."""
    level, seen, is_open = things, set[int](), dict[int, bool]()
    for _ in range(_DEPTH):
        kinds = list(map(type, level))  # few, of many things; by their identity, because they may have no hash
        for number, kind in dict(zip(map(id, kinds), kinds)).items():
            if number not in is_open:
                is_open[number] = _is_open(kind)
        opened = compress(level, map(is_open.__getitem__, map(id, kinds)))
        new = [thing for thing in opened if id(thing) not in seen]
        seen.update(map(id, new))
        yield from new
        if len(seen) > _MOST:
            return
        level = [part for thing in new for part in _inside(thing)]


def _is_open(kind: type) -> bool:
    return not issubclass(kind, _OPAQUE) and (issubclass(kind, _OPEN) or is_of_user(kind))


def _inside(thing: Any) -> list[Any]:
    if isinstance(thing, FunctionType):
        named = [thing.__globals__.get(name) for name in _names(thing.__code__)]
        return [*named, *(thing.__closure__ or ()), *(thing.__defaults__ or ())] if is_of_user(thing) else []
    parts = gc.get_referents(thing)
    return [*parts, *variables(thing).values()]  # of which `gc` says nothing where they are no dict yet


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
