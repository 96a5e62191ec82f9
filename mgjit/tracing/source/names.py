"""Rename what functions without source text call, in their bytecode.

A function that was made by `exec`, or typed into an older REPL, has no source to parse.  But functions that need the
number itself (`math.exp`, `max`, ...) can still be replaced: bytecode finds them by name, so other names, which refer
to the replacements, are put there.  Tests and look-ups are not changed; on traced numbers they raise an error.

1. A global variable that refers to such a function is read under the name of the replacement.
2. A global variable that refers to such a module, and of which an attribute is read, is read under the name of a
   stand-in, which has everything that the module has, and the replacements.
3. This changes one operand of one instruction, and the result is checked: on an interpreter whose bytecode is
   different, the function is left as it is.
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

#: The name under which rewritten code finds the functions of source/semantics.py.
NAME_OF_HELPERS = "__mgjit__"


def _stand_in(module: ModuleType) -> SimpleNamespace:
    entries = vars(module)
    ours = {name: vars(HELPERS)[f"{module.__name__}_{name}"] for name in entries if _is_replaced(module, name)}
    return SimpleNamespace(**{**entries, **ours})


def _is_replaced(module: ModuleType, name: str) -> bool:
    return REPLACEMENTS.get(f"{module.__name__}_{name}") is vars(module)[name]


_MODULES = {module.__name__: module for module in (math, time)}
#: The objects that the new names refer to.  Types are left out, because their names are also used for `isinstance`; but
#: `type(x)` is replaced where it is called.
STAND_INS: dict[str, Any] = {
    **{
        f"__mgjit_{name}__": vars(HELPERS)[name]
        for name, thing in REPLACEMENTS.items()
        if thing is type or not isinstance(thing, type)
    },
    **{f"__mgjit_{name}__": _stand_in(module) for name, module in _MODULES.items()},
}


def renamed(code: CodeType, namespace: Mapping[str, Any]) -> CodeType:
    """The code of a function, or of one inside it, with names replaced; the same object if there is nothing to replace.

    Args:
        namespace: the globals of the function, including builtins.
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


def _is_called(loaded: dis.Instruction, rest: list[dis.Instruction]) -> bool:
    """Whether what an instruction loads is called with one argument.

    Args:
        rest: the instructions behind it.
    """
    if _SHIFT:
        return bool((loaded.arg or 0) & _SHIFT)
    depth = 0  # of the stack above it
    for one in rest:
        if one.opname == "CALL_FUNCTION" and one.arg == depth:
            return depth == 1
        if one.opcode in dis.hasjrel or one.opcode in dis.hasjabs or depth < 0:
            break
        depth += dis.stack_effect(one.opcode, one.arg)
    return False


def _new_names(code: CodeType, namespace: Mapping[str, Any]) -> dict[int, str]:
    """The instructions that are to read another variable: its name, by the offset of the instruction."""
    known = {id(original): name for name, original in REPLACEMENTS.items()}
    instructions = [found for found in dis.get_instructions(code) if found.opname != "EXTENDED_ARG"]
    found = {}
    for k, (one, after) in enumerate(zip(instructions, instructions[1:]), 1):
        meant = namespace.get(one.argval) if one.opname == "LOAD_GLOBAL" else None
        if meant is type and not _is_called(one, instructions[k:]):
            continue
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
