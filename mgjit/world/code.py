"""What the bytecode of functions says that they assign."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from .places import Entry, Place, Variable


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


_NAMING = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL", "STORE_DEREF"})


@functools.lru_cache(maxsize=4096)
def _naming(code: CodeType) -> list[tuple[str, Any]]:
    """The instructions of a code object that say what it names and assigns, each with its name."""
    found = ((instruction.opname, instruction.argval) for instruction in dis.get_instructions(code))
    return list(dict.fromkeys(instruction for instruction in found if instruction[0] in _NAMING))


def _instructions(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Those of a function, and of the functions inside it."""
    return (instruction for code in codes(function.__code__) for instruction in _naming(code))


def stored_attributes(functions: Iterable[FunctionType]) -> set[str]:
    """The names of attributes that the functions assign."""
    return {name for function in functions for operation, name in _instructions(function) if operation == "STORE_ATTR"}


def names_beside_stores(functions: Iterable[FunctionType]) -> set[str]:
    """The names in all functions that assign an element of something."""
    found: set[str] = set()
    for function in functions:
        for code in codes(function.__code__):
            if any(operation == "STORE_SUBSCR" for operation, _ in _naming(code)):
                found.update(code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return found


def stored_variables(functions: Iterable[FunctionType]) -> list[Place]:
    """The global variables, and those of enclosing functions, that the functions assign."""
    found: dict[tuple[int, Any], Place] = {}
    for function in functions:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        for operation, name in _instructions(function):
            place: Place | None = None
            if operation == "STORE_GLOBAL" and name in function.__globals__:
                place = Entry(function.__globals__, name, f"the variable {name}")
            elif operation == "STORE_DEREF" and name in cells:
                place = Variable(cells[name], name)
            if place is not None:
                found.setdefault(place.key, place)
    return list(found.values())


@functools.lru_cache(maxsize=1024)
def global_names(code: CodeType) -> list[str]:
    """The names that are looked up as variables, and not as attributes."""
    named = (instruction for inner in codes(code) for instruction in _naming(inner))
    return list(dict.fromkeys(name for operation, name in named if operation in ("LOAD_GLOBAL", "LOAD_NAME")))
