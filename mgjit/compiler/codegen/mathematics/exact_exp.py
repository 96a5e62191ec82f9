"""exp with the roundings of the C library's exp.

The algorithm is the one that glibc has since 2.28, and musl, newlib and bionic as well, published by Arm in
its "optimized routines" (MIT); the coefficients are from there, the tables are computed here.

1. x = k ln 2 / 128 + r with an integer k: adding 1.5 * 2^52 leaves k in the low bits of the sum.
2. 2^(k/128) is a table entry for k mod 128, a double `scale` and its relative error `tail`, with k / 128
   added to the exponent.
3. exp(x) = scale + scale * (tail + exp(r) - 1), with a polynomial of degree 5.
4. Lanes where the scale might leave the normal range, and NaN, are computed by the library itself; lanes
   whose result is zero are not worth a call: masked scores are often -1e9 or -inf.

Products and sums are fused as compilers fuse them in the library's build for processors that can.
`exponential_of_sum` takes x in two parts; pow needs that.
"""

from __future__ import annotations

from .parts import Part
from .tables import bits_of, c_array, powers_of_two
from .vectors import ANY, FUSED

#: From this magnitude on the library computes the last step in another way.
LARGEST = 512.0

#: Below this the result is zero.
LOWEST = -746.0


def _tables() -> str:
    rows = powers_of_two(128)
    values = [f"{{ {tail.hex()}, {bits_of(scale) - (number << 45)} }}" for number, (scale, tail) in enumerate(rows)]
    kind = "struct { double tail; long long scale; }"
    return c_array(kind, "exponential_table", values)


def _core(name: str, parameters: str, add_tail: str) -> str:
    return f"""\
INLINE double@ {name}_@({parameters}) {{
    const double@ shift = (double@){{}} + 0x1.8p52;
    double@ shifted = fused_@((double@){{}} + 0x1.71547652b82fep7, x, shift);
    double@ k = shifted - shift;
    double@ r = fused_@(k, (double@){{}} - 0x1.62e42fefa0000p-8, x);
    r = fused_@(k, (double@){{}} - 0x1.cf79abc9e3b3ap-47, r);
{add_tail}\
    integer@ row = (integer@)shifted & 127;
    double@ tail = {{EACH(exponential_table[row[#]].tail)}};
    double@ scale = (double@)((integer@){{EACH(exponential_table[row[#]].scale)}} + ((integer@)shifted << 45));
    double@ square = r * r;
    double@ low = fused_@((double@){{}} + 0x1.555555555543cp-3, r, (double@){{}} + 0x1.ffffffffffdbdp-2);
    double@ high = fused_@((double@){{}} + 0x1.1111167a4d017p-7, r, (double@){{}} + 0x1.55555cf172b91p-5);
    double@ rest = fused_@(square * square, high, fused_@(square, low, tail + r));
    return fused_@(scale, rest, scale);
}}
"""


_EXP = f"""\
static __attribute__((noinline, cold)) double@ rescue_exp_@(double@ x, double@ result, integer@ special) {{
    for (int lane = 0; lane < @; lane++)
        if (special[lane]) result[lane] = exp(x[lane]);
    return result;
}}
static inline double@ exact_exp_@(double@ x) {{
    integer@ special = ~(((integer@)x & 0x7fffffffffffffffLL) < {bits_of(LARGEST)}LL);
    double@ result = exponential_@(x);
    if (__builtin_expect(any_@(special), 0)) {{
        integer@ zero = (integer@)(x < {LOWEST});
        result = (double@)(~zero & (integer@)result);
        if (any_@(special & ~zero)) result = rescue_exp_@(x, result, special & ~zero);
    }}
    return result;
}}
"""

TABLES = Part(once=_tables)
EXPONENTIAL = Part(_core("exponential", "double@ x", ""), requires=(FUSED, TABLES))
EXPONENTIAL_OF_SUM = Part(
    _core("exponential_of_sum", "double@ x, double@ x_tail", "    r += x_tail;\n"), requires=(FUSED, TABLES)
)
EXACT_EXP = Part(_EXP, requires=(ANY, EXPONENTIAL))
