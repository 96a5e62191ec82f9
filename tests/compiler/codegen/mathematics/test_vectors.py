"""The operations that vector extensions leave out, at every width and with every set of instructions."""

from __future__ import annotations

import random
from array import array
from fractions import Fraction

import pytest

from mgjit.base import ffi
from mgjit.compiler.codegen.mathematics.parts import assemble
from mgjit.compiler.codegen.mathematics.vectors import ANY, FUSED, FUSED_FLOAT, LIMITED, SELECT
from mgjit.compiler.toolchain import build
from tests.compiler.codegen.mathematics.lanes import to_float32, vector_compiler

_CALLER = """
__attribute__((visibility("default"))) int run(void *const *m) {
    double *a = m[0], *b = m[1], *c = m[2], *fused = m[3], *fused_f = m[4], *limited = m[5], *any = m[6];
    double@ u, v, w, r;
    __builtin_memcpy(&u, a, sizeof u), __builtin_memcpy(&v, b, sizeof v), __builtin_memcpy(&w, c, sizeof w);
    r = fused_@(u, v, w), __builtin_memcpy(fused, &r, sizeof r);
    float@ fu = __builtin_convertvector(u, float@), fv = __builtin_convertvector(v, float@);
    float@ fw = __builtin_convertvector(w, float@);
    r = __builtin_convertvector(fused_f@(fu, fv, fw), double@), __builtin_memcpy(fused_f, &r, sizeof r);
    float@ low = (float@){} - 1.0f, high = (float@){} + 1.0f;
    r = __builtin_convertvector(limited_f@(low, fu, high), double@), __builtin_memcpy(limited, &r, sizeof r);
    for (int lane = 0; lane < @; lane++) {
        integer@ mask = {}, all = (integer@){} - 1;
        mask[lane] = -1;
        word@ mask_f = __builtin_convertvector(mask, word@), all_f = (word@){} - 1;
        any[lane] = any_@(mask) && any_@(all) && !any_@(all - all) && select_@(mask, u, v)[lane] == u[lane]
            && any_f@(mask_f) && any_f@(all_f) && !any_f@(all_f - all_f);
    }
    return IS_FUSED;
}
"""


def rounded_once(a: float, b: float, c: float) -> float:
    return float(Fraction(a) * Fraction(b) + Fraction(c))


@pytest.mark.parametrize("flags", ["-O0", "-O2", f"-O1 {build.native()}", f"-O3 {build.native()}"])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_01_operations(family: str, lanes: int, flags: str) -> None:
    parts = (SELECT, ANY, FUSED, FUSED_FLOAT, LIMITED)
    source = assemble([(part, [lanes]) for part in parts]) + _CALLER.replace("@", str(lanes))
    built = build.compile_shared(vector_compiler(family), source, optimisation=flags)
    draw = random.Random(lanes)
    block = ffi.PointerBlock(7)
    arrays = [array("d", [to_float32(draw.gauss(0.0, 1.0)) for _ in range(lanes)]) for _ in range(7)]
    for number, numbers in enumerate(arrays):
        block.set(number, numbers)
    is_fused = ffi.load_bytes(built.binary).function("run")(block)
    for a, b, c, fused, fused_f, limited, any_lane in zip(*arrays):
        assert fused == (rounded_once(a, b, c) if is_fused else a * b + c)
        # The product of two float32 is exact in float64; rounding the sum twice is as good as once here.
        assert fused_f == to_float32(a * b + c if is_fused else to_float32(a * b) + c)
        assert limited == min(max(a, -1.0), 1.0)
        assert any_lane == 1.0
