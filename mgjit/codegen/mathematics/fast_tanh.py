"""tanh of float32 lanes, without tables and branches: at most 2.5 ulp off.

1. The sign is set aside and |x| limited to 9.1, where tanh is 1; NaN stays.
2. e = exp(2|x|) - 1 = 2^n (exp(r) - 1) + (2^n - 1): see fast_exp.  For n = 0 it is exp(r) - 1 itself, so
   small results keep all their bits.
3. tanh |x| = e / (e + 2).
"""

from __future__ import annotations

from .fast_exp import REDUCED_EXP
from .parts import Part
from .vectors import FUSED_FLOAT, SELECT

_TANH = """\
static inline float@ fast_tanh_f@(float@ x) {
    word@ sign = (word@)x & (-0x7fffffff - 1);
    float@ size = (float@)((word@)x ^ sign);
    size = select_f@(size > 9.1f, (float@){} + 9.1f, size);
    float@ n, p = reduced_exp_f@(size + size, &n);
    float@ power = (float@)((__builtin_convertvector(n, word@) + 127) << 23);
    float@ less = power - 1.0f;
    KEEP(less);
    float@ e = fused_f@(power, p, less);
    return (float@)((word@)(e / (e + 2.0f)) | sign);
}
"""

FAST_TANH = Part(_TANH, requires=(SELECT, FUSED_FLOAT, REDUCED_EXP))
