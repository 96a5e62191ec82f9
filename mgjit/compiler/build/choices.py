"""What is chosen before code is made for a trace: optimisation and vector functions; and the key of its entry.

Code of a trace by itself (build.py) and code that lengths share (relatives.py) are both made with these.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from ...errors import CompilerError
from ...ir.opcodes import EXP, LOG, NUMBER, POWER, TAKE, TANH
from ...ir.trace import Trace
from ..cache.key import key_parts
from ..toolchain import build as toolchain
from ..toolchain import compilers
from .options import Options

if TYPE_CHECKING:
    from ..pipeline.pipeline import Lowered

#: With more statements than this, compiler optimisations of straight-line code take longer than they are worth.
_FEW_STATEMENTS = 200
_SOME_STATEMENTS = 1_000
_MANY_STATEMENTS = 20_000
_VERY_MANY_STATEMENTS = 100_000

#: With at least this many calls of a mathematical function in a trace, its vector version is verified and used.
_MANY_CALLS = 64


def import_generator() -> None:
    """Import the passes and backends, which a process that finds its code on disk does without.

    Raises:
        CompilerError: they cannot be imported, for example because there are no more file descriptors.
    """
    try:
        from ..codegen import c, layout, python  # noqa: F401 - from now on, importing them again cannot fail
        from ..codegen.mathematics import checker, verification  # noqa: F401
        from ..pipeline import pipeline  # noqa: F401
        from ..toolchain import processor  # noqa: F401
        from . import relatives  # noqa: F401
    except (ImportError, OSError) as reason:
        raise CompilerError(f"mgjit's code generator cannot be imported: {reason}") from None


def key_parts_of(structure: str, compiler: compilers.Compiler, options: Options, trace: Trace) -> dict[str, str]:
    """Everything that the entry of a step depends on."""
    optimisation = optimisation_for(compiler, options, 0)
    flags = toolchain.flags(compiler, options.mode, optimisation)
    return key_parts(
        structure,
        compiler.identity,
        flags,
        mode=options.mode,
        gradients="kept" if options.grads else "where read",
        vectors=_vectors(compiler, trace) if options.mode == "strict" and not options.scheduled else "",
        cache_key=options.cache_key,
        threads=str(threads_for(compiler, options)),
        phases="separate" if options.separate else "one step",
        tier="scheduled quickly" if options.scheduled else "quick" if options.quick else "best",
    )


def begin_verification(trace: Trace, compiler: compilers.Compiler, options: Options) -> None:
    """Compare the vector versions that code for a trace may use, while passes run; `vector_functions` waits for it."""
    frequent = _frequent(trace) if options.mode == "strict" and not options.scheduled else []
    if frequent:
        _verification().begin(compiler, optimisation_for(compiler, options, 0), frequent)


def vector_functions(trace: Trace, compiler: compilers.Compiler, options: Options) -> frozenset[str]:
    """The mathematical functions that have a vector version: in strict mode, those that were verified."""
    from ..codegen.mathematics import verification
    from ..codegen.mathematics.source import EXACT

    if options.mode == "fast":
        return frozenset(EXACT)
    if options.scheduled:
        return frozenset()  # they take longer to compare than the first calls to run
    optimisation = optimisation_for(compiler, options, 0)
    return frozenset(name for name in _frequent(trace) if verification.verified(compiler, optimisation, name))


def _vectors(compiler: compilers.Compiler, trace: Trace) -> str:
    """Which vector versions of mathematical functions strict code may use, and what decides it."""
    frequent = _frequent(trace)
    return str(_verification().identity(compiler, frequent)) if frequent else ""


def _verification() -> Any:
    """The module, which is imported when a step calls mathematical functions often.

    Raises:
        CompilerError: it cannot be imported.
    """
    try:
        from ..codegen.mathematics import verification
    except (ImportError, OSError) as reason:
        raise CompilerError(f"mgjit's code generator cannot be imported: {reason}") from None
    return verification


def _frequent(trace: Trace) -> list[str]:
    """The functions that are called often enough to verify their vector versions, once per machine."""
    names = {"exp": EXP, "log": LOG, "tanh": TANH, "power": POWER}
    # The lowest byte of an opcode says which operation it is, unless there are very many layouts; bytes count fast.
    lowest = 0 if sys.byteorder == "little" else trace.op.itemsize - 1
    codes: Any = trace.op.tobytes()[lowest :: trace.op.itemsize]
    if TAKE + len(trace.layouts) > 256:
        codes = [code & (NUMBER - 1) for code in trace.op]
    in_nests: Counter[str] = Counter()
    for nest in trace.nests:
        for step in nest.body.steps:
            in_nests[step.operation] += math.prod((*nest.outer, *nest.inner))
    return [name for name, code in names.items() if codes.count(code) + in_nests[name] >= _MANY_CALLS]


#: What a vector would be made of was stored as single numbers a moment ago, which processors take their time for.
_NO_VECTORS = "-fno-tree-vectorize -fno-tree-slp-vectorize"


def optimisation_for(
    compiler: compilers.Compiler, options: Options, statements: int, is_straight: bool = False, source: str = ""
) -> str:
    """The flags for a Program of so many statements.

    Args:
        is_straight: whether it is a short one without loops.
        source: its C, for what a compiler gets wrong.
    """
    if options.optimisation is not None:
        return options.optimisation
    if statements > _MANY_STATEMENTS:
        return f"{'-O1' if statements <= _VERY_MANY_STATEMENTS else '-O0'} {toolchain.native()}"
    if options.scheduled:
        # gcc takes half as long at -Og as at -O1, and what it makes of vectors in registers runs nearly as fast.
        level = "-Og -fmove-loop-invariants" if compiler.family == "gcc" else "-O1"
        return f"{level} {toolchain.native()}"
    level = "-O2"
    if is_straight:  # every number of it is on its own
        return f"{level} {_NO_VECTORS} {toolchain.native()}"
    if compiler.family == "gcc" and statements <= _FEW_STATEMENTS:
        # Unrolls and vectorises the remaining short loops, in twice the compile time of -O2.  What is left out adds
        # vectors that overlap in memory from one iteration to the next in another order (gcc 12).
        level = "-O3 -fno-loop-unroll-and-jam -fno-loop-interchange"
        if "const long long *" in source:
            # gcc 12 for AVX2 chooses wrongly between numbers and elements of arrays of ints of 64 bits.
            level += " -fno-tree-loop-vectorize"
    elif compiler.family == "gcc" and options.mode == "strict" and statements > _SOME_STATEMENTS:
        # Strict code is as fast as with -O2, in half of the compile time; what is left out looks at single bits.
        level = "-O1 -fgcse -fno-tree-bit-ccp"
    return f"{level} {toolchain.native()}"


def threads_for(compiler: compilers.Compiler, options: Options) -> int:
    """How many threads share the loops of a call: one where the code does not live long, or no thread can be named."""
    return options.threads if compiler.kind.optimises and not options.quick and sys.platform != "win32" else 1


def facts_of(lowered: Lowered, source: str, structure: str) -> dict[str, Any]:
    """What `.stats` says of a build."""
    return {
        "structure": structure,
        "records": lowered.records,
        "loops": lowered.loops,
        "statements": lowered.statements,
        "lines": source.count("\n"),
        "bytes": len(source),
        "notes": lowered.notes,
        "stages": lowered.seconds,
    }
