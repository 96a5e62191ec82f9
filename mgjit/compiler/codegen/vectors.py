"""Vector types and functions of the generated C, by the vector extensions of gcc and clang.

`real8` is a vector of eight numbers in a register, `memory_real8` the same in memory at any address, and `mask8` has
integers of the same width: comparisons set all their bits or none.  Only what a source uses is emitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...engine.operations import COMPARISONS, OPERATIONS
from .mathematics.source import QUICK, vector_functions
from .transpose import block_widths, transpose_function

#: A mathematical function with more calls than this in a source is not inlined.
_FEW_CALLS = 4
#: Nor are moves to or from distant elements, which are many instructions.
_FEW_MOVES = 8

#: For fewer lanes than this, mathematical functions call the C library for each lane.
_FEWEST_LANES = 4

_NAMES = {"select": "where"}  # operations that have another name in C

_UNROLLED = """\
#define PRAGMA(text) _Pragma(#text)
#define UNROLLED(n) PRAGMA(GCC unroll n)
"""

_TYPE = """\
typedef real real{n} __attribute__((vector_size({n} * sizeof(real))));
typedef integer mask{n} __attribute__((vector_size({n} * sizeof(real))));
static inline UNUSED real{n} choose_{n}(mask{n} m, real{n} a, real{n} b)
{{
    return (real{n})((m & (mask{n})a) | (~m & (mask{n})b));
}}
"""

#: Vectors of elements that lie `stride` apart.  Loops, because such vectors would be most of the text of a source;
#: unrolled, because the processor waits for a vector that is put together in memory, which takes three times as long.
_MOVES = {
    "gather": (
        "static inline real{n} gather_{n}(const real *x, long stride) "
        "{{ real{n} y; UNROLLED({n}) for (int k = 0; k < {n}; k++) y[k] = x[k * stride]; return y; }}"
    ),
    "scatter": (
        "static inline void scatter_{n}(real *x, long stride, real{n} y) "
        "{{ UNROLLED({n}) for (int k = 0; k < {n}; k++) x[k * stride] = y[k]; }}"
    ),
}

#: By arity, the functions and macros that are called for each lane.
_CALLED = {
    arity: {name: one.called for name, one in OPERATIONS.items() if one.called and one.arity == arity}
    for arity in (1, 2)
}
#: Text of each function, by operation; `n` is the number of lanes.
_OPERATIONS = {
    **_MOVES,
    "relu": "static inline real{n} relu_{n}(real{n} x) {{ return (real{n})((mask{n})x & ~(x < (real{n}){{0}})); }}",
    "maximum": "static inline real{n} maximum_{n}(real{n} x, real{n} y) {{ return choose_{n}(y > x, y, x); }}",
    "minimum": "static inline real{n} minimum_{n}(real{n} x, real{n} y) {{ return choose_{n}(y < x, y, x); }}",
    "select": (
        "static inline real{n} where_{n}(real{n} c, real{n} x, real{n} y) "
        "{{ return choose_{n}(c != (real{n}){{0}}, x, y); }}"
    ),
    **{
        name: (
            f"static inline real{{n}} {name}_{{n}}(real{{n}} x, real{{n}} y) "
            f"{{{{ return (real{{n}})((x {symbol} y) & (mask{{n}})((real{{n}}){{{{0}}}} + (real)1)); }}}}"
        )
        for name, symbol in COMPARISONS.items()
    },
    **{
        name: (
            f"static inline real{{n}} {name}_{{n}}(real{{n}} x) "
            f"{{{{ real{{n}} y; for (int k = 0; k < {{n}}; k++) y[k] = {macro}(x[k]); return y; }}}}"
        )
        for name, macro in _CALLED[1].items()
    },
    "sqrt": (
        "static inline real{n} sqrt_{n}(real{n} x) {{\n"
        "#ifdef SQUARE_ROOT_{n}\n"
        "    return SQUARE_ROOT_{n}(x);\n"
        "#else\n"
        "    real{n} y; for (int k = 0; k < {n}; k++) y[k] = SQUARE_ROOT(x[k]); return y;\n"
        "#endif\n"
        "}}"
    ),
    **{
        name: (
            f"static inline real{{n}} {name}_{{n}}(real{{n}} x, real{{n}} y) "
            f"{{{{ real{{n}} z; for (int k = 0; k < {{n}}; k++) z[k] = {macro}(x[k], y[k]); return z; }}}}"
        )
        for name, macro in _CALLED[2].items()
    },
}

#: Square roots of whole vectors, where the processor has such an instruction and gcc a builtin for it.
_SQUARE_ROOTS = {
    "float64": """\
#if defined(__AVX512F__) && !defined(__clang__)
#define SQUARE_ROOT_8(x) __builtin_ia32_sqrtpd512_mask(x, x, -1, 4)
#endif
#if defined(__AVX__) && !defined(__clang__)
#define SQUARE_ROOT_4(x) __builtin_ia32_sqrtpd256(x)
#endif
""",
    "float32": """\
#if defined(__AVX512F__) && !defined(__clang__)
#define SQUARE_ROOT_16(x) __builtin_ia32_sqrtps512_mask(x, x, -1, 4)
#endif
#if defined(__AVX__) && !defined(__clang__)
#define SQUARE_ROOT_8(x) __builtin_ia32_sqrtps256(x)
#endif
""",
}


#: Small integers as ints. gcc converts them one by one unless that is done by steps of twice the size, and needs eight
#: instructions for 16 of them, where there is one.
_WIDENED = """\
#if defined(__AVX512F__) && !defined(__clang__)
#define {name}(x) __builtin_ia32_pmov{kind}512_mask(({vector})(x), ({number}){{0}}, -1)
#else
#define {name}(x) {steps}
#endif
"""
#: An empty instruction that has a vector in a register: gcc cannot take it from memory where it is used.
_HELD = """\
#if defined({feature}) && !defined(__clang__)
#define HELD_{n}(x) __asm__("" : "+v"(x))
#else
#define HELD_{n}(x)
#endif
"""
#: By bytes of a vector, the macro of a processor with such registers of which instructions take operands from memory.
_FEATURES = {16: "__SSE2__", 32: "__AVX__", 64: "__AVX512F__"}
_WIDENING = {"signed char": "sxbd", "unsigned char": "zxbd", "short": "sxwd", "unsigned short": "zxwd"}


class Vectors:
    """The vector types and functions that a source uses, and their definitions.

    Args:
        dtype: "float64" or "float32".
        mode: "strict" or "fast".
        functions: those of exp, log, tanh and power that have a vector version (codegen/mathematics); the others call
            the C library for each lane.
        has_transpose: whether there is the function of codegen/transpose.py.
    """

    def __init__(
        self,
        dtype: str = "float64",
        mode: str = "strict",
        functions: frozenset[str] = frozenset(),
        has_transpose: bool = False,
    ) -> None:
        self._dtype, self._mode, self._functions = dtype, mode, functions
        self._types: set[int] = set()
        self._memory_types: set[tuple[int, str]] = set()
        self._operations: Counter[tuple[str, int]] = Counter()
        self._widened: dict[str, str] = {}
        self._held: dict[int, str] = {}
        self.has_transpose = has_transpose

    def type(self, lanes: int) -> str:
        """The name of a vector type."""
        self._types.add(lanes)
        return f"real{lanes}"

    def memory_type(self, lanes: int, element: str = "real") -> str:
        """The name of the type of a vector in memory."""
        self.type(lanes)
        self._memory_types.add((lanes, element))
        return f"memory_{element.replace(' ', '_')}{lanes}"

    def broadcast(self, number: str, lanes: int) -> str:
        """A vector with the same number in all lanes: `x - 0.0` keeps every number, `x + 0.0` would change -0.0."""
        return f"({number} - ({self.type(lanes)}){{0}})"

    def is_whole(self, operation: str, lanes: int) -> bool:
        """Whether there is a function for whole vectors (codegen/mathematics)."""
        if operation in QUICK:
            return self._dtype == "float32" and self._mode == "fast" and lanes >= QUICK[operation]
        return operation in self._functions and lanes >= _FEWEST_LANES

    def call(self, operation: str, operands: Sequence[str], lanes: int) -> str:
        """An operation as a call of its function."""
        self.type(lanes)
        self._operations[operation, lanes] += 1
        return f"{_NAMES.get(operation, operation)}_{lanes}({', '.join(operands)})"

    def widened(self, text: str, element: str, lanes: int) -> str:
        """A vector of integers of one or two bytes as one of ints."""
        size = 2 if element.endswith("short") else 1
        steps = "x" if lanes == 16 else text
        for wider in ("short", "int")[size - 1 :]:
            steps = f"__builtin_convertvector({steps}, {self.memory_type(lanes, wider)})"
        if lanes != 16:
            return steps
        name = f"WIDENED_{_WIDENING[element]}".upper()
        vector = f"{'short' if size == 2 else 'char'} __attribute__((vector_size({16 * size})))"
        number = self.memory_type(lanes, "int")
        kind = _WIDENING[element]
        self._widened[name] = _WIDENED.format(name=name, kind=kind, vector=vector, number=number, steps=steps)
        return f"{name}({text})"

    @property
    def are_held(self) -> bool:
        """Whether to hold vectors in registers (codegen/held.py)."""
        return self._mode == "fast"

    def held(self, name: str, lanes: int, size: int) -> str:
        """A statement that has a vector of numbers of `size` bytes in a register."""
        self._held[lanes] = _HELD.format(n=lanes, feature=_FEATURES[lanes * size])
        return f"HELD_{lanes}({name});"

    def source(self) -> list[str]:
        """The definitions of everything that was used."""
        lanes = max(self._types, default=1)
        if self.has_transpose:
            for width in block_widths(lanes):
                self.memory_type(width)
        transpose = [transpose_function(lanes)] if self.has_transpose else []
        if not self._types:
            return transpose
        lines = [_TYPE.format(n=n) for n in sorted(self._types)]
        for n, element in sorted(self._memory_types):
            size = f"__attribute__((vector_size({n} * sizeof({element})), aligned(sizeof({element}))))"
            lines.append(f"typedef {element} memory_{element.replace(' ', '_')}{n} {size};")
        lines += [*self._widened.values(), *self._held.values()]
        whole = sorted((name, n) for name, n in self._operations if self.is_whole(name, n))
        if any(operation == "sqrt" for operation, _ in self._operations):
            lines.append(_SQUARE_ROOTS[self._dtype])
        if any(operation in _MOVES for operation, _ in self._operations):
            lines.append(_UNROLLED)
        lines += [self._definition(*one) for one in sorted(self._operations.keys() - set(whole))]
        text = ["\n".join(lines) + "\n", *transpose]
        if whole:
            widths, names = sorted({n for _, n in whole}), sorted({operation for operation, _ in whole})
            often = {name for name in names if sum(self._operations[name, n] for n in widths) > _FEW_CALLS}
            text.append(vector_functions(self._dtype, self._mode, widths, names, often - QUICK.keys()))
        return text

    def _definition(self, operation: str, lanes: int) -> str:
        text = _OPERATIONS[operation].format(n=lanes)
        if operation in _MOVES and self._operations[operation, lanes] > _FEW_MOVES:
            return text.replace("static inline", "static __attribute__((noinline))")
        return text
