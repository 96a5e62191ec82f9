"""Functions without text: what they call is replaced in their names.

A function that was made by `exec`, or typed into an older REPL, cannot be parsed.  But the functions that ask for the
number itself (`math.exp`, `max`, ...) can be replaced all the same: bytecode finds them by name, and other names, which
mean the replacements, take their place.  Tests and look-ups stay what they are; of traced numbers they are reported.

1. A global variable that means such a function is read under the name of the replacement.
2. A global variable that means such a module, where an attribute of it is wanted, is read under the name of a stand-in,
   which has all that the module has, and the replacements.
3. For that, one operand of one instruction is changed, and the outcome is looked at again: an interpreter whose
   bytecode is another gets the function as it is.
"""

from __future__ import annotations

import dis
import math
import sys
import time
from collections.abc import Mapping
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

from .semantics import HELPERS, REPLACEMENTS


def _stand_in(module: ModuleType) -> SimpleNamespace:
    entries = vars(module)
    ours = {name: vars(HELPERS)[f"{module.__name__}_{name}"] for name in entries if _is_replaced(module, name)}
    return SimpleNamespace(**{**entries, **ours})


def _is_replaced(module: ModuleType, name: str) -> bool:
    return REPLACEMENTS.get(f"{module.__name__}_{name}") is vars(module)[name]


_MODULES = {module.__name__: module for module in (math, time)}
#: What the new names mean.  Types are left out: their names are also used for `isinstance`.
STAND_INS: dict[str, Any] = {
    **{f"__mgjit_{name}__": vars(HELPERS)[name] for name, thing in REPLACEMENTS.items() if not isinstance(thing, type)},
    **{f"__mgjit_{name}__": _stand_in(module) for name, module in _MODULES.items()},
}


def renamed(code: CodeType, namespace: Mapping[str, Any]) -> CodeType:
    """The code of a function, or of one inside it, with other names; the same object when there are none.

    Args:
        namespace: what names of the function mean, builtins included.
    """
    constants = tuple([renamed(part, namespace) if isinstance(part, CodeType) else part for part in code.co_consts])
    if any(new is not old for new, old in zip(constants, code.co_consts)):
        code = code.replace(co_consts=constants)
    new_names = _new_names(code, namespace)
    names = (*code.co_names, *dict.fromkeys(new_names.values()))
    instructions = bytearray(code.co_code)
    for offset, name in new_names.items():
        # Since Python 3.11, the lowest bit says whether the variable is going to be called.
        operand = names.index(name) << _SHIFT | instructions[offset + 1] & _SHIFT
        if operand > 255:
            return code
        instructions[offset + 1] = operand
    changed = code.replace(co_code=bytes(instructions), co_names=names) if new_names else code
    return changed if _global_names(changed) == {**_global_names(code), **new_names} else code


_SHIFT = int(sys.version_info >= (3, 11) and sys.implementation.name == "cpython")


def _new_names(code: CodeType, namespace: Mapping[str, Any]) -> dict[int, str]:
    """The instructions that read a variable under another name, by their offsets."""
    known = {id(original): name for name, original in REPLACEMENTS.items()}
    instructions = [found for found in dis.get_instructions(code) if found.opname != "EXTENDED_ARG"]
    found = {}
    for one, after in zip(instructions, instructions[1:]):
        meant = namespace.get(one.argval) if one.opname == "LOAD_GLOBAL" else None
        if not isinstance(meant, ModuleType):
            new = f"__mgjit_{known.get(id(meant))}__"
        elif _MODULES.get(meant.__name__) is meant and after.opname in _ATTRIBUTES:
            new = f"__mgjit_{meant.__name__}__"
        else:
            continue
        if new in STAND_INS:
            found[one.offset] = new
    return found


_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "LOOKUP_METHOD")


def _global_names(code: CodeType) -> dict[int, str]:
    return {found.offset: found.argval for found in dis.get_instructions(code) if found.opname == "LOAD_GLOBAL"}
