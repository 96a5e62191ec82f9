"""Keys of compiled steps: what is hashed, so that equal keys mean the same machine code would be made.

1. `structure_hash` covers the canonical trace: operations, operands, constants, table layouts, sizes of all
   regions, formats of inputs, and the precision.  Values of parameters, inputs and state are not in a trace at all.
2. `entry_key` adds everything else that changes the binary or decides whether it may run here: the sources
   of mgjit's own code generator, the compiler's identity and flags, pointer size, byte order, the CPU's
   features where the flags use them, and how the interpreter computes `x ** 2`.
"""

from __future__ import annotations

import functools
import os
import platform
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import xxhash

from ..engine.arithmetic import SQUARE_IS_PRODUCT
from ..passes.memory import InputRegion
from ..trace.recorder import Trace

#: The packages whose sources decide what code a trace becomes.
_GENERATOR = ("ir", "passes", "codegen")


def structure_hash(trace: Trace, inputs: Sequence[InputRegion]) -> str:
    """xxh3_128 of the structure of a traced step, as hexadecimal digits."""
    digest = xxhash.xxh3_128()
    digest.update(struct.pack("<q", len(trace)))
    for column in (trace.op, trace.a, trace.b, trace.c):
        digest.update(column.tobytes() if column is not None else b"-")
    digest.update(struct.pack(f"<{len(trace.constants)}d", *trace.constants))
    parameters = [number for number, _ in trace.new_parameters]
    span = (parameters[0], parameters[-1]) if parameters else None
    description = (
        trace.layouts,
        span,
        [(base, len(storage)) for base, storage in trace.bound_storages],
        [(start, len(state)) for start, state in trace.states],
        trace.locals,
        trace.outputs,
        trace.adjoint_reads,
        [(region.start, region.size, region.format) for region in inputs],
        trace.precision.name,
    )
    digest.update(repr(description).encode())
    return digest.hexdigest()


def entry_key(structure: str, *parts: str) -> str:
    """The key of a disk entry.

    Args:
        structure: of `structure_hash`.
        parts: what the caller chose: mode, compiler identity, flags.
    """
    digest = xxhash.xxh3_128()
    machine = (platform.machine(), struct.calcsize("P"), sys.byteorder, SQUARE_IS_PRODUCT)
    native = cpu_features() if any("native" in part for part in parts) else ""
    digest.update(repr((structure, generator_version(), machine, native, parts)).encode())
    return digest.hexdigest()


@functools.cache
def generator_version() -> str:
    """A hash of the sources of the passes and the code generator."""
    digest = xxhash.xxh3_128()
    root = Path(__file__).resolve().parent.parent
    for package in _GENERATOR:
        try:
            sources = sorted((root / package).rglob("*.py"))
        except OSError:
            sources = []
        if not sources:  # a zip or a frozen program: the version has to do
            from .._version import __version__

            digest.update(__version__.encode())
        for source in sources:
            digest.update(source.name.encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()


@functools.cache
def cpu_features() -> str:
    """What -march=native depends on: the processor's model and feature flags."""
    wanted = ("flags", "Features", "model name", "CPU part", "CPU implementer")
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            found = {line.partition(":")[0].strip(): line for line in lines if line.startswith(wanted)}
        return xxhash.xxh3_128_hexdigest("".join(sorted(found.values())).encode())
    except OSError:
        return f"{platform.processor()} {os.environ.get('PROCESSOR_IDENTIFIER', '')}"
