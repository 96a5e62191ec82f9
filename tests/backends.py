"""Running Programs that belong to no trace in every back end: the interpreter, generated Python, generated C."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mgjit.base import ffi
from mgjit.compiler.codegen.c import emit_c
from mgjit.compiler.codegen.layout import Layout, lay_out
from mgjit.compiler.codegen.python import emit_python, load_python
from mgjit.ir.interpreter import Interpreter
from mgjit.ir.opcodes import GRADIENT, INPUT, OUTPUT, PARAMETER, STATE
from mgjit.ir.program import Array, Program
from tests.compiler.codegen.native import compile_c, find
from tests.handmade import visible
from tests.lowering import Example, bits

_SPACES = {"parameter": PARAMETER, "gradient": GRADIENT, "state": STATE, "input": INPUT, "output": OUTPUT}

Contents = Mapping[Array, Sequence[float]]


class FlatMemory:
    """The memory map of a Program: each array that is not scratch is a region of its space.

    Args:
        arrays: all of them.
        gradient: the array of the gradients of another one.
    """

    def __init__(self, arrays: Sequence[Array], gradient: Callable[[Array], Array | None] = lambda one: None) -> None:
        self.gradient = gradient
        self.adjoint_reads: dict[tuple[Array, int], Array] = {}
        self.regions: dict[int, list[tuple[int, Array]]] = {kind: [] for kind in _SPACES.values()}
        for one in arrays:
            found = self.regions[_SPACES[one.space]]
            found.append((sum(other.size for _, other in found), one))
        if not self.regions[OUTPUT]:
            self.regions[OUTPUT].append((0, Array("y", "output", 1)))


def interpreted(program: Program, contents: Contents) -> list[list[bytes]]:
    """What the interpreter leaves in memory."""
    memory: dict[Array, Any] = {one: list(content) for one, content in contents.items()}
    Interpreter(program, memory).run()
    return _bits(memory)


def in_python(program: Program, contents: Contents) -> list[list[bytes]]:
    """What generated Python leaves in memory."""
    layout = lay_out(program, FlatMemory(visible(program)))  # type: ignore[arg-type]
    functions = load_python(emit_python(program, layout))
    memory: dict[Array, Any] = {one: list(content) for one, content in contents.items()}
    functions["step"](Example.buffers(layout, program, memory))
    return _bits(memory)


def in_c(program: Program, contents: Contents, family: str, optimisation: str = "-O2") -> list[list[bytes]]:
    """What generated C leaves in memory."""
    layout: Layout = lay_out(program, FlatMemory(visible(program)))  # type: ignore[arg-type]
    library = compile_c(find(family), emit_c(program, layout), optimisation)
    kind = program.precision.format
    memory: dict[Array, Any] = {one: array(kind, content) for one, content in contents.items()}
    buffers = Example.buffers(layout, program, memory)
    tables = layout.slot_number("table")
    kept = [array("i" if k == tables else kind, b) if isinstance(b, list) else b for k, b in enumerate(buffers)]
    block = ffi.PointerBlock(len(buffers))
    for number, buffer in enumerate(kept):
        if buffer is not None and len(buffer):
            block.set(number, buffer)
    library.function("mgjit_step")(block)
    return _bits(memory)


def _bits(memory: Mapping[Array, Sequence[float]]) -> list[list[bytes]]:
    return [[bits(x) for x in content] for content in memory.values()]
