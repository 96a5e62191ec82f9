"""Quotients of 16 float32 lanes: at most 1 ulp off.

The processor divides 16 numbers in ten cycles, in a unit that is busy meanwhile, and where square roots come from, too.

1. r = 1 / y to 14 bits, and q = x r.
2. q + r (x - q y): the remainder is fused, so that an error of 2^-14 becomes one of 2^-28.
3. Where that is no number (y is zero, infinite, or so small that r is infinite), the processor divides.

Fewer lanes, and those of other processors, are divided as they are.
"""

from __future__ import annotations

from .parts import Part
from .vectors import FUSED_FLOAT

#: The processor's approximation, and which lanes are no numbers, one bit each.
_INVERSE = "__builtin_ia32_rcp14ps512_mask(y, (float16){}, -1)"
_IS_NAN = "__builtin_ia32_cmpps512_mask(q, q, 3, -1, 4)"


def _divide(lanes: int) -> str:
    lines = ["INLINE float@ fast_divide_f@(float@ x, float@ y) {"]
    if lanes == 16:
        known = " && ".join(f"HAS_BUILTIN({call.partition('(')[0]})" for call in (_INVERSE, _IS_NAN))
        lines += [
            f"#if defined(__AVX512F__) && {known}",
            f"    float@ r = {_INVERSE};",
            "    float@ q = x * r;",
            "    q = fused_f@(r, fused_f@(-q, y, x), q);",
            f"    if (__builtin_expect(!{_IS_NAN}, 1)) return q;",
            "#endif",
        ]
    return "\n".join([*lines, "    return x / y;", "}", ""])


FAST_DIVIDE = Part(_divide, requires=(FUSED_FLOAT,))
