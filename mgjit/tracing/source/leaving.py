"""Which line of a step leaves something in a list or an object, for messages.

What is left is found after the step has run, where nothing tells when it came there.  So the code of the step, and of
the functions that it calls, is looked through for the first line that may do it: one that assigns to a name, or that
reads it and assigns to an element, or calls a method that changes lists and dicts.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable
from types import FunctionType

from ..surroundings.code import codes

#: Methods that put something into an object.
_FILLING = frozenset({
    "append", "appendleft", "extend", "extendleft", "insert", "add", "update", "setdefault", "push", "put", "write",
})  # fmt: skip


def line_that_fills(name: str, functions: Iterable[FunctionType]) -> str:
    """`file:line` of what puts something into what has a name, in the first function that does; empty if none does.

    Args:
        name: of a variable or an attribute, or a key.
    """
    for function in functions:
        for code in codes(function.__code__):
            starts, line, reads = dict(dis.findlinestarts(code)), 0, False
            for one in dis.get_instructions(code):
                if one.offset in starts:
                    line, reads = starts[one.offset] or line, False
                is_name = one.argval == name and not one.opname.endswith("_FAST")
                stores, assigns = one.opname == "STORE_SUBSCR", one.opname.startswith("STORE_")
                if (is_name and assigns) or (reads and (stores or one.argval in _FILLING)):
                    return f"{code.co_filename}:{line}"
                reads |= is_name
    return ""
