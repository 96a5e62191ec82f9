"""tanh of float32 lanes, without tables and branches: at most 2 ulp off.

1. |x| < 0.5: x + x^3 q(x^2) with a polynomial q of degree 3, off by 1.5e-8.  Subnormal numbers, zeros and
   their signs stay what they are.
2. Else, with |x| limited to 9.1, where tanh is 1: |x| = n ln 2 / 2 + r with the nearest integer n.
3. u = (exp(2|x|) - 1) / 2 = 2^n (exp(2r) - 1) / 2 + (2^n - 1) / 2.  The first term is r + r^2 p(r) with the
   polynomial of fast_exp, scaled.
4. tanh |x| = u / (u + 1); NaN has come through all of it.
"""

from __future__ import annotations

from .fast_exp import SCALED
from .parts import Part
from .vectors import FUSED_FLOAT, LIMITED, SELECT

_TANH = """\
static inline float@ fast_tanh_f@(float@ x) {
    const float@ shift = (float@){} + 0x1.8p23f, half = (float@){} + 0.5f;
    float@ square = x * x;
    float@ q = fused_f@((float@){} + 0x1.1abd14p-6f, square, (float@){} - 0x1.b29c1ap-5f);
    q = fused_f@(q, square, (float@){} + 0x1.10ea8ep-3f);
    q = fused_f@(q, square, (float@){} - 0x1.5554dap-2f);
    float@ small = fused_f@(q * square, x, x);

    word@ sign = (word@)x & (-0x7fffffff - 1);
    float@ size = limited_f@((float@){}, (float@)((word@)x ^ sign), (float@){} + 9.1f);
    float@ n = fused_f@((float@){} + 0x1.715476p1f, size, shift) - shift;
    float@ r = fused_f@(n, (float@){} - 0x1.62e430p-2f, size);
    float@ p = fused_f@((float@){} + 0x1.6da0c0p-5f, r, (float@){} + 0x1.122d8ep-3f);
    p = fused_f@(p, r, (float@){} + 0x1.55547ep-2f);
    p = fused_f@(p, r, (float@){} + 0x1.5554a8p-1f);
    p = fused_f@(p, r, (float@){} + 1.0f);
    p = fused_f@(p, r * r, r);
    float@ power = scaled_f@((float@){} + 1.0f, n);
    float@ u = fused_f@(power, p, fused_f@(power, half, -half));
    float@ large = (float@)((word@)(u / (u + 1.0f)) | sign);
    return select_f@(size < 0.5f, small, large);
}
"""

FAST_TANH = Part(_TANH, requires=(SELECT, LIMITED, FUSED_FLOAT, SCALED))
