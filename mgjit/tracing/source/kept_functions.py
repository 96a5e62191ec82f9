"""Functions of math and Python's own that are called by another name than theirs (source/rewriting.py).

`f = math.tanh; f(x)`, `self.activation(x)`, `ACTIVATIONS[name](x)`: a call asks for the replacement of what it calls
(`semantics.kept`), if that may be such a function.

1. The survey has noted the names of variables and attributes that hold one, and whether a container does.
2. Where code loads one of math other than to call it, it may be anywhere from then on.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable
from types import CodeType
from typing import NamedTuple

from ..surroundings.allowed import Outside
from ..surroundings.code import codes
from .meanings import Meanings


class Kept(NamedTuple):
    """Where functions that are replaced may lie.

    Attributes:
        names: of variables and attributes. anywhere: whether any variable or element may be one.
    """

    names: frozenset[str]
    anywhere: bool

    @classmethod
    def of(cls, outside: Outside, known: Iterable[tuple[CodeType, Meanings]]) -> Kept:
        """Of a step.

        Args:
            outside: what its survey has noted.
            known: the code of its functions, with what its names mean.
        """
        anywhere = outside.has_builtins_anywhere or any(_passes_on(code, meant) for code, meant in known)
        return cls(outside.builtins, anywhere)

    def within(self, code: CodeType) -> Kept:
        """What of this matters to a function."""
        named = {name for inner in codes(code) for name in (*inner.co_names, *inner.co_freevars)}
        return Kept(self.names & named, self.anywhere)


def _passes_on(code: CodeType, meant: Meanings) -> bool:
    """Whether code may do anything but call a function of math that it names."""
    named = {name.rpartition(".")[2] for name, meaning in meant if meaning.startswith("math_")}
    return bool(named) and any(_loads_one_of(inner, named) for inner in codes(code))


def _loads_one_of(code: CodeType, names: set[str]) -> bool:
    """Whether code loads a function of these names as a value, as far as bytecode tells this from a call."""
    found = list(dis.get_instructions(code))
    for this, following in zip(found, found[1:]):
        if this.argval in names and this.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_DEREF")):
            is_called = following.opname == "PUSH_NULL"
            if sys.version_info >= (3, 12) or (sys.version_info >= (3, 11) and this.opname == "LOAD_GLOBAL"):
                is_called = is_called or bool((this.arg or 0) & 1)
            if not is_called:
                return True
    return False
