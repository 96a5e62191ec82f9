"""Generated C: small golden files, exact literals, the same numbers as the interpreter under every compiler."""

from __future__ import annotations

import math
import os
import struct
import subprocess
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.base import ffi
from mgjit.compiler.codegen.c import emit_c
from mgjit.compiler.codegen.layout import Layout, lay_out
from mgjit.compiler.codegen.scalar import float_literal
from mgjit.compiler.toolchain import compilers
from mgjit.compiler.toolchain.target import Processor
from mgjit.engine.precision import FLOAT32, FLOAT64, PRECISIONS, Precision, float32
from mgjit.engine.state import zero_array
from mgjit.ir.program import Array, Constant, Index, Load, Loop, Program, Reference, Register, Statement
from tests.backends import in_c, interpreted
from tests.compiler.codegen.native import compile_c, find, run_native, working
from tests.lowering import SCALAR, WIDE, Example, bits, numbers

ROOT = Path(__file__).resolve().parents[3]


def dot() -> Example:
    """A dot product."""
    ws = [mgjit.Value(v) for v in numbers(5)]
    return Example(lambda xs: mgjit.dot(ws, xs), numbers(5, 2))


def training() -> Example:
    """One neuron, its gradient, its update."""
    w, b = mgjit.Value(0.5), mgjit.Value(0.1)

    def step(x: Any, rate: Any) -> Any:
        loss = (w * x + b) ** 2
        w.grad = b.grad = 0.0
        loss.backward()
        w.data -= rate * w.grad
        b.data -= rate * b.grad
        return loss

    return Example(step, 0.7, 0.1)


def tables() -> Example:
    """An index table, a mixture of arrays, a look-up, a byte buffer."""
    ws = [mgjit.Value(v) for v in numbers(8)]

    def step(raw: Any, i: Any) -> Any:
        found = [mgjit.exp(w * x) for w, x in zip(ws[:4], raw)] + [mgjit.tanh(w * 0.5) for w in ws[:4]]
        picked = [found[k] * ws[j] for k, j in zip([0, 5, 2, 7, 1, 4, 3, 6], [4, 1, 6, 2, 2, 7, 0, 5])]
        return picked, mgjit.take(ws, i)

    return Example(step, bytes([1, 2, 3, 4]), 3)


def functions() -> Example:
    """Every operation once."""
    a, b = mgjit.Value(0.3), mgjit.Value(-0.7)

    def step(x: Any) -> Any:
        return (
            a + b, a - b, a * b, x / 3.0, a**2.5, -a, abs(b), a.relu(), mgjit.exp(a), mgjit.log(a), mgjit.tanh(a),
            mgjit.sqrt(a), mgjit.maximum(a, b), mgjit.minimum(a, b), a < x, a <= x, x == 1.0, x != 1.0,
            mgjit.where(x > 0.1, a, b), math.inf * x, -math.inf * x, math.nan * x, -0.0 * x, 5e-324 * x, 0.1 * x,
        )  # fmt: skip

    return Example(step, 0.4)


EXAMPLES = [dot, training, tables, functions]


def source(made: Example, processor: Processor = WIDE) -> tuple[Program, Layout, str]:
    """The final Program of an example, its layout and its C."""
    program = made.lower(processor=processor)
    layout = lay_out(program, made.memory)
    return program, layout, emit_c(program, layout)


@pytest.mark.skipif(sys.implementation.name == "pypy", reason="power of PyPy adds a function to the C of PyPy")
@pytest.mark.parametrize("example", EXAMPLES)
def test_01_golden(example: Callable[[], Example], golden: Callable[[str, str], None]) -> None:
    """Any change of the generated code shows as a difference of these files."""
    golden(f"{example.__name__}.c", source(example())[2])


@pytest.mark.parametrize("example", [functions, tables])
def test_01_golden_of_float32(example: Callable[[], Example], golden: Callable[[str, str], None]) -> None:
    """Other literals, another type, other powers; the same on every interpreter."""
    golden(f"{example.__name__}_float32.c", source(example().in_float32())[2])


def test_02_no_headers_and_pure_functions() -> None:
    """No #include, an entry for the step or for each phase, nothing static that could be written."""
    phases = ("forward", "backward", "update")
    for separate in (False, True):
        made = training()
        program = made.lower(separate=separate)
        text = emit_c(program, lay_out(program, made.memory))
        assert "#include" not in text
        for name in (*phases, "step", "loop"):
            expected = int((name in phases) is separate)
            assert text.count(f"EXPORT int mgjit_{name}(void *const *") == expected
        assert all("(" in line for line in text.splitlines() if line.startswith("static"))


LITERALS = [
    0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 1e15, 123456789.0, 2.0**53, 2.0**53 + 2, 1e300, -1e300, 5e-324, -5e-324,
    2.2250738585072014e-308, 1.7976931348623157e308, math.pi, math.inf, -math.inf, math.nan, 1e22, 1 / 3,
]  # fmt: skip


def test_03_literals_have_no_decimal_rounding() -> None:
    """Integers are decimal, everything else hexadecimal or an expression."""
    for value in LITERALS:
        text = float_literal(value)
        assert "," not in text
        if math.isfinite(value):
            assert bits(float.fromhex(text) if "0x" in text else float(text)) == bits(value)
        else:
            assert "/ 0.0" in text
        single = float32(value)
        text = float_literal(single, FLOAT32)
        assert text.rstrip(")")[-1] == "f"
        if math.isfinite(single):
            assert bits(float.fromhex(text[:-1]) if "0x" in text else float(text[:-1])) == bits(single)


@pytest.mark.parametrize("family", working())
@pytest.mark.parametrize(("precision", "kind"), [(FLOAT64, "double"), (FLOAT32, "float")], ids=["double", "float"])
def test_04_literals_survive_the_compiler(family: str, precision: Precision, kind: str) -> None:
    """Every bit, signed zeros and denormals included, as constants and in arithmetic."""
    numbers = [precision.rounded(value) for value in (*LITERALS, 2.0**-149, 3.4028234663852886e38)]
    body = "\n".join(f"    y[{k}] = {float_literal(value, precision)};" for k, value in enumerate(numbers))
    text = f"int literals(void *const *m) {{ {kind} *y = ({kind} *)m[0];\n{body}\n    return 0; }}\n"
    library = compile_c(find(family), '__attribute__((visibility("default"))) ' + text)
    block, found = ffi.PointerBlock(1), zero_array(len(numbers), precision)
    block.set(0, found)
    library.function("literals")(block)
    assert [bits(x) for x in found] == [bits(x) for x in numbers]


@pytest.mark.parametrize("family", working())
@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_05_the_same_numbers_as_the_interpreter(example: Callable[[], Example], family: str, dtype: str) -> None:
    """The compiled functions leave in memory what the reference interpreter does."""
    made = example() if dtype == "float64" else example().in_float32()
    program, layout, text = source(made, SCALAR if family == "tcc" else WIDE)
    expected = made.run(program)
    memory = run_native(made, program, layout, compile_c(find(family), text))
    for place, content in memory.items():
        assert [bits(x) for x in content] == [bits(x) for x in expected[place]], place


def test_07_the_text_is_reproducible() -> None:
    """Another process with another hash seed writes the same C."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.compiler.codegen.test_c import EXAMPLES, source\n"
        "import hashlib\n"
        "print(hashlib.sha256(''.join(source(e())[2] for e in EXAMPLES).encode()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1


def test_08_struct_sizes_of_formats() -> None:
    """The C types of buffer elements have the sizes that Python's formats have here."""
    from mgjit.compiler.codegen.function import TYPES

    compiler = compilers.find()
    if compiler is None:
        pytest.skip("no C compiler is installed")
    codes = sorted(TYPES)
    body = "".join(f"y[{k}] = sizeof({TYPES[code]});" for k, code in enumerate(codes))
    text = (
        f'__attribute__((visibility("default"))) int sizes(void *const *m) {{ int *y = (int *)m[0]; {body} return 0; }}'
    )
    block, found = ffi.PointerBlock(1), array("i", [0] * len(codes))
    block.set(0, found)
    compile_c(compiler, text).function("sizes")(block)
    assert list(found) == [struct.calcsize(code) for code in codes]


@pytest.mark.parametrize("family", working())
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("code", list("bBhHiIlLqQ"))
def test_09_integers_of_every_kind(code: str, dtype: str, family: str) -> None:
    """The ends of their range, as numbers and as an index: tcc lacks the functions for 64 bits without a sign."""
    find(family)
    bits_of_one = 8 * array(code).itemsize
    ends = [0, 2**bits_of_one - 1] if code.isupper() else [-(2 ** (bits_of_one - 1)), 2 ** (bits_of_one - 1) - 1]
    w = mgjit.Value(1.0)

    @mgjit.compile(compiler=family, dtype=dtype, cache=False)
    def step(xs: Any) -> Any:
        return [w * x for x in xs], mgjit.take([0.5, 0.25, 0.125], xs[-1])

    rounded = PRECISIONS[dtype].rounded
    for last in (0, 1, 2, 1):
        numbers = [*ends, ends[1] - 1, ends[1] // 2, ends[1] // 2 + 1, last]
        found = step(array(code, numbers))
        assert [float(x) for x in found[0]] == [rounded(float(x)) for x in numbers]
        assert found[1] == [0.5, 0.25, 0.125][last]


@pytest.mark.parametrize("count", [2, 4, 8])
@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_sums_that_run_backwards_through_two_loops(family: str, count: int) -> None:
    """Which gcc 12 computes wrong, with AVX, where it unrolls the inner loop."""
    x, y, total = Array("x0", "input", 64), Array("p0", "parameter", 64), Array("p1", "parameter", 1, 1)
    i, j = Loop(8, [], reverse=True), Loop(count, [], reverse=True)
    index = Index(0, ((i, count), (j, 1)))
    product = Statement("multiply", (Load(Reference(x, index)), Load(Reference(y, index))))
    target = Reference(total, Index(0))
    j.body = [product, Statement("add", (Register(product),), target, update=True)]
    i.body = [j]
    contents = {x: [0.37 * k + 1.1 for k in range(64)], y: [1.0 / (k + 1.5) for k in range(64)], total: [1.0]}
    for optimisation in ("-O2 -march=native", "-O3 -march=native"):
        assert in_c(Program([i]), contents, family, optimisation) == interpreted(Program([i]), contents)


@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_elements_that_a_condition_chooses(family: str) -> None:
    """Which gcc 12.2 reads with the conditions of other elements, with AVX, if only some of them are read."""
    for count in (5, 6, 7):
        size = 6 * count
        mask, x, y = (
            Array("x0", "input", size),
            Array("p0", "parameter", 2 * size),
            Array("p1", "parameter", 2 * size, 1),
        )
        i, j, k = Loop(2, []), Loop(6, []), Loop(count, [])
        shared, own = Index(0, ((j, count), (k, 1))), Index(0, ((i, size), (j, count), (k, 1)))
        operands = (Load(Reference(mask, shared)), Load(Reference(x, own)), Constant(-1.5))
        i.body, j.body, k.body = [j], [k], [Statement("select", operands, Reference(y, own))]
        contents = {
            mask: [float(k % count <= k // count) for k in range(size)],
            x: numbers(2 * size),
            y: [0.0] * 2 * size,
        }
        assert in_c(Program([i]), contents, family, "-O3 -march=native") == interpreted(Program([i]), contents)
