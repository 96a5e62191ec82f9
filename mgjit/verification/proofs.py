"""Comparisons with plain Python that have passed in an earlier process, kept in the disk cache.

The second call of a kernel is made twice because its trace may have taken something wrongly for a constant, or its code
may be wrong.  When a trace of the same structure, with the same constants, of a step with the same bytecode, has passed
with the same code before, that is known, and takes a plain call less.  A later call, chosen at random, is compared as
ever; so is the second one with `verify="always"`.

A proof is a note in the cache (cache/notes.py). There is none where numbers of the step are of numpy's type float64 in
plain Python: which of those that it leaves in a kernel's memory are so, only plain Python shows (memory/live.py).
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING, Any

import xxhash

from ..base import settings
from ..compiler.cache.key import generator_version, machine
from ..compiler.cache.notes import has_note, put_note, remove_note, this_python
from ..compiler.cache.store import Store, open_store

if TYPE_CHECKING:
    from ..compiler.build.code import Code
    from ..compiler.build.options import StepOptions

#: What tells the code of a kernel from other code for the same trace.
_OF_CODE = ("backend", "compiler", "flags", "family")


class Proofs:
    """What is known of the kernels of one step.

    Args:
        function: the step, undecorated. name: as the cache lists it.
        options: of the step.
    """

    def __init__(self, function: Callable[..., Any], name: str, options: StepOptions) -> None:
        self._name, self._options = name, options
        self._function = digest_of(getattr(function, "__code__", None))
        self._passed: set[str] = set()  # the traces, by structure, whose kernels are known to have passed
        self._left_out: set[str] = set()  # those of which there are no proofs

    def leave_out(self, code: Code) -> None:
        """Neither ask for proofs of such a kernel nor make one."""
        self._left_out.add(code.facts.get("structure", ""))

    def has(self, code: Code) -> bool:
        """Whether such a kernel has passed."""
        store = self._store(code)
        if store is None or not has_note(store, self._parts(code)):
            return False
        self._passed.add(code.facts["structure"])
        return True

    def note(self, code: Code, like_before: bool = False) -> None:
        """A kernel has passed.

        Args:
            like_before: it has passed with the code before, and this code computes the same.
        """
        store = self._store(code)
        if store is not None and (not like_before or code.facts["structure"] in self._passed):
            self._passed.add(code.facts["structure"])
            put_note(store, self._parts(code), f"{self._name} (compared with plain Python)")

    def remove(self, code: Code) -> None:
        """A kernel that may have passed has failed."""
        store = self._store(code)
        if store is not None:
            self._passed.discard(code.facts["structure"])
            remove_note(store, self._parts(code))

    def _store(self, code: Code) -> Store | None:
        """Where proofs of this code are; None where there can be none."""
        structure = code.facts.get("structure", "")
        is_named = bool(self._function and structure and structure not in self._left_out)
        if not is_named or not self._options.code.cache or settings.verify(self._options.verify) != "auto":
            return None
        return open_store()

    def _parts(self, code: Code) -> dict[str, str]:
        return {
            "compared": code.facts["structure"],
            "step": self._function,
            "phases": "separate" if self._options.code.separate else "",
            **{name: str(code.facts.get(name, "")) for name in _OF_CODE},
            "python": this_python(),
            "machine": machine(),
            "generator": generator_version(),
        }


def digest_of(code: CodeType | None) -> str:
    """A hash of the bytecode of a function and of those in it, wherever they are in their file; empty for none."""
    if code is None:
        return ""
    digest = xxhash.xxh3_128(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags)).encode())
    for constant in code.co_consts:
        text = digest_of(constant) if isinstance(constant, CodeType) else _shown(constant)
        digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _shown(constant: Any) -> str:
    """A constant of bytecode as a text that is the same in each process: sets are not in the same order."""
    return f"{sorted(map(repr, constant))}" if isinstance(constant, frozenset) else repr(constant)
