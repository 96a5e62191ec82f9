"""pow with the roundings of the C library's pow.

The algorithm is the one that glibc has since 2.28, and musl, newlib and bionic as well, published by Arm in
its "optimized routines" (MIT); the coefficients are from there, the tables are computed here.  It is the
variant for processors with a fused multiply-add; on others the functions will be found to differ.

1. |x| = 2^k z with z in [0.7057, 1.4115), cut into 128 parts; a part has a short number near 1/z, so that
   r = z / c - 1 is exact, and the logarithm of its reciprocal in two parts.
2. log |x| = k ln 2 + log c + log(1 + r) as a sum high + low of about 68 bits.
3. y log |x| in two parts, and their exponential: see exact_exp.
4. A negative x with an odd y changes the sign.  A zero x gives zero or infinity here as well: differences that
   are squared are often zero.
5. Lanes where x is no zero and no normal number, where y is not of an ordinary size or x is negative and y no
   integer, and lanes whose result leaves the range of exact_exp, are computed by the library itself.
"""

from __future__ import annotations

import struct
from fractions import Fraction

from .exact_exp import EXPONENTIAL_OF_SUM, LARGEST
from .exact_log import BITS, SPLIT
from .parts import Part
from .tables import bits_of, c_array, logarithms
from .vectors import ANY, FUSED, LOST, SELECT

#: The bits of the smallest z.
_FIRST = 0x3FE6955500000000

_LOGARITHM = """\
INLINE double@ long_logarithm_@(double@ x, double@ *rest) {
    double@ k;
    integer@ row;
    double@ z = split_@(x, %#xULL, &k, &row);
    double@ reciprocal = {EACH(long_logarithm_table[row[#]].reciprocal)};
    double@ logarithm = {EACH(long_logarithm_table[row[#]].logarithm)};
    double@ tail = {EACH(long_logarithm_table[row[#]].tail)};
    double@ r = fused_@(z, reciprocal, (double@){} - 1.0);
    double@ first = fused_@(k, (double@){} + 0x1.62e42fefa3800p-1, logarithm);
    double@ second = first + r;
    double@ low = fused_@(k, (double@){} + 0x1.ef35793c76730p-45, tail);
    double@ lost = lost_@(first, second, r);
    double@ half = r * -0.5, square = r * half;
    keep_@(&square);
    double@ high = second + square;
    double@ more = fused_@(half, r, -square);
    double@ lost_again = lost_@(second, high, square);
    double@ p = fused_@(r, (double@){} + 0x1.0002b8b263fc3p+0, (double@){} - 0x1.2495b9b4845e9p+0);
    double@ q = fused_@(r, (double@){} - 0x1.555555529a47ap-1, (double@){} + 0x1.999999959554ep-1);
    p = fused_@(p, square, q);
    p = fused_@(square, p, fused_@(r, (double@){} + 0x1.0000000000006p-1, (double@){} - 0x1.5555555555560p-1));
    low = fused_@(r * square, p, low + lost + more + lost_again);
    double@ result = high + low;
    *rest = lost_@(high, result, low);
    return result;
}
"""

_POWER = """\
static __attribute__((noinline, cold)) double@ rescue_power_@(double@ x, double@ y, double@ result, integer@ special) {
    for (int lane = 0; lane < @; lane++)
        if (special[lane]) result[lane] = pow(x[lane], y[lane]);
    return result;
}
static inline double@ exact_power_@(double@ x, double@ y) {
    const long long magnitude = 0x7fffffffffffffffLL;
    const double@ whole = (double@){} + 0x1p52;
    double@ size = (double@)((integer@)x & magnitude), size_of_y = (double@)((integer@)y & magnitude);
    double@ rest;
    double@ logarithm = long_logarithm_@(size, &rest);
    double@ high = y * logarithm;
    keep_@(&high);
    double@ low = fused_@(y, rest, fused_@(y, logarithm, -high));
    double@ result = exponential_of_sum_@(high, low);

    integer@ zero = (size == 0.0);
    integer@ special = ~((size >= 0x1p-1022) & (size < __builtin_inf()) & (((integer@)high & magnitude) < %dLL));
    result = select_@(zero, (double@)((integer@)y >> 63 & 0x7ff0000000000000LL), result);
    special = (special & ~zero) | ~((size_of_y >= 0x1p-65) & (size_of_y < 0x1p52));
    integer@ negative = (integer@)x & ~magnitude;
    if (any_@(negative)) {
        double@ rounded = size_of_y + whole;
        keep_@(&rounded);
        integer@ integral = (rounded - whole == size_of_y), odd = (integer@)rounded << 63;
        special |= (x < 0.0) & ~integral;
        result = (double@)((integer@)result | (negative & integral & odd));
    }
    if (__builtin_expect(any_@(special), 0)) result = rescue_power_@(x, y, result, special);
    return result;
}
"""


def reciprocals() -> tuple[float, ...]:
    """For each part of the z the nearest multiple of 1/128, below 1 of 1/256, to one over its middle."""
    borders = [struct.unpack("<d", struct.pack("<q", _FIRST + (part << 45)))[0] for part in range(129)]
    middles = [Fraction(low) / 2 + Fraction(high) / 2 for low, high in zip(borders, borders[1:])]
    steps = [128 if middle < 1 else 256 for middle in middles]
    return tuple(round(step / middle) / step for step, middle in zip(steps, middles))


def _tables() -> str:
    numbers = reciprocals()
    values = [
        f"{{ {r.hex()}, {high.hex()}, {low.hex()}, 0.0 }}" for r, (high, low) in zip(numbers, logarithms(numbers, BITS))
    ]
    return c_array("struct { double reciprocal, logarithm, tail, unused; }", "long_logarithm_table", values)


LONG_LOGARITHM = Part(_LOGARITHM % _FIRST, _tables, requires=(FUSED, LOST, SPLIT))
EXACT_POWER = Part(_POWER % bits_of(LARGEST), requires=(ANY, SELECT, LONG_LOGARITHM, EXPONENTIAL_OF_SUM))
