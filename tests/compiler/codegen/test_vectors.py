"""Vector code: every operation, every width, every compiler, special numbers, and accesses of every kind."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.compiler.codegen.c import emit_c
from mgjit.compiler.codegen.layout import lay_out
from mgjit.compiler.codegen.mathematics import verification
from mgjit.compiler.codegen.vectors import Vectors
from mgjit.compiler.toolchain import build
from mgjit.compiler.toolchain.target import Processor
from mgjit.engine.precision import FLOAT32
from mgjit.ir.program import Loop, Program, walk
from tests.compiler.codegen.native import PHASES, compile_c, find, run_native
from tests.lowering import SCALAR, WIDE, Example, bits, numbers, sgd

pytestmark = pytest.mark.once

PROCESSORS = [Processor(2, 16), Processor(4, 16), WIDE, Processor(16, 32)]
EVERY = pytest.mark.parametrize("processor", PROCESSORS, ids=lambda processor: f"{processor.lanes}lanes")
FAMILIES = pytest.mark.parametrize("family", ["gcc", "clang"])

SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1e308, -1e308, 0.5, 2.0, 1e-300, 3.0]


def pairs() -> tuple[list[float], list[float]]:
    """Every special number with every other, and some more."""
    xs = [x for x in SPECIAL for _ in SPECIAL] + numbers(10)
    ys = [y for _ in SPECIAL for y in SPECIAL] + numbers(10, 2)
    return xs, ys


def run(made: Example, processor: Processor, family: str, optimisation: str = "-O2", **kept: Any) -> str:
    """Compare all memory after compiled functions with the interpreter; the C text."""
    for functions in (PHASES, ("step",)):
        program = made.lower(processor=processor, separate=functions is PHASES)
        layout = lay_out(program, made.memory)
        text = emit_c(program, layout, **kept)
        expected = made.run(program)
        library = compile_c(find(family), text, optimisation)
        memory = run_native(made, program, layout, library, functions)
        for place, content in memory.items():
            assert [bits(x) for x in content] == [bits(x) for x in expected[place]], place
    return text


def lanes(program: Program) -> set[int]:
    """The widths of a Program."""
    return {n.count for _, nodes in program.phases for n in walk(nodes) if isinstance(n, Loop) and n.lanes}


#: Every operation that has a vector form.
OPERATIONS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x / y,
    lambda x, y: -x,
    lambda x, y: abs(x),
    lambda x, y: x.relu(),
    lambda x, y: mgjit.sqrt(x),
    lambda x, y: mgjit.exp(x),
    lambda x, y: mgjit.log(x),
    lambda x, y: mgjit.tanh(x),
    lambda x, y: x**3.0,
    mgjit.maximum,
    mgjit.minimum,
    lambda x, y: x.data < y.data,
    lambda x, y: x.data <= y.data,
    lambda x, y: x.data == y.data,
    lambda x, y: x.data != y.data,
    lambda x, y: mgjit.where(x.data < y.data, x, y),
    lambda x, y: mgjit.where(x.data, y, 2.0),
]


def every_operation() -> Example:
    """Each operation on all pairs of numbers; the number of pairs is no multiple of a vector."""
    xs, ys = ([mgjit.Value(v) for v in part] for part in pairs())

    def step(scale: Any) -> Any:
        return [[operation(x, y) for x, y in zip(xs, ys)] for operation in OPERATIONS], scale

    return Example(step, 1.0)


@EVERY
@FAMILIES
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.sampled(one_of=2)
def test_01_every_operation(family: str, processor: Processor, dtype: str) -> None:
    """Zeros of both signs, infinities, nans, the smallest and the largest numbers."""
    made = every_operation() if dtype == "float64" else every_operation().in_float32()
    text = run(made, processor, family)
    assert f"typedef real real{processor.lanes} " in text
    for name in ("relu", "sqrt", "maximum", "minimum", "where", "less", "equal", "not_equal", "absolute"):
        assert f" {name}_{processor.lanes}(" in text, name


@FAMILIES
@pytest.mark.sampled(one_of=2)
def test_02_whole_functions(family: str) -> None:
    """exp, log, tanh and power of whole vectors beside rests of two, which call the C library."""
    xs = [mgjit.Value(abs(v)) for v in numbers(38)]
    optimisation = f"-O2 {build.native()}"
    names = ("exp", "log", "tanh", "power")
    functions = frozenset(name for name in names if verification.verified(find(family), optimisation, name))

    def step(scale: Any) -> Any:
        return [[f(x) for x in xs] for f in (mgjit.exp, mgjit.tanh, mgjit.log, lambda x: x**2.5)]

    for processor in (Processor(4, 16), WIDE, Processor(16, 32)):
        for made in (Example(step, 1.0), Example(step, 1.0).in_float32()):
            run(made, processor, family, optimisation, functions=functions)


FORMATS = "bBhHiIlLqQfd"


@FAMILIES
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_03_buffers_of_every_format(family: str, dtype: str) -> None:
    """Numbers of the caller are converted a vector at a time, as one by one."""
    ws = [mgjit.Value(v) for v in numbers(21)]
    buffers: list[Any] = []
    for code in FORMATS:
        low, high = (-1.5, 0.1) if code in "fd" else (0, 1) if code.isupper() else (-1, 1)
        size = 8 * array(code).itemsize - (not code.isupper())
        large = [] if code in "fd" else [(1 << size) - 1, (1 << size) - 2, (1 << size - 1) + 1, 77]
        buffers.append(array(code, [*large, *([low, high] * 11)][:21]))

    def step(buffers: Any) -> Any:
        return [[w * x for w, x in zip(ws, buffer)] for buffer in buffers]

    made = Example(step, buffers)
    for processor, optimisation in ((WIDE, "-O2"), (Processor(16, 32), f"-O2 {build.native()}")):
        run(made if dtype == "float64" else made.in_float32(), processor, family, optimisation)


@EVERY
@FAMILIES
def test_04_steps(family: str, processor: Processor) -> None:
    """Columns, reversed rows, every other element: read, written and added to."""
    w = [[mgjit.Value(v) for v in numbers(19, k)] for k in range(7)]
    s = mgjit.state(numbers(60))

    def step(xs: Any) -> Any:
        columns = [sum(w[i][j] * xs[i] for i in range(7)) for j in range(19)]
        backwards = [columns[18 - j] * xs[0] for j in range(19)]
        for j in range(19):
            s[3 * j] = s[3 * j] + xs[1] * backwards[j].data
            s[57 - 3 * j + 1] = backwards[j].data
        loss = sum(b * b for b in backwards)
        loss.backward()
        return columns, backwards, loss

    run(Example(step, numbers(7)), processor, family)


@EVERY
@FAMILIES
@pytest.mark.parametrize("optimisation", ["-O0", "-O3 -march=native"])
@pytest.mark.sampled(one_of=2)
def test_05_a_batch(family: str, processor: Processor, optimisation: str) -> None:
    """Layers, their gradients and the update, at both ends of what a compiler does."""
    model = mgjit.nn.MLP(3, [13, 1], seed=4)

    def step(xs: Any, ys: Any, rate: Any) -> Any:
        loss = sum((model(x) - y) ** 2 for x, y in zip(xs, ys))
        model.zero_grad()
        loss.backward()
        sgd(model.parameters(), rate)
        return loss

    made = Example(step, [numbers(3, seed) for seed in range(9)], numbers(9), 0.05)
    assert lanes(made.lower(processor=processor))
    run(made, processor, family, optimisation)


def test_06_nothing_without_vectors() -> None:
    """A source for compilers without vectors mentions none."""
    made = every_operation()
    program = made.lower(processor=SCALAR)
    assert lanes(program) == set()
    text = emit_c(program, lay_out(program, made.memory))
    assert "vector_size" not in text
    assert "__builtin_convertvector" not in text


def test_07_only_what_is_used() -> None:
    """Types, memory types and functions, each once and in order."""
    vectors = Vectors()
    assert vectors.source() == []
    assert vectors.type(4) == "real4"
    assert vectors.memory_type(8) == "memory_real8"
    assert vectors.memory_type(8, "unsigned char") == "memory_unsigned_char8"
    assert vectors.call("select", ["c", "a", "b"], 4) == "where_4(c, a, b)"
    assert vectors.call("relu", ["a"], 4) == "relu_4(a)"
    (text,) = vectors.source()
    assert text.count("typedef real real4 ") == text.count("typedef real real8 ") == 1
    assert "typedef unsigned char memory_unsigned_char8 " in text
    assert "real16" not in text
    assert "tanh" not in text
    assert text.index("real4") < text.index("relu_4")


def test_08_broadcasts_keep_the_sign_of_zero() -> None:
    """Minus zero is subtracted nowhere: `-0.0 - 0.0` is -0.0, `-0.0 + 0.0` is not."""
    assert Vectors().broadcast("x", 8) == "(x - (real8){0})"


def test_09_square_roots_of_whole_vectors() -> None:
    """Where the processor has them; the names are those of the number type."""
    for dtype, name in (("float64", "sqrtpd512"), (FLOAT32.name, "sqrtps512")):
        vectors = Vectors(dtype)
        vectors.call("sqrt", ["x"], 8)
        assert name in vectors.source()[0]
    vectors = Vectors()
    vectors.call("relu", ["x"], 8)
    assert "sqrt" not in vectors.source()[0]
