"""log with the roundings of the C library's log.

The algorithm is the one that glibc has since 2.28, and musl, newlib and bionic as well, published by Arm in
its "optimized routines" (MIT); the coefficients are from there.  It is the variant for processors with a fused
multiply-add: on others the library has another one, and the functions will be found to differ.

1. x = 2^k z with z in [0.6875, 1.375), which is cut into 128 parts; a part has a number near 1/z and the
   logarithm of its reciprocal.
2. r = z / c - 1 with one rounding; log(x) = k ln 2 + log c + log(1 + r), a polynomial of degree 6.
3. Near 1, where these terms cancel: a polynomial of degree 12 in x - 1, whose first terms are kept in two
   parts.  Both ways are computed only where lanes take both.
4. Lanes that are not positive normal numbers are computed by the library itself.
"""

from __future__ import annotations

from .log_reciprocals import RECIPROCALS
from .parts import Part
from .tables import c_array, logarithms
from .vectors import ANY, FUSED, LOST, SELECT

#: Bits of the table's logarithms behind the point: k times the high part of ln 2 can be added without rounding.
BITS = 43

_SPLIT = """\
/* x = 2^k z for normal x > 0: z in [first, 2 first), `first` as bits; returns z, and in row which of 128 parts */
INLINE double@ split_@(double@ x, unsigned long long first, double@ *k, integer@ *row) {
    /* 1024 is added to the exponent: vectors have no signed shift before AVX-512 */
    natural@ above = (natural@)x - first + (1024ULL << 52);
    *row = (integer@)(above >> 45) & 127;
    *k = (double@)(above >> 52 | 0x4330000000000000ULL) - (0x1p52 + 1024.0);
    return (double@)((natural@)x - (above & (0xfffULL << 52)) + (1024ULL << 52));
}
"""

_LOG = """\
INLINE double@ log_away_from_one_@(double@ x) {
    double@ k;
    integer@ row;
    double@ z = split_@(x, 0x3fe6000000000000ULL, &k, &row);
    double@ reciprocal = {EACH(logarithm_table[row[#]].reciprocal)};
    double@ logarithm = {EACH(logarithm_table[row[#]].logarithm)};
    double@ r = fused_@(z, reciprocal, (double@){} - 1.0);
    double@ whole = fused_@(k, (double@){} + 0x1.62e42fefa3800p-1, logarithm);
    double@ high = whole + r;
    double@ low = fused_@(k, (double@){} + 0x1.ef35793c76730p-45, lost_@(whole, high, r));
    double@ square = r * r;
    double@ odd = fused_@(r, (double@){} - 0x1.55575e506c89fp-3, (double@){} + 0x1.999b324f10111p-3);
    odd = fused_@(square, odd, fused_@(r, (double@){} - 0x1.fffffffeb4590p-3, (double@){} + 0x1.555555551305bp-2));
    low = fused_@(square, (double@){} - 0x1.0000000000001p-1, low);
    return fused_@(r * square, odd, low) + high;
}
INLINE double@ log_near_one_@(double@ x) {
    double@ r = x - 1.0, square = r * r, cube = r * square;
    double@ y = fused_@(r, (double@){} - 0x1.999eb43b068ffp-4, (double@){} + 0x1.c7184282ad6cap-4);
    y = fused_@(square, (double@){} + 0x1.78182f7afd085p-4, y);
    y = fused_@(cube, (double@){} - 0x1.5521375d145cdp-4, y);
    double@ middle = fused_@(r, (double@){} + 0x1.24924a344de30p-3, (double@){} - 0x1.55555556745a7p-3);
    y = fused_@(cube, y, fused_@(square, (double@){} - 0x1.fffffa4423d65p-4, middle));
    double@ first = fused_@(r, (double@){} - 0x1.ffffffffffdcbp-3, (double@){} + 0x1.5555555555577p-2);
    y = fused_@(cube, y, fused_@(square, (double@){} + 0x1.999999995dd0cp-3, first));
    const double@ scale = (double@){} + 0x1p27;
    double@ rounded = fused_@(-scale, r, fused_@(scale, r, r));
    double@ rest = r - rounded, exact = rounded * rounded;
    double@ high = fused_@(exact, (double@){} - 0.5, r);
    keep_@(&high);
    double@ low = fused_@(exact, (double@){} - 0.5, r - high);
    low = fused_@(rest * -0.5, rounded + r, low);
    return fused_@(cube, y, low) + high;
}
static __attribute__((noinline, cold)) double@ rescue_log_@(double@ x, double@ result, integer@ special) {
    for (int lane = 0; lane < @; lane++)
        if (special[lane]) result[lane] = log(x[lane]);
    return result;
}
static inline double@ exact_log_@(double@ x) {
    integer@ near = (x >= 0x1.ep-1) & (x < 0x1.109p0);
    integer@ special = ~((x >= 0x1p-1022) & (x < __builtin_inf()));
    double@ result = log_away_from_one_@(x);
    if (any_@(near)) result = select_@(near, log_near_one_@(x), result);
    if (__builtin_expect(any_@(special), 0)) result = rescue_log_@(x, result, special);
    return result;
}
"""


def _tables() -> str:
    rows = zip(RECIPROCALS, logarithms(RECIPROCALS, BITS))
    values = [f"{{ {reciprocal.hex()}, {high.hex()} }}" for reciprocal, (high, _) in rows]
    return c_array("struct { double reciprocal, logarithm; }", "logarithm_table", values)


SPLIT = Part(_SPLIT, requires=(FUSED,))
EXACT_LOG = Part(_LOG, _tables, requires=(ANY, SELECT, FUSED, LOST, SPLIT))
