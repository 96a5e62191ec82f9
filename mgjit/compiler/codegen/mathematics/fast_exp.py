"""exp of float32 lanes, without tables: at most 1.1 ulp off.

1. x is limited to where the result is neither 0 nor infinite, and a little beyond; NaN stays.
2. x = n ln 2 + r with the nearest integer n; ln 2 in two parts, so that r keeps its last bits.
3. exp(r) - 1 = r + r^2 q(r) with a polynomial q of degree 4: a Remez fit on |r| <= 1.01 ln 2 / 2 that
   is off by 1.5e-8 of exp(r) - 1.
4. exp(x) = 2^n (1 + (exp(r) - 1)); 2^n in two factors, because it may not be a float while the result is.
"""

from __future__ import annotations

from .parts import Part
from .vectors import FUSED_FLOAT, LIMITED


def _scaled(lanes: int) -> str:
    """y 2^n: one instruction where there is one for this width."""
    lines = ["INLINE float@ scaled_f@(float@ y, float@ n) {"]
    builtin = {16: "__builtin_ia32_scalefps512_mask(y, n, y, -1, 4)"}.get(lanes)
    if builtin:
        condition = f"defined(__AVX512F__) && HAS_BUILTIN({builtin.partition('(')[0]})"
        lines += [f"#if {condition}", f"    return {builtin};", "#endif"]
    lines += [
        "    word@ power = __builtin_convertvector(n, word@), half = power >> 1;",
        "    y *= (float@)((half + 127) << 23);",
        "    keep_f@(&y);",
        "    return y * (float@)((power - half + 127) << 23);",
        "}",
        "",
    ]
    return "\n".join(lines)


_EXP = """\
static inline float@ fast_exp_f@(float@ x) {
    const float@ shift = (float@){} + 0x1.8p23f;
    x = limited_f@((float@){} - 104.0f, x, (float@){} + 89.0f);
    float@ n = fused_f@((float@){} + 0x1.715476p0f, x, shift) - shift;
    float@ r = fused_f@(n, (float@){} - 0x1.62e4p-1f, x);
    r = fused_f@(n, (float@){} - 0x1.7f7d1cp-20f, r);
    float@ q = fused_f@((float@){} + 0x1.6da0c0p-10f, r, (float@){} + 0x1.122d8ep-7f);
    q = fused_f@(q, r, (float@){} + 0x1.55547ep-5f);
    q = fused_f@(q, r, (float@){} + 0x1.5554a8p-3f);
    q = fused_f@(q, r, (float@){} + 0.5f);
    return scaled_f@(fused_f@(q, r * r, r) + 1.0f, n);
}
"""

SCALED = Part(_scaled, requires=(FUSED_FLOAT,))
FAST_EXP = Part(_EXP, requires=(LIMITED, SCALED))
