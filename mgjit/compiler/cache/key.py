"""Keys of compiled steps: a hash of everything that decides the machine code, so that equal keys mean equal code.

1. `structure_hash` covers the canonical trace: operations, operands, constants, table layouts, sizes of all
   regions, formats of inputs, and the precision.  Values of parameters, inputs and state are not in a trace at all.
2. `key_parts` adds, each under its name, everything else that changes the binary or decides whether it may run
   here: what the caller chose, the compiler and its flags, mgjit's own sources (sources.py), the machine and its
   C library, the processor where the flags mean more than its whole family, and how the interpreter computes
   `x ** 2`.
3. `entry_key` is the hash of these parts.  Entries keep them, so that one can see why two of them differ.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import xxhash

from ...engine.arithmetic import SQUARE_IS_PRODUCT
from ...errors import CompilerError
from ...ir.parameters import FEWEST_LAID_OUT
from ...ir.trace import InputRegion, Trace
from ..toolchain import features
from .sources import digest_of_sources, package

#: Flags that begin with -m and still produce code for every processor of the family.
_PORTABLE = ("-m32", "-m64", "-msse2", "-mfpmath=sse", "-mcpu=baseline")


def structure_hash(trace: Trace, inputs: Sequence[InputRegion]) -> str:
    """xxh3_128 of the structure of a traced step, as hexadecimal digits."""
    digest = xxhash.xxh3_128()
    digest.update(struct.pack("<q", len(trace)))
    for column in (trace.op, trace.a, trace.b, trace.c):
        digest.update(column if column is not None else b"-")
    digest.update(struct.pack(f"<{len(trace.constants)}d", *trace.constants))
    span = (trace.new_parameters[0][0], trace.new_parameters[-1][0]) if trace.new_parameters else None
    description = (
        trace.layouts,
        span,
        [(base, len(storage), *_laid_out(storage)) for base, storage in trace.bound_storages],
        [(start, len(state), *_kept(state)) for start, state in trace.states],
        trace.locals,
        trace.outputs,
        trace.is_path,
        trace.adjoint_reads,
        [(region.start, region.size, region.format) for region in inputs],
        trace.precision.name,
    )
    digest.update(repr(description).encode())
    if trace.nests:
        digest.update(repr((trace.nests, trace.tensors)).encode())
    return digest.hexdigest()


def _laid_out(storage: Any) -> list[Any]:
    """The layout that another kernel has given a storage, if it has one."""
    return [] if storage.layout is None else [storage.layout.to_json()]


def _kept(state: Any) -> list[Any]:
    """What decides whether a state can get a layout: that a kernel uses it already, and the layout it has then.

    Few numbers never get one.
    """
    is_settled = state._is_new or len(state) < FEWEST_LAID_OUT
    return [] if is_settled else ["kept", state._layout and state._layout.to_json()]


def key_parts(structure: str, compiler: str, flags: Sequence[str], **chosen: str) -> dict[str, str]:
    """Everything that an entry depends on, by name.

    Args:
        structure: from `structure_hash`, or another name for what is compiled.
        compiler: the identity of the compiler.
        flags: its flags.
        chosen: further choices of the caller, such as the mode.
    """
    special = any(flag.startswith("-m") and flag not in _PORTABLE for flag in flags)
    return {
        "structure": structure,
        **chosen,
        "compiler": compiler,
        "flags": " ".join(flags),
        "processor": features.cpu_features().identity if special else "",
        "machine": machine(),
        "square": "product" if SQUARE_IS_PRODUCT else "power",
        "generator": generator_version(),
    }


def entry_key(parts: Mapping[str, str]) -> str:
    """The key of a disk entry: a hash of its parts."""
    return xxhash.xxh3_128_hexdigest(json.dumps(parts, sort_keys=True).encode("ascii"))


@functools.cache
def machine() -> str:
    """Operating system, architecture, word size, byte order, and the C library, whose symbols have versions."""
    bits = 8 * struct.calcsize("P")
    return f"{sys.platform} {platform.machine()} {bits} bits {sys.byteorder} endian {_c_library()}".rstrip()


def _c_library() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):  # not glibc
        return " ".join(platform.libc_ver()).strip() if sys.platform == "linux" else platform.release()


@functools.cache
def generator_version() -> str:
    """A hash of the sources of the passes and the code generator, wherever they were imported from."""
    try:
        found = digest_of_sources(package())
    except OSError as reason:  # no more file descriptors, for example
        raise CompilerError(f"the sources of mgjit's code generator cannot be read: {reason}") from None
    if found:
        return found
    from ..._version import __version__  # of a program frozen without its sources

    return xxhash.xxh3_128_hexdigest(__version__.encode())
