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


def stored_attributes(functions: Iterable[FunctionType]) -> set[str]:
    """The names of attributes that the functions assign."""
    return {
        instruction.argval
        for function in functions
        for code in codes(function.__code__)
        for instruction in dis.get_instructions(code)
        if instruction.opname == "STORE_ATTR"
    }


def names_beside_stores(functions: Iterable[FunctionType]) -> set[str]:
    """The names in all functions that assign an element of something."""
    found: set[str] = set()
    for function in functions:
        for code in codes(function.__code__):
            if any(instruction.opname == "STORE_SUBSCR" for instruction in dis.get_instructions(code)):
                found.update(code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return found


def stored_variables(functions: Iterable[FunctionType]) -> list[Place]:
    """The global variables, and those of enclosing functions, that the functions assign."""
    found: dict[tuple[int, Any], Place] = {}
    for function in functions:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        for code in codes(function.__code__):
            for instruction in dis.get_instructions(code):
                name = instruction.argval
                place: Place | None = None
                if instruction.opname == "STORE_GLOBAL" and name in function.__globals__:
                    place = Entry(function.__globals__, name, f"the variable {name}")
                elif instruction.opname == "STORE_DEREF" and name in cells:
                    place = Variable(cells[name], name)
                if place is not None:
                    found.setdefault(place.key, place)
    return list(found.values())


@functools.lru_cache(maxsize=1024)
def global_names(code: CodeType) -> list[str]:
    """The names that are looked up as variables, and not as attributes."""
    return list(
        dict.fromkeys(
            instruction.argval
            for inner in codes(code)
            for instruction in dis.get_instructions(inner)
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        )
    )
