"""tanh with the roundings of the C library's tanh, without branches and tables.

The algorithm is that of fdlibm (Sun Microsystems, 1993), which glibc before 2.42, musl, newlib and bionic have;
the coefficients are from there.  In glibc expm1, which does the work, uses fused multiply-add where the
processor has it, and tanh itself has nothing to fuse.

1. w = 2|x| for |x| >= 1, else -2|x|; |x| is limited to 20, where tanh has long been 1.
2. w = k ln 2 + r + c: r is rounded, c is the rest of it.  k is cut off after adding 1/2, as a conversion to
   an integer does, and 0 below ln 2 / 2, compared by the upper half of the bits.
3. A rational function gives E with exp(r + c) - 1 = r - E.
4. t = exp(w) - 1 is put together in the library's ways for k = 0, k = -1, k < -1, k < 20 and all greater k,
   each selected for its lanes.
5. tanh |x| = 1 - 2 / (t + 2) for |x| >= 1, else -t / (t + 2).
"""

from __future__ import annotations

from .parts import Part
from .vectors import FUSED, LOST, SELECT

_TANH = """\
static inline double@ exact_tanh_@(double@ x) {
    const double@ zero = {}, shift = zero + 0x1.8p52;
    integer@ sign = (integer@)x & (-0x7fffffffffffffffLL - 1);
    double@ size = (double@)((integer@)x ^ sign);
    size = select_@(size > 20.0, zero + 20.0, size);
    integer@ large = (size >= 1.0);
    double@ doubled = size + size;
    integer@ turn = ~large & (-0x7fffffffffffffffLL - 1);
    double@ w = (double@)((integer@)doubled ^ turn);

    double@ cut = doubled * 0x1.71547652b82fep0 + 0.5;
    double@ shifted = cut + shift;
    keep_@(&shifted);
    double@ k = shifted - shift;
    integer@ above = (k > cut), none = ((integer@)doubled < 0x3fd62e4300000000LL);
    k = (double@)(~none & (integer@)(k - (double@)(above & 0x3ff0000000000000LL)));
    integer@ exponent = ((integer@)shifted + above) << 52;
    double@ power = (double@)(0x3ff0000000000000LL + exponent);
    double@ inverse = (double@)(0x3ff0000000000000LL - exponent);

    double@ signed_k = (double@)((integer@)k ^ turn);
    double@ high = fused_@(signed_k, zero - 0x1.62e42feep-1, w), low = signed_k * 0x1.a39ef35793c76p-33;
    double@ r = high - low, c = lost_@(high, r, -low);

    double@ half = r * 0.5, product = r * half, square = product * product;
    double@ first = fused_@(product, zero - 0x1.11111111110f4p-5, zero + 1.0);
    double@ second = fused_@(product, zero - 0x1.4ce199eaadbb7p-14, zero + 0x1.a01a019fe5585p-10);
    double@ third = fused_@(product, zero - 0x1.afdb76e09c32dp-23, zero + 0x1.0cfca86e65239p-18);
    double@ factor = fused_@(square * square, third, fused_@(square, second, first));
    double@ divisor = fused_@(-factor, half, zero + 3.0);
    double@ e = product * ((factor - divisor) / fused_@(-r, divisor, zero + 6.0));
    double@ rest = fused_@(r, e - c, -c) - product;
    double@ difference = r - rest;

    integer@ from_20 = (k >= 20.0);
    double@ y = (zero + 1.0) - (double@)(large & (integer@)inverse) - (rest - r);
    y = select_@(from_20, r - (rest + inverse) + 1.0, y);
    double@ t = fused_@(y, select_@(large, power, inverse), (double@)(~large & (integer@)(zero - 1.0)));
    t = select_@(~large & (k == 1.0), fused_@(difference, zero + 0.5, zero - 0.5), t);
    t = select_@(none, r - fused_@(r, e, -product), t);

    double@ quotient = select_@(large, zero + 2.0, -t) / (t + 2.0);
    double@ result = select_@(large, 1.0 - quotient, quotient);
    return (double@)(((integer@)result & 0x7fffffffffffffffLL) | sign); /* for zeros a sign has appeared */
}
"""

EXACT_TANH = Part(_TANH, requires=(SELECT, FUSED, LOST))
