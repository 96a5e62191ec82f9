"""Builds and looks up code that members of a family share; families.py says what that is.

1. For each family of the step, see whether the trace is a member.
2. Otherwise, see whether it is a family with a trace that has code of its own.  If so, lower, emit and compile the
   Program of the family, and publish it as an entry of the cache.
3. Publish the entry of the member, which has no library, but names that of the family; and for both founders, whose
   code may be their own, an entry that names it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from time import perf_counter

from ...base import ffi, settings
from ...errors import CompilerError, CompilerMemoryError, CompilerTimeout, DefectWarning, is_defect, user_stacklevel
from ...ir.trace import InputRegion, Trace
from ..cache.about import NAME as ABOUT
from ..cache.about import about
from ..cache.entry import Entry
from ..cache.key import entry_key, structure_hash
from ..cache.store import Store
from ..codegen.c import emit_c
from ..codegen.layout import lay_out
from ..lengths.family import Family, Member
from ..lengths.lengths import Unlike
from ..pipeline.shared import lower_family, member_of
from ..roll.forest import LiftError
from ..simplify.differentiate import DifferentiateError
from ..toolchain import build as toolchain
from ..toolchain import compilers
from ..toolchain.processor import processor
from .choices import facts_of, key_parts_of, optimisation_for, threads_for, vector_functions
from .code import Code
from .families import FAMILY, LIBRARY, SHARING, Alone, Kin, as_metadata, code_of_row, of_metadata
from .options import Options

#: Families and their code, by the key of the entry.
_families: dict[str, tuple[Family, Code]] = {}
#: The families that a trace belongs to, as far as this process has met it; by the key of the entry that names them.
#: Jobs that were started before a family existed find it here (worker.py).
_families_of: dict[str, list[str]] = {}


class Relatives:
    """What a trace may share code with.

    Args:
        store: of entries.
        compiler: for new families.
        options, name: as for `build`.
        kin: what earlier kernels of the step have left.

    Attributes:
        notes: why the trace belongs to no family.
        has_failed: whether no family could be founded.
    """

    def __init__(self, store: Store, compiler: compilers.Compiler, options: Options, name: str, kin: Kin) -> None:
        self._store, self._compiler, self._options = store, compiler, options
        self._name, self._kin = name, kin
        self.notes: list[str] = []
        self.has_failed = False

    def code(self, trace: Trace, inputs: Sequence[InputRegion], structure: str) -> Code | None:
        """The code of a member; None if the trace belongs to no family."""
        started = perf_counter()
        member = member_of(trace, inputs)
        longest = 0
        others = self._kin.others(trace)
        for key in self._keys(others):
            found = self._known(key)
            if found is not None:
                code = self._member(key, found, member, structure, started)
                if code is not None:
                    return code
                longest = max(longest, found[0].longest())
        if len(trace) <= longest:
            return None  # such as a very short one, which is unlike the others
        for other in others:
            self.has_failed = True
            try:
                key, found = self._founded(member_of(other.bound(), other.inputs), member)
            except (Unlike, LiftError, DifferentiateError, CompilerTimeout, CompilerMemoryError) as reason:
                self._note("it shares no code with another length", reason)
                continue
            except Exception as reason:
                if not (is_defect(reason) or isinstance(reason, CompilerError)):
                    raise
                self._note("mgjit has a defect: it shares no code with another length", reason)
                warnings.warn(
                    f"A defect of mgjit: no code can be made for several lengths ({reason!r}), so each gets its own. "
                    "The numbers are right. Please report it, with this text and the step.",
                    DefectWarning,
                    stacklevel=user_stacklevel(),
                )
                continue
            for one, regions in ((other.bound(), other.inputs), (trace, inputs)):
                self._store.put(self._link(one, regions), Entry({LIBRARY: key, ABOUT: self._about(key)}, "", b""))
            _families_of.setdefault(self._link(other.bound(), other.inputs), []).append(key)
            return self._member(key, found, member, structure, started)
        return None

    def _keys(self, others: Sequence[Alone]) -> list[str]:
        """The families that a trace may belong to, the latest first; `others` have other lengths."""
        here = []
        for other in others:
            link = self._link(other.bound(), other.inputs)
            entry = self._store.get(link, again=True)
            here += [*reversed(_families_of.get(link, [])), *([] if entry is None else [entry.metadata[LIBRARY]])]
        return list(dict.fromkeys([*here, *self._kin.keys(self._options)]))

    def _link(self, trace: Trace, inputs: Sequence[InputRegion]) -> str:
        """The key of the entry that names the family of a trace which has code of its own."""
        what = f"the family of {structure_hash(trace, inputs)}"
        return entry_key(key_parts_of(what, self._compiler, self._options, trace))

    def _about(self, key: str) -> object:
        """What people are told about an entry that names a family."""
        entry = self._store.get(key, again=True)
        return None if entry is None else entry.metadata[ABOUT]

    def _note(self, what: str, reason: Exception) -> None:
        text = f"{what}: {reason}"
        if text not in self.notes:
            self.notes.append(text)
        settings.LOGGER.info("%s: %s", self._name, text)

    def _known(self, key: str) -> tuple[Family, Code] | None:
        """A family that has been founded, perhaps by another process."""
        if key not in _families:
            entry = self._store.get(key, again=True)
            library = None if entry is None else self._store.load(key, ffi.load)
            if entry is None or library is None:
                return None
            family = of_metadata(entry.metadata[FAMILY])
            _families[key] = family, Code.of_metadata(entry.metadata, library, entry.source)
        return _families[key]

    def _member(
        self, key: str, found: tuple[Family, Code], member: Member, structure: str, started: float
    ) -> Code | None:
        """The code of a member of a family; None if it is no member."""
        family, shared = found
        try:
            row = family.row(member)
        except (Unlike, LiftError) as reason:
            self._note("it shares no code with other lengths", reason)
            return None
        code = code_of_row(shared, row)
        code.facts.update(
            {FAMILY: (repr(self._options), key), SHARING: f"it shares code with other lengths, family {key[:12]}"},
            structure=structure,
            records=len(member.trace),
            cache="miss" if self._options.cache else "off",
            lower_seconds=perf_counter() - started,
            compile_seconds=0.0,
        )
        own = entry_key(key_parts_of(structure, self._compiler, self._options, member.trace))
        metadata = {**code.metadata(), LIBRARY: key, ABOUT: self._about(key)}
        del metadata["tables"]  # they are those of the family
        self._store.put(own, Entry(metadata, "", b""))
        _families_of.setdefault(self._link(member.trace, member.inputs), []).append(key)
        return code

    def _founded(self, one: Member, other: Member) -> tuple[str, tuple[Family, Code]]:
        """The family of two members, built and published.

        Raises:
            Unlike, LiftError, DifferentiateError: they are no family.
        """
        options, compiler = self._options, self._compiler
        started = perf_counter()
        longest = max(one, other, key=lambda member: len(member.trace)).trace
        flags = toolchain.flags(compiler, options.mode, optimisation_for(compiler, options, 0))
        family, lowered = lower_family(
            one, other, processor(compiler, flags, longest.precision), options.grads, False, options.quick
        )
        structures = sorted(structure_hash(member.trace, member.inputs) for member in (one, other))
        parts = key_parts_of(f"family {' '.join(structures)}", compiler, options, longest)
        key = entry_key(parts)
        layout = lay_out(lowered.program, lowered.memory)
        source = emit_c(
            lowered.program, layout, options.mode, vector_functions(longest, compiler, options),
            threads=threads_for(compiler, options),
        )  # fmt: skip
        emitted = perf_counter()
        optimisation = optimisation_for(compiler, options, lowered.copies, source=source)
        built = toolchain.compile_shared(compiler, source, mode=options.mode, optimisation=optimisation)
        code = Code.of_lowered(lowered, layout, source)
        code.facts = {
            **facts_of(lowered, source, ""),
            "backend": "c",
            "cache": "miss" if options.cache else "off",
            "compiler": built.compiler.command,
            "flags": " ".join(built.flags),
            "lower_seconds": emitted - started,
            "compile_seconds": built.seconds,
        }
        metadata = {**code.metadata(), ABOUT: about(f"{self._name} (a family)", parts, built)}
        self._store.put(key, Entry({**metadata, FAMILY: as_metadata(family)}, source, built.binary))
        code.library = self._store.load(key, ffi.load)
        if code.library is None:
            self._store.remove(key)
            code.library = ffi.load_bytes(built.binary)
        found = _families[key] = family, code
        return key, found
