"""Strict C for NEON, cross-compiled and run by QEMU: bit for bit what the undecorated step computes.

Nothing here calls the mathematical library, whose last bits may differ from machine to machine.  Skipped where
gcc-aarch64-linux-gnu, libc6-dev-arm64-cross or qemu-user is missing.
"""

from __future__ import annotations

import random
import shutil
from array import array
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.base import ffi
from mgjit.compiler.codegen.c import emit_c
from mgjit.compiler.codegen.layout import lay_out
from mgjit.compiler.toolchain import build
from mgjit.compiler.toolchain.compilers import Compiler
from mgjit.compiler.toolchain.processor import processor
from mgjit.compiler.toolchain.target import Processor
from mgjit.engine.precision import FLOAT32, FLOAT64
from tests.compiler.codegen.native import compile_c, find
from tests.compiler.codegen.sanitizers import Case, Kernel, check
from tests.lowering import Example, bits

CROSS, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
MISSING = [tool for tool in (CROSS, EMULATOR) if shutil.which(tool) is None]

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(ffi.PYPY, reason="CPython's buffers"),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]

CPU = "-mcpu=cortex-a72"


def cross() -> Compiler:
    return Compiler("gcc", (CROSS,), shutil.which(CROSS) or CROSS)


def numbers(count: int, seed: int) -> list[float]:
    draw = random.Random(seed)
    return [draw.uniform(-1.0, 1.0) for _ in range(count)]


def network() -> Example:
    """Layers with relu over a batch, its gradients, and an update with weight decay."""
    random.seed(5)
    model = nn.MLP(11, [9, 3])

    def step(rows: Any, targets: Any, rate: Any) -> Any:
        loss = mgjit.Value(0.0)
        for row, target in zip(rows, targets):
            for score in model(row):
                loss = loss + (score - target) * (score - target)
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= rate * (p.grad + 0.01 * p.data)
        return loss

    return Example(step, [numbers(11, k) for k in range(4)], numbers(4, 9), 0.05)


def regression() -> Example:
    """A sum over many features, with a root and a quotient."""
    ws = [mgjit.Value(w) for w in numbers(75, 1)]

    def step(xs: Any, y: Any) -> Any:
        error = mgjit.dot(ws, xs) - y
        loss = mgjit.sqrt(error * error + 1.0) / 3.0
        for w in ws:
            w.grad = 0.0
        loss.backward()
        for w in ws:
            w.data -= 0.01 * w.grad
        return loss, mgjit.maximum(loss, error)

    return Example(step, numbers(75, 2), 0.3)


def tables() -> Example:
    """An index table, a look-up at a place that is an argument, and bytes."""
    ws = [mgjit.Value(v) for v in numbers(8, 3)]

    def step(raw: Any, i: Any) -> Any:
        found = [w * x for w, x in zip(ws, raw)]
        return [found[k] * ws[j] for k, j in zip([0, 5, 2, 7, 1, 4], [4, 1, 6, 2, 2, 7])], mgjit.take(ws, i)

    return Example(step, bytes(range(1, 9)), 3)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("example", [network, regression, tables])
def test_01_bit_for_bit(example: Callable[[], Example], dtype: str) -> None:
    """Scheduled for two or four lanes; in memory is what the interpreter computes, and what this machine does."""
    made = example() if dtype == "float64" else example().in_float32()
    kind = processor(cross(), build.flags(cross(), "strict", f"-O2 {CPU}"), FLOAT64 if dtype == "float64" else FLOAT32)
    program = made.lower(processor=kind)
    layout = lay_out(program, made.memory)
    case = Case(emit_c(program, layout), layout)
    assert f"real{kind.lanes} " in case.source  # there are vectors in it
    kernel = Kernel(case, program, compile_c(find("gcc"), case.source))
    number = program.precision.format
    memory = {a: array(a.format if a.space == "input" else number, c) for a, c in made.contents().items()}
    kernel.run(memory)
    for place, content in made.run(program).items():
        assert [bits(x) for x in memory[place]] == [bits(x) for x in content], place
    assert check(case, cross(), ("-O2", CPU, "-static"), (EMULATOR,)) == ""


def test_02_what_is_scheduled_for() -> None:
    """128 bits and 32 registers, told by the cross compiler; fused only in fast mode."""
    for mode, precision, lanes in (("strict", FLOAT64, 2), ("strict", FLOAT32, 4), ("fast", FLOAT32, 4)):
        is_fast = mode == "fast"
        flags = build.flags(cross(), mode, f"-O2 {CPU}")
        assert processor(cross(), flags, precision) == Processor(lanes, 32, fuses=is_fast, is_fast=is_fast)


def test_03_a_difference_would_be_seen() -> None:
    """One wrong operation in the source."""
    made = regression()
    program = made.lower(processor=Processor(2, 32))
    layout = lay_out(program, made.memory)
    case = Case(emit_c(program, layout), layout)
    kernel = Kernel(case, program, compile_c(find("gcc"), case.source))
    number = program.precision.format
    kernel.run({a: array(a.format if a.space == "input" else number, c) for a, c in made.contents().items()})
    case.source = case.source.replace("SQUARE_ROOT(v", "ABSOLUTE(v")
    assert "instead of" in check(case, cross(), ("-O2", CPU, "-static"), (EMULATOR,))
