"""The vector width and registers of the processor that code is generated for.

1. Without flags that name a processor: what every machine of this kind has.
2. With `-march=native` alone: what this machine has, without running the compiler.
3. With any other such flags, of `MGJIT_CFLAGS` for example: what the compiler says that it may use, by its macros.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Sequence

from mgjit.compiler.toolchain import features
from mgjit.compiler.toolchain.compilers import Compiler
from mgjit.compiler.toolchain.process import run
from mgjit.compiler.toolchain.target import Processor
from mgjit.engine.precision import FLOAT64, Precision
from mgjit.errors import CompilerError

#: By feature: bytes per vector and number of vector registers; the first one that there is counts.
_WIDTHS = {"avx512f": (64, 32), "avx2": (32, 16), "avx": (32, 16), "aarch64": (16, 32)}

#: The vectors of SSE, which loads no number into all lanes at once, but for float64 from its third version on.
_SSE = (16, 16)
_SSE3 = frozenset(("sse3", "pni"))

#: Flags for this machine, and for any.
_NATIVE = frozenset(("-march=native", "-mcpu=native"))
_ANY = frozenset(("-mcpu=baseline",))
#: So many seconds a compiler may take to say its macros.
_PATIENCE = 20.0


def processor(compiler: Compiler, flags: Sequence[str], precision: Precision = FLOAT64) -> Processor:
    """The processor to schedule for, from the compiler, its flags and the precision."""
    if not compiler.kind.optimises:  # no vectors
        return Processor(lanes=1, registers=12)
    about = [flag for flag in flags if flag.startswith("-m")]
    if not set(about) <= _NATIVE | _ANY:
        known = _told(compiler.argv, compiler.identity, tuple(about))
        fuses = "fma" in known or "arm_feature_fma" in known
    elif _NATIVE & set(about):
        known, fuses = frozenset(features.cpu_features().flags), True
    else:
        known, fuses = frozenset(), False
    size, registers = next((width for flag, width in _WIDTHS.items() if flag in known), _baseline())
    return Processor(
        lanes=size // precision.size,
        registers=registers,
        fuses=fuses and "-ffp-contract=fast" in flags,
        is_fast="-freciprocal-math" in flags,
        spreading=float((size, registers) == _SSE and (precision.size < 8 or _SSE3.isdisjoint(known))),
    )


def _baseline() -> tuple[int, int]:
    return (16, 32) if platform.machine().lower() in ("aarch64", "arm64") else (16, 16)


@functools.cache
def _told(argv: tuple[str, ...], identity: str, flags: tuple[str, ...]) -> frozenset[str]:
    """The names of the features that a compiler may use with such flags; none if it does not say."""
    try:
        code, macros = run([*argv, *flags, "-dM", "-E", "-x", "c", os.devnull], time_limit=_PATIENCE)
    except CompilerError:
        return frozenset()
    words = (line.split() for line in macros.splitlines() if line.startswith("#define __"))
    return frozenset(name[1].strip("_").lower() for name in words) if code == 0 else frozenset()
