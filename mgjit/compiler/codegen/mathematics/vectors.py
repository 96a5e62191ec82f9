"""The vector types and the few operations that C's vector extensions leave out.

For n lanes: `double<n>` with `integer<n>` and `natural<n>` (64 bits a lane, signed and not), `float<n>` with
`word<n>` (32 bits a lane), and

    select_<n>(mask, a, b)   a where the mask is set, else b
    limited_f<n>(low, x, high)  x, or the limit that it exceeds; NaN stays
    any_<n>(mask)            whether a lane is set
    fused_<n>(a, b, c)       a * b + c; rounded once where the processor can, because then the mathematical
                             library does so as well; no compiler flag may split, join or reorder it

    lost_<n>(a, sum, b)      a + b - sum without rounding, if sum is the rounded a + b and |a| >= |b|
    keep_<n>(&x)             hides where x comes from: in fast mode compilers would simplify (x + big) - big

The names of the float variants end in f: `select_f<n>`.
"""

from __future__ import annotations

from .parts import Part

_PROLOGUE = """\
#define INLINE static inline __attribute__((always_inline, unused))
#if defined(__has_builtin)
#define HAS_BUILTIN(name) __has_builtin(name)
#else
#define HAS_BUILTIN(name) 0
#endif
#if defined(__FMA__) || defined(__FP_FAST_FMA) || defined(__ARM_FEATURE_FMA)
#define IS_FUSED 1
#else
#define IS_FUSED 0
#endif
"""

_TYPES = """\
typedef double double@ __attribute__((vector_size(8 * @)));
typedef long long integer@ __attribute__((vector_size(8 * @)));
typedef unsigned long long natural@ __attribute__((vector_size(8 * @)));
typedef float float@ __attribute__((vector_size(4 * @)));
typedef int word@ __attribute__((vector_size(4 * @)));
"""

_SELECT = """\
INLINE double@ select_@(integer@ mask, double@ a, double@ b) {
    return (double@)((mask & (integer@)a) | (~mask & (integer@)b));
}
INLINE float@ select_f@(word@ mask, float@ a, float@ b) {
    return (float@)((mask & (word@)a) | (~mask & (word@)b));
}
"""

#: Element type and lanes, the macro that must be defined, and the builtin that packs one bit per lane.
_LANE_BITS = {
    ("integer", 2): ("__SSE2__", "__builtin_ia32_movmskpd((double@)mask)"),
    ("integer", 4): ("__AVX__", "__builtin_ia32_movmskpd256((double@)mask)"),
    ("integer", 8): ("__AVX512DQ__", "__builtin_ia32_cvtq2mask512(mask)"),
    ("word", 4): ("__SSE__", "__builtin_ia32_movmskps((float@)mask)"),
    ("word", 8): ("__AVX__", "__builtin_ia32_movmskps256((float@)mask)"),
    ("word", 16): ("__AVX512DQ__", "__builtin_ia32_cvtd2mask512(mask)"),
}

#: Lanes, the macro that must be defined, and the builtins for min(high, x) and max(low, x).
_LIMITS = {
    4: ("defined(__SSE__)", "__builtin_ia32_minps(high, x)", "__builtin_ia32_maxps(low, x)"),
    8: ("defined(__AVX__)", "__builtin_ia32_minps256(high, x)", "__builtin_ia32_maxps256(low, x)"),
    16: (
        "defined(__AVX512F__)",
        "__builtin_ia32_minps512_mask(high, x, x, -1, 4)",
        "__builtin_ia32_maxps512_mask(low, x, x, -1, 4)",
    ),
}

_LOST = """\
INLINE double@ lost_@(double@ a, double@ sum, double@ b) {
    keep_@(&sum);
    a -= sum;
    keep_@(&a);
    return a + b;
}
"""

_FUSED_BUILTINS = {
    ("double", 2): ("defined(__FMA__)", "__builtin_ia32_vfmaddpd(a, b, c)"),
    ("double", 4): ("defined(__FMA__)", "__builtin_ia32_vfmaddpd256(a, b, c)"),
    ("double", 8): ("defined(__AVX512F__)", "__builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4)"),
    ("float", 4): ("defined(__FMA__)", "__builtin_ia32_vfmaddps(a, b, c)"),
    ("float", 8): ("defined(__FMA__)", "__builtin_ia32_vfmaddps256(a, b, c)"),
    ("float", 16): ("defined(__AVX512F__)", "__builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)"),
}


def _any(lanes: int) -> str:
    """Whether any lane is set: by the builtin where the processor has one, else by combining all lanes."""
    texts = []
    for kind, suffix in (("integer", ""), ("word", "f")):
        lines = [f"INLINE int any_{suffix}@({kind}@ mask) {{"]
        if (kind, lanes) in _LANE_BITS:
            macro, bits = _LANE_BITS[kind, lanes]
            lines += [f"#if defined({macro}) && HAS_BUILTIN({bits.partition('(')[0]})", f"    return {bits} != 0;"]
            lines += ["#endif"]
        joined = " | ".join(f"mask[{lane}]" for lane in range(lanes))
        texts.append("\n".join([*lines, f"    return ({joined}) != 0;", "}", ""]))
    return "".join(texts)


#: Bytes of a vector, the macro that says that one register holds it, and the asm constraint of such registers.
_REGISTERS = {16: ("__SSE2__", "x"), 32: ("__AVX__", "x"), 64: ("__AVX512F__", "v")}


def _keep(lanes: int) -> str:
    """An empty asm statement that might change the vector, which stops the optimiser; in a register if one fits."""
    texts = []
    for kind, suffix, size in (("double", "", 8 * lanes), ("float", "f", 4 * lanes)):
        lines = [f"INLINE void keep_{suffix}@({kind}@ *x) {{"]
        if size in _REGISTERS:
            macro, letter = _REGISTERS[size]
            lines += [f"#if defined({macro})", f'    __asm__("" : "+{letter}"(*x));']
            lines += ["#elif defined(__aarch64__)", '    __asm__("" : "+w"(*x));'] if size == 16 else []
            lines += ["#else"]
        lines += ['    __asm__("" : "+m"(*x));', *(["#endif"] if size in _REGISTERS else []), "}", ""]
        texts.append("\n".join(lines))
    return "".join(texts)


def _limited(lanes: int) -> str:
    """Clamp a vector: by builtins, because gcc does not recognise two selections as minimum and maximum."""
    lines = ["INLINE float@ limited_f@(float@ low, float@ x, float@ high) {"]
    if lanes in _LIMITS:
        condition, smaller, larger = _LIMITS[lanes]
        lines += [f"#if {condition} && !defined(__clang__)"]
        lines += ["    /* of operands that do not compare the second is the result */"]
        lines += [f"    x = {smaller};", f"    return {larger};", "#endif"]
    lines += ["    x = select_f@(x > high, high, x);", "    return select_f@(x < low, low, x);", "}", ""]
    return "\n".join(lines)


def _fused(element: str, lanes: int) -> str:
    """Fused multiply-add by the builtin of this width, else by the scalar one per lane, which optimisers rejoin."""
    suffix, scalar = ("", "__builtin_fma") if element == "double" else ("f", "__builtin_fmaf")
    kind = f"{element}@"
    lines = [f"INLINE {kind} fused_{suffix}@({kind} a, {kind} b, {kind} c) {{"]
    lines += [
        "#if HAS_BUILTIN(__builtin_elementwise_fma) && IS_FUSED",
        "    return __builtin_elementwise_fma(a, b, c);",
    ]
    if (element, lanes) in _FUSED_BUILTINS:
        condition, call = _FUSED_BUILTINS[element, lanes]
        lines += [f"#elif {condition} && HAS_BUILTIN({call.partition('(')[0]})", f"    return {call};"]
    lines += ["#elif IS_FUSED", f"    return ({kind}){{EACH({scalar}(a[#], b[#], c[#]))}};", "#else"]
    lines += [
        f"    {kind} product = a * b;",
        f"    keep_{suffix}@(&product);",
        "    product += c;",
        f"    keep_{suffix}@(&product);",
    ]
    return "\n".join([*lines, "    return product;", "#endif", "}", ""])


TYPES = Part(_TYPES, lambda: _PROLOGUE)
SELECT = Part(_SELECT, requires=(TYPES,))
LIMITED = Part(_limited, requires=(SELECT,))
ANY = Part(_any, requires=(TYPES,))
KEEP = Part(_keep, requires=(TYPES,))
LOST = Part(_LOST, requires=(KEEP,))
FUSED = Part(lambda lanes: _fused("double", lanes), requires=(KEEP,))
FUSED_FLOAT = Part(lambda lanes: _fused("float", lanes), requires=(KEEP,))
