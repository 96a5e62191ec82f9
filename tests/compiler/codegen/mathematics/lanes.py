"""Running vector functions on Python numbers."""

from __future__ import annotations

import functools
import math
import random
import struct
from array import array
from collections.abc import Sequence

import pytest

from mgjit.base import ffi
from mgjit.compiler.codegen.mathematics.source import vector_functions
from mgjit.compiler.toolchain import build, compilers

_CALLER = """
__attribute__((visibility("default"))) int run(void *const *m) {{
    {kind} *result = m[0], *x = m[1], *y = m[2], block[3][{lanes}];
    for (long start = 0; start < {count}; start += {lanes}) {{
        for (int lane = 0; lane < {lanes}; lane++) block[0][lane] = x[start + lane], block[1][lane] = y[start + lane];
        {kind}{lanes} a, b;
        __builtin_memcpy(&a, block[0], sizeof a);
        __builtin_memcpy(&b, block[1], sizeof b);
        a = {name}_{lanes}({arguments});
        __builtin_memcpy(block[2], &a, sizeof a);
        for (int lane = 0; lane < {lanes}; lane++) result[start + lane] = block[2][lane];
    }}
    return 0;
}}
"""


def vector_compiler(family: str) -> compilers.Compiler:
    """gcc or clang, or the test is skipped."""
    found = [compiler for compiler in compilers.candidates() if compiler.family == family]
    if not found or compilers.probe(found[0]) is not None:
        pytest.skip(f"{family} is not installed")
    return found[0]


def evaluate(
    family: str,
    name: str,
    x: Sequence[float],
    y: Sequence[float] = (),
    *,
    dtype: str = "float64",
    mode: str = "strict",
    lanes: int = 8,
    optimisation: str = "",
) -> list[float]:
    """What the vector function makes of numbers, in blocks of `lanes`."""
    kind, code = ("float", "f") if dtype == "float32" else ("double", "d")
    count = -(-len(x) // lanes) * lanes
    arguments = "a, b" if name in ("power", "divide") else "a"
    source = vector_functions(dtype, mode, [lanes], [name])
    source += _CALLER.format(kind=kind, lanes=lanes, count=count, name=name, arguments=arguments)
    function = _compiled(family, source, mode, optimisation or f"-O2 {build.native()}")
    block = ffi.PointerBlock(3)
    result = array(code, bytes(count * array(code).itemsize))
    block.set(0, result)
    block.set(1, array(code, [*x, *[1.0] * (count - len(x))]))
    block.set(2, array(code, [*y, *[1.0] * (count - len(y))]))
    function(block)
    return list(result[: len(x)])


@functools.lru_cache
def _compiled(family: str, source: str, mode: str, optimisation: str) -> ffi.Function:
    built = build.compile_shared(vector_compiler(family), source, mode=mode, optimisation=optimisation)
    return ffi.load_bytes(built.binary).function("run")


def same(a: float, b: float) -> bool:
    """Whether two numbers have the same bits, or are both NaN."""
    return struct.pack("<d", a) == struct.pack("<d", b) or (a != a and b != b)


def to_float32(value: float) -> float:
    """The nearest float32; an infinity where there is none."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def ulps_of_float32(value: float, exact: float) -> float:
    """How far a float32 is from an exact result, in units of the last place of a float32."""
    if value == to_float32(exact) or (value != value and exact != exact):
        return 0.0
    exponent = max(math.frexp(exact)[1] - 24, -149)
    return abs(value - exact) / 2.0**exponent


def numbers(count: int, seed: int = 0) -> list[float]:
    """Special numbers, boundaries, and `count` random ones of all sizes, of which many are ordinary."""
    draw = random.Random(seed)
    fixed = [
        0.0,
        1.0,
        0.5,
        2.0,
        math.inf,
        5e-324,
        2.3e-308,
        1.7e308,
        88.7,
        103.9,
        512.0,
        708.5,
        709.7,
        709.8,
        745.2,
        1e9,
    ]
    spread = [math.ldexp(draw.uniform(0.5, 1.0), draw.randrange(-1080, 1024)) for _ in range(count // 4)]
    near_one = [draw.uniform(0.9, 1.1) for _ in range(count // 4)]
    ordinary = [draw.gauss(0.0, 3.0) for _ in range(count // 4)]
    wide = [draw.uniform(-800.0, 800.0) for _ in range(count // 4)]
    values = [math.nan, *fixed, *(-value for value in fixed), *near_one, *ordinary, *wide]
    return [*values, *spread, *(-value for value in spread)]
