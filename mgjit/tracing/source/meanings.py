"""What the names in a function refer to, as far as its code is rewritten for that (source/rewriting.py)."""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import math
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ...engine import functions as engine
from ..record.uniform_loops import CALLS
from ..surroundings.code import codes
from .effects import WRITES
from .semantics import NAMES, REPLACEMENTS

#: Names, also with an attribute, and what replaces what they refer to; the empty string where only that is to be known.
Meanings = tuple[tuple[str, str], ...]

#: Functions that are not replaced, but whose meaning has to be known in uniform loops.
_ITERATIONS = tuple(getattr(builtins, name) for name in CALLS)
_COMPUTING = (
    abs, engine.exp, engine.log, engine.maximum, engine.minimum, engine.relu, engine.sqrt, engine.tanh, engine.where,
)  # fmt: skip
_KNOWN = {id(function) for function in (*_ITERATIONS, *_COMPUTING)}


def meanings(function: FunctionType) -> Meanings:
    """The names (also with an attribute) that refer to something replaced, with the name of the replacement.

    That of functions whose meaning alone has to be known is empty.
    """
    namespace = function.__globals__
    found: dict[str, str] = {}
    for inner in codes(function.__code__):
        named = {name: namespace.get(name, getattr(builtins, name, None)) for name in inner.co_names}
        for name, meant in (*named.items(), *_imports(inner)):
            if name in WRITES:
                found[f"*.{name}"] = "writing"  # of whatever object
            if meant is contextlib:
                found[f"{name}.suppress"] = "suppress"
            if meant is math:
                ours = [a for a in inner.co_names if REPLACEMENTS.get(f"math_{a}", name) is vars(math).get(a)]
                found.update({f"{name}.{attribute}": f"math_{attribute}" for attribute in ours})
            elif id(meant) in NAMES:
                found[name] = NAMES[id(meant)]
            elif id(meant) in _KNOWN:
                found[name] = ""
            elif isinstance(meant, ModuleType):
                known = [a for a in inner.co_names if id(vars(meant).get(a)) in _KNOWN]
                found.update({f"{name}.{attribute}": "" for attribute in known})
    return tuple(sorted(found.items()))


@functools.lru_cache(maxsize=1024)
def _imports(code: CodeType) -> tuple[tuple[str, Any], ...]:
    """The local names for what a function imports, as far as that is loaded, with their meanings."""
    if dis.opmap["IMPORT_NAME"] not in code.co_code[::2]:
        return ()
    found: list[tuple[str, Any]] = []
    module: Any = None
    meant: Any = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            meant = module = sys.modules.get(instruction.argval)
        elif instruction.opname == "IMPORT_FROM":
            meant = getattr(module, instruction.argval, None)
        elif meant is not None and instruction.opname.startswith("STORE_"):
            found.append((instruction.argval, meant))
            meant = None
    return tuple(found)
