"""Check that the strict vector functions agree bit for bit with this machine's C library.

The algorithms of the exact_* modules are those of the common libraries; but which library a machine has, and in which
variant for its processor, only a comparison can tell.

1. The outcome for a compiler, its flags and a function is looked up: in this process, then in the disk store.
2. Otherwise the comparison in `checker` is compiled with these flags and run, which takes less than a second.
   After any difference, or any failure to compile or load it, steps call the library instead.
3. The outcome is stored like a compiled step, under a key that covers what decides it: the library, the
   compiler, the flags, the processor, and the sources of the generator.
4. `identity` makes what decides the outcomes part of a step's own key, so that nothing is compared for a step whose
   code exists.
5. Outcomes are needed when code is emitted.  `begin` starts the comparisons before the passes run, in a thread: the
   compiler is a process of its own, and a comparison is C.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from ....base import ffi, settings
from ....base.threads import OwnThread
from ....engine.arithmetic import SQUARE_IS_PRODUCT, exp, log, power, tanh
from ....engine.libm import mapped_libm
from ....errors import CompilerError
from ...cache.about import NAME as ABOUT
from ...cache.about import about
from ...cache.entry import Entry
from ...cache.key import entry_key, key_parts
from ...cache.store import Store, open_store
from ...toolchain import build, features
from ...toolchain.compilers import Compiler

#: The functions that have a vector version: those of `source.EXACT`, which takes longer to import.
FUNCTIONS = ("exp", "log", "tanh", "power")

#: Inputs at which builds of the library with and without fused multiply-add were seen to differ.
_TELLING = {
    "exp": (0.529, 0.663, 1.767, 1.789),
    "log": (float.fromhex("0x1.5f99e5770f320p+0"), float.fromhex("0x1.7b1afa0a7324cp-1")),
    "tanh": (1.195 / 8, 1.241 / 8, 1.324 / 8, 1.577 / 8),
    "power": (2.192, 3.717, 4.514, 8.743),
}

_outcomes: dict[str, bool] = {}


def verified(compiler: Compiler, optimisation: str, function: str, store: Store | None = None) -> bool:
    """Whether a strict vector function, compiled in this way, may replace the library's.

    Args:
        compiler: any; those without vector extensions have no vector functions.
        optimisation: as for `toolchain.build.compile_shared`.
        function: a name in `FUNCTIONS`.
        store: where the outcome is kept; by default the user's disk store.
    """
    if not _has_vectors(compiler, function):
        return False
    parts = _parts(compiler, optimisation, function)
    key = entry_key(parts)
    outcome = _outcomes.get(key)
    return _found(compiler, optimisation, function, store or open_store(), parts) if outcome is None else outcome


def begin(compiler: Compiler, optimisation: str, functions: Sequence[str], store: Store | None = None) -> None:
    """Start the comparisons whose outcomes `verified` will be asked for and this process does not know.

    `verified` waits for the one that is under way, and makes those that could not be started or failed.
    """

    def compare() -> None:
        with contextlib.suppress(Exception):
            for function in unknown:
                verified(compiler, optimisation, function, store)

    unknown = [name for name in candidates(compiler, functions) if not _is_known(compiler, optimisation, name)]
    if unknown:
        from . import checker  # noqa: F401 - the child of a fork would wait for ever for what a thread was importing

        with contextlib.suppress(RuntimeError):  # no more threads
            OwnThread(compare, name="comparison", is_waited_for=True)


def identity(compiler: Compiler, functions: Sequence[str]) -> str:
    """Which of the functions may have a vector version, and what decides whether they have: for cache keys."""
    found = candidates(compiler, functions)
    return f"{' '.join(found)} as in {library_identity()}" if found else ""


def candidates(compiler: Compiler, functions: Sequence[str]) -> list[str]:
    """The functions among these that a compiler can make vector versions of."""
    return [function for function in functions if _has_vectors(compiler, function)]


@functools.cache
def library_identity() -> str:
    """Identifies the C library: its file, the processor, and some results, because one file has several variants."""
    path = mapped_libm() or "unknown"
    try:
        state = os.stat(path)
        version = f"{state.st_mtime_ns}:{state.st_size}"
    except OSError:
        version = "unknown"
    results = [function(x) for function in (exp, log, tanh) for x in _TELLING[function.__name__]]
    results += [power(x, 1.7) for x in _TELLING["power"]]
    return "\n".join(
        [os.path.realpath(path), version, features.cpu_features().identity, *(value.hex() for value in results)]
    )


def _has_vectors(compiler: Compiler, function: str) -> bool:
    if not compiler.kind.optimises or function not in FUNCTIONS:
        return False
    return not (function == "power" and SQUARE_IS_PRODUCT)  # this interpreter's `**` is not the library's pow


def _is_known(compiler: Compiler, optimisation: str, function: str) -> bool:
    return entry_key(_parts(compiler, optimisation, function)) in _outcomes


def _parts(compiler: Compiler, optimisation: str, function: str) -> dict[str, str]:
    """Everything that an outcome depends on."""
    flags = build.flags(compiler, "strict", optimisation)
    return key_parts(f"vector {function}", compiler.identity, flags, library=library_identity())


def _found(compiler: Compiler, optimisation: str, function: str, store: Store, parts: Mapping[str, str]) -> bool:
    """The stored outcome, or that of a comparison, which one thread of one process makes for all."""
    key = entry_key(parts)
    outcome = _stored(store.get(key))
    if outcome is None:
        with store.building(key):
            outcome = _outcomes.get(key)
            if outcome is None:
                outcome = _stored(store.get(key, again=True))
            if outcome is None:
                outcome = _compared(compiler, optimisation, function, store, parts)
            _outcomes[key] = outcome
    return _outcomes.setdefault(key, outcome)


def _stored(entry: Entry | None) -> bool | None:
    differences = None if entry is None else entry.metadata.get("differences")
    return differences == 0 if isinstance(differences, int) else None


def _compared(compiler: Compiler, optimisation: str, function: str, store: Store, parts: Mapping[str, str]) -> bool:
    from .checker import BLOCKS, checker

    source = checker(function)
    try:
        built = build.compile_shared(compiler, source, optimisation=optimisation)
        report = _run(built.binary)
    except CompilerError as reason:
        settings.LOGGER.info("vector %s is not used: %s", function, reason)
        return False
    facts: dict[str, Any] = {"check": function, "inputs": 8 * BLOCKS, "differences": int(report[0])}
    facts[ABOUT] = about(f"check of {function}", parts, built)
    store.put(entry_key(parts), Entry(facts, source, built.binary))
    if report[0]:
        settings.LOGGER.info(
            "vector %s is not used: %d of %d results differ from the library's, first %s(%s%s) = %s instead of %s",
            *(function, report[0], 3 * 8 * BLOCKS, function, report[1].hex()),
            *(f", {report[2].hex()}" if function == "power" else "", report[3].hex(), report[4].hex()),
        )
    return report[0] == 0


def _run(binary: bytes) -> array[float]:
    """Load and run a comparison; returns its report."""
    report = array("d", [math.nan] * 5)
    block = ffi.PointerBlock(1)
    block.set(0, report)
    ffi.load_bytes(binary).function("compare")(block)
    return report
