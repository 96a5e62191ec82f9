"""log of float32 lanes, without tables: at most 1 ulp off.

1. x = 2^k m with m between the roots of 1/2 and 2, from the bits of x; r = m - 1 is exact.
2. log m = r - r^2 / 2 + r^3 q(r) with a polynomial q of degree 7: a Remez fit that is off by 6e-9 of log m.
3. k ln 2 is added in two parts, the small one first.
4. Lanes that are not positive normal numbers are computed by the library: zeros, infinities, NaN, subnormals.
"""

from __future__ import annotations

from .parts import Part
from .vectors import ANY, FUSED_FLOAT

_LOG = """\
static __attribute__((noinline, cold)) float@ rescue_log_f@(float@ x, float@ result, word@ special) {
    for (int lane = 0; lane < @; lane++)
        if (special[lane]) result[lane] = (float)log((double)x[lane]);
    return result;
}
static inline float@ fast_log_f@(float@ x) {
    word@ special = ~((x >= 0x1p-126f) & (x < __builtin_inff()));
    word@ power = ((word@)x - 0x3f3504f3) >> 23;
    float@ k = __builtin_convertvector(power, float@);
    float@ r = (float@)((word@)x - (power << 23)) - 1.0f;
    float@ q = fused_f@((float@){} - 0x1.41fbe8p-4f, r, (float@){} + 0x1.07da9cp-3f);
    q = fused_f@(q, r, (float@){} - 0x1.0ce24ep-3f);
    q = fused_f@(q, r, (float@){} + 0x1.226d0ep-3f);
    q = fused_f@(q, r, (float@){} - 0x1.547840p-3f);
    q = fused_f@(q, r, (float@){} + 0x1.99a5a2p-3f);
    q = fused_f@(q, r, (float@){} - 0x1.000220p-2f);
    q = fused_f@(q, r, (float@){} + 0x1.55554ap-2f);
    float@ square = r * r;
    float@ y = fused_f@(q, square * r, k * 0x1.7f7d1cp-20f);
    y = fused_f@(square, (float@){} - 0.5f, y);
    float@ result = fused_f@(k, (float@){} + 0x1.62e4p-1f, r + y);
    if (__builtin_expect(any_f@(special), 0)) result = rescue_log_f@(x, result, special);
    return result;
}
"""

FAST_LOG = Part(_LOG, requires=(ANY, FUSED_FLOAT))
