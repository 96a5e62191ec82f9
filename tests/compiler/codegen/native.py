"""Compiling generated C and running it on the memory of an example."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import pytest

import mgjit
from mgjit.base import ffi
from mgjit.compiler.codegen.layout import Layout
from mgjit.compiler.toolchain import build, compilers
from mgjit.ir.program import Array, Program
from tests.lowering import Example, JoinedMemory

PHASES = ("forward", "backward", "update")


def compile_c(compiler: compilers.Compiler, text: str, optimisation: str = "-O2") -> ffi.Library:
    """The library of a source."""
    return ffi.load_bytes(build.compile_shared(compiler, text, optimisation=optimisation).binary)


def working() -> list[Any]:
    """A parameter for each compiler family; those that are not installed are skipped by name."""
    return [pytest.param(family, id=family) for family in ("gcc", "clang", "tcc")]


def find(family: str) -> compilers.Compiler:
    """The compiler of a family."""
    try:
        compiler = compilers.find(family)
    except mgjit.errors.CompilerError:
        compiler = None
    if compiler is None:
        pytest.skip(f"{family} is not installed")
    return compiler


def run_native(
    made: Example, program: Program, layout: Layout, library: ffi.Library, functions: Sequence[str] = ("step",)
) -> dict[Array, Any]:
    """What some functions of a library leave in memory."""
    kind = program.precision.format
    memory: dict[Array, Any] = {
        a: array(a.format if a.space == "input" else kind, c)
        if a.joined is None
        else JoinedMemory(a.joined, [array(kind, part) for part in c.parts])
        for a, c in made.contents().items()
    }
    buffers = made.buffers(layout, program, memory)
    tables = layout.slot_number("table")
    kept = [array("i" if k == tables else kind, b) if isinstance(b, list) else b for k, b in enumerate(buffers)]
    block = ffi.PointerBlock(len(buffers))
    for number, buffer in enumerate(kept):
        if buffer is not None and len(buffer):
            block.set(number, buffer)
    for name in functions:
        library.function(f"mgjit_{name}")(block)
    return memory
