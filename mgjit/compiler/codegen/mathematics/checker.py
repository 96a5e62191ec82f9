"""A C program that compares a vector function with the library's, on more than a million inputs.

1. Inputs come from a generator of random bits in blocks of eight, of one kind each: any bits; numbers of
   ordinary size; numbers close to 1; neighbours of the places where exp's table changes its row; neighbours of
   those where log's and pow's do; special numbers.  A quarter of the lanes of any block is of the first kind
   or special, so that lanes which need the library stand beside lanes which do not.
2. pow has an exponent that programs like to use for half of its inputs, else one of a random kind.
3. Every block goes through the functions for 8, 4 and 2 lanes.  The library is called through a volatile
   pointer, for which no compiler can know a result.
4. Results are equal when their bits are, or when both are NaN.
"""

from __future__ import annotations

from .source import vector_functions

BLOCKS = 160_000

_INPUTS = """
typedef unsigned long long natural;
static natural random_state = 88172645463325252ULL;
static natural random_bits(void) {
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    return random_state * 0x9e3779b97f4a7c15ULL;
}
static natural below(natural limit) { return (random_bits() >> 20) % limit; }
static double of_bits(natural bits) { double x; __builtin_memcpy(&x, &bits, 8); return x; }
static natural bits_of(double x) { natural bits; __builtin_memcpy(&bits, &x, 8); return bits; }
static const double special_numbers[] = {
    0.0, 1.0, 0.5, 2.0, 3.0, 1e300, 0x1p-1022, 0x1p-1074, 0x1.fffffffffffffp-1023, 0x1.fffffffffffffp1023,
    0x1p-54, 0x1p-55, 512.0, 0x1.fffffffffffffp8, 708.0, 709.78, 745.1, 745.2, 20.0, 22.0,
    0x1.62e42fefa39efp-2, 0x1.62e43p-2, 0x1.0a2b23f3bab73p0, 0x1.0a2b2p0, 0x1.ep-1, 0x1.109p0, 0x1.62e42fefa39efp-1
};
static double input(int kind) {
    natural bits = random_bits();
    double sign = bits & 1 ? -1.0 : 1.0;
    long long near = (long long)below(9) - 4;
    switch (kind) {
    case 0: return of_bits(bits);
    case 1: return sign * of_bits((1023 - 64 + below(75)) << 52 | bits >> 12);
    case 2: return 1.0 + sign * of_bits((1023 - 54 + below(54)) << 52 | bits >> 12);
    case 3: return sign * of_bits(bits_of((double)(below(200) < 100 ? below(400) : below(130000)) * LN2_BY_256) + near);
    case 4: return of_bits((natural)(below(3) ? 1018 + below(10) : 1 + below(2046)) << 52 | below(128) << 45) + 0.0;
    case 5: return of_bits(bits_of(of_bits((1018 + below(10)) << 52 | below(128) << 45)) + OFFSET + near);
    }
    switch (below(8)) {
    case 0: return sign * (1.0 / special_numbers[0]);
    case 1: return special_numbers[0] / special_numbers[0];
    }
    return sign * special_numbers[below(sizeof special_numbers / sizeof *special_numbers)];
}
static double exponent(void) {
    static const double usual[] = { 2.0, -1.0, 0.5, 3.0, -0.5, 1.5, 4.0, -2.0, 1.0, -3.0, 0.25, 10.0, -1.5, 1e3 };
    if (below(2)) return usual[below(sizeof usual / sizeof *usual)];
    return input(below(4) ? 1 : (int)below(7));
}
"""

_COMPARISON = """
#define FUNCTION(lanes) {name}_##lanes
static double (*volatile library)({types}) = {library};
static int differs(double a, double b) {{ return bits_of(a) != bits_of(b) && (a == a || b == b); }}
#define COMPARE(lanes) \\
    for (int start = 0; start < 8; start += lanes) {{ \\
        double##lanes u, v, w; \\
        __builtin_memcpy(&u, x + start, sizeof u), __builtin_memcpy(&v, y + start, sizeof v); \\
        w = FUNCTION(lanes)({arguments}); \\
        __builtin_memcpy(result, &w, sizeof w); \\
        for (int lane = 0; lane < lanes; lane++) \\
            if (differs(result[lane], wanted[start + lane]) && !found++) {{ \\
                report[1] = x[start + lane], report[2] = y[start + lane]; \\
                report[3] = result[lane], report[4] = wanted[start + lane]; \\
            }} \\
    }}
__attribute__((visibility("default"))) int compare(void *const *m);
int compare(void *const *m) {{
    double *report = m[0], x[8], y[8], wanted[8], result[8];
    long long found = 0;
    for (long block = 0; block < {blocks}; block++) {{
        int kind = block % 6;
        for (int lane = 0; lane < 8; lane++) {{
            natural other = below(24);
            x[lane] = input(other > 5 ? kind : other > 2 ? 0 : 6), y[lane] = exponent();
            wanted[lane] = library({scalars});
        }}
        COMPARE(8)
        COMPARE(4)
        COMPARE(2)
    }}
    report[0] = (double)found;
    return 0;
}}
"""


def checker(function: str) -> str:
    """The C source.

    Its `compare` writes five numbers to m[0]: how many results differ, and of the first of them the two inputs, the
    result and the library's.
    """
    two = function == "power"
    comparison = _COMPARISON.format(
        name=function,
        library={"power": "pow"}.get(function, function),
        types="double, double" if two else "double",
        arguments="u, v" if two else "u",
        scalars="x[lane], y[lane]" if two else "x[lane]",
        blocks=BLOCKS,
    )
    inputs = _INPUTS.replace("LN2_BY_256", "0x1.62e42fefa39efp-9").replace("OFFSET", "0x0000155500000000ULL")
    return vector_functions("float64", "strict", [2, 4, 8], [function]) + inputs + comparison
