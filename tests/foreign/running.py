"""Loads the programs, runs them undecorated and compiled, and compares every bit of what they compute.

A program is a module that knows nothing of mgjit.  Its `make()` returns the step (or a list of steps that take turns),
the arguments of some calls, and a function that returns all that Python can see of its parameters and state.  Each
copy is loaded afresh, so that global variables are its own.
"""

from __future__ import annotations

import copy
import importlib.util
import itertools
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py"))
_number = itertools.count()

Snapshot = tuple[Any, Any]


@contextmanager
def loaded(name: str) -> Iterator[ModuleType]:
    """A copy of a program of its own."""
    specification = importlib.util.spec_from_file_location(f"{name}_{next(_number)}", PROGRAMS / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[module.__name__] = module
    try:
        specification.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[module.__name__]


def parts(module: ModuleType) -> tuple[list[Callable[..., Any]], list[tuple[Any, ...]], Callable[[], Any]]:
    """The steps of a program, the arguments of its calls, and what observes it."""
    step, calls, observe = module.make()
    return (step if isinstance(step, list) else [step]), calls, observe


def run(name: str, decorate: Callable[[Any], Any]) -> tuple[list[Snapshot], list[Any]]:
    """The result and the state after each call, and the decorated steps."""
    with loaded(name) as module:
        steps, calls, observe = parts(module)
        decorated = [decorate(step) for step in steps]
        snapshots = []
        for number, arguments in enumerate(calls):
            result = decorated[number % len(steps)](*copy.deepcopy(arguments))
            snapshots.append((bits(result), bits(observe())))
        return snapshots, decorated


def bits(thing: Any) -> Any:
    """Nested results with the type and the 64 bits of each number, all nans alike."""
    if isinstance(thing, float):
        return "float", "nan" if thing != thing else struct.pack(">d", thing).hex(), repr(thing)
    if isinstance(thing, (list, tuple)):
        return [type(thing).__name__, *map(bits, thing)]
    if isinstance(thing, dict):
        return {key: bits(part) for key, part in thing.items()}
    return type(thing).__name__, thing


def difference(wanted: Any, found: Any, path: str = "") -> str:
    """The first place where two snapshots differ, in words; empty when they agree."""
    if type(wanted) is type(found) is dict and wanted.keys() == found.keys():
        pairs = [(f"{path}[{key!r}]", wanted[key], found[key]) for key in wanted]
    elif type(wanted) is type(found) is list and len(wanted) == len(found):
        pairs = [(f"{path}[{index}]", a, b) for index, (a, b) in enumerate(zip(wanted, found))]
    else:
        return "" if wanted == found else f"{path}: {wanted!r:.90} expected, {found!r:.90} found"
    return next(filter(None, (difference(a, b, inner) for inner, a, b in pairs)), "")
