"""Loads the programs, runs them undecorated and compiled, and compares every bit of what they compute.

A program is a module that knows nothing of mgjit.  Its `make()` returns the step (or a list of steps that take turns),
the arguments of some calls, and a function that returns all that Python can see of its parameters and state.  Each
copy is loaded afresh, so that global variables are its own.

A program that cannot be compiled as it is has an entry in `CHANGES`: the lines that are changed for that.
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

#: What is changed in the programs besides the decorator: lines, and what they become.
CHANGES = {
    "reinforce": {
        "        loss += -log_probabilities[action] * (value - baseline)\n": (
            "        chosen = sum(l * (1.0 if k == action else 0.0) for k, l in enumerate(log_probabilities))\n"
            "        loss += -chosen * (value - baseline)\n"
        ),
    },
}

#: What a step returned, and what could be seen of its state then.
Snapshot = tuple[Any, Any]


@contextmanager
def loaded(name: str, folder: Path | None = None) -> Iterator[ModuleType]:
    """A copy of a program of its own.

    Args:
        name: the program.
        folder: where to write it with what is changed in it; None for the program as it is.
    """
    path = PROGRAMS / f"{name}.py"
    if folder is not None:
        path = changed(path, folder)
    specification = importlib.util.spec_from_file_location(f"{name}_{next(_number)}", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[module.__name__] = module
    try:
        specification.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[module.__name__]


def changed(path: Path, folder: Path) -> Path:
    """A program with its changes."""
    text = path.read_text(encoding="utf-8")
    for line, other in CHANGES.get(path.stem, {}).items():
        assert text.count(line) == 1
        text = text.replace(line, other)
    copy_of_it = folder / path.name
    copy_of_it.write_text(text, encoding="utf-8")
    return copy_of_it


def parts(module: ModuleType) -> tuple[list[Callable[..., Any]], list[tuple[Any, ...]], Callable[[], Any]]:
    """The steps of a program, the arguments of its calls, and what observes it."""
    step, calls, observe = module.make()
    return (step if isinstance(step, list) else [step]), calls, observe


def run(name: str, decorate: Callable[[Any], Any], folder: Path | None = None) -> tuple[list[Snapshot], list[Any]]:
    """The result and the state after each call, and the decorated steps."""
    with loaded(name, folder) as module:
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
