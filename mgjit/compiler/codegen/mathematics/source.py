"""The C functions on vectors that a source calls.

1. Strict float64: the algorithms of exact_*.py, written for at most eight lanes; wider vectors are cut in
   halves.
2. Strict float32: the float64 function, rounded; that is what strict float32 means.  A register holds half as many
   lanes of float64 as of float32, so the widest vector is cut in halves here, too.
3. Fast float64: as strict.  The algorithms are quick, and whatever the compiler reorders, within 2 ulp.
4. Fast float32: the algorithms of fast_*.py, which state their errors; what has none there, as strict.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from .exact_exp import EXACT_EXP
from .exact_log import EXACT_LOG
from .exact_power import EXACT_POWER
from .exact_tanh import EXACT_TANH
from .fast_divide import FAST_DIVIDE
from .fast_exp import FAST_EXP
from .fast_log import FAST_LOG
from .fast_tanh import FAST_TANH
from .parts import assemble, for_lanes
from .vectors import TYPES

EXACT = {"exp": EXACT_EXP, "log": EXACT_LOG, "tanh": EXACT_TANH, "power": EXACT_POWER}
"""The functions that have a vector version, and their algorithms for lanes of float64."""

_FAST_FLOAT = {"exp": FAST_EXP, "log": FAST_LOG, "tanh": FAST_TANH, "divide": FAST_DIVIDE}

QUICK = {"divide": 16}
"""Operations that are functions in fast float32, from how many lanes on; they are always inlined."""

_WIDEST = 8

_PROTOTYPES = """\
extern double exp(double);
extern double log(double);
extern double tanh(double);
extern double pow(double, double);
"""


def vector_functions(
    dtype: str, mode: str, lanes: Sequence[int], names: Sequence[str], called_often: Container[str] = ()
) -> str:
    """C functions such as `double8 exp_8(double8 x)` or `float16 tanh_16(float16 x)`.

    A source must include this text only once, because of its tables and helpers.

    Args:
        dtype: "float64" or "float32".
        mode: "strict" or "fast".
        lanes: the widths, powers of two from 2 on.
        names: of "exp", "log", "tanh" and "power"; in fast float32 also "divide".
        called_often: those of `names` whose calls are not inlined: their code would be repeated for each.
    """
    kind = "float" if dtype == "float32" else "double"
    own = [name for name in names if kind == "float" and mode == "fast" and name in _FAST_FLOAT]
    others = [name for name in names if name not in own]
    widest = _WIDEST if kind == "double" else max(2, min(_WIDEST, max(lanes) // 2))
    cut = sorted({width for asked in lanes for width in _halvings(asked, widest)})
    narrow = [width for width in cut if width <= widest]
    wanted = [(_FAST_FLOAT[name], lanes) for name in own] + [(EXACT[name], narrow) for name in others]
    texts = [_PROTOTYPES, assemble([(TYPES, cut if others else lanes), *wanted])]
    for name in names:
        algorithm = f"fast_{name}_f@" if name in own else f"exact_{name}_@"
        inline = "__attribute__((noinline, unused))" if name in called_often else "inline __attribute__((unused))"
        for width in lanes if name in own else cut:
            body = _body(kind, name, width, algorithm, half=name not in own and width > widest, lanes=lanes)
            head = f"static {inline} {kind}@ {_name(name, width, lanes)}({_parameters(kind, name)}) {{"
            texts += [for_lanes("\n".join([head, *body, "}", ""]), width)]
    return "\n".join(text for text in texts if text)


def _halvings(lanes: int, widest: int) -> list[int]:
    """A width and, when it is too wide, the widths it is cut into."""
    return [lanes] if lanes <= widest else [lanes, *_halvings(lanes // 2, widest)]


def _name(name: str, width: int, lanes: Sequence[int]) -> str:
    """The public name of a function, or another one if only wider vectors use it."""
    return f"{name}_{width}" if width in lanes else f"part_of_{name}_{width}"


def _arguments(name: str) -> tuple[str, ...]:
    return ("x", "y") if name in ("power", "divide") else ("x",)


def _parameters(kind: str, name: str) -> str:
    return ", ".join(f"{kind}@ {argument}" for argument in _arguments(name))


def _body(kind: str, name: str, width: int, algorithm: str, half: bool, lanes: Sequence[int]) -> list[str]:
    """The body of a function: its algorithm, in float64 if need be, or a call of itself for each half."""
    arguments = _arguments(name)
    if half:
        return _halves(kind, _name(name, width // 2, lanes), width // 2, arguments)
    if kind == "float" and algorithm.startswith("exact"):
        wide = ", ".join(f"__builtin_convertvector({argument}, double@)" for argument in arguments)
        return [f"    return __builtin_convertvector({algorithm}({wide}), float@);"]
    return [f"    return {algorithm}({', '.join(arguments)});"]


def _halves(kind: str, function: str, half: int, arguments: Sequence[str]) -> list[str]:
    """The body of a function that calls another one for each half."""
    lines = [
        f"    union {{ {kind}@ whole; {kind}{half} half[2]; }} {argument}_cut = {{ {argument} }};"
        for argument in arguments
    ]
    for number in (0, 1):
        values = ", ".join(f"{argument}_cut.half[{number}]" for argument in arguments)
        lines.append(f"    x_cut.half[{number}] = {function}({values});")
    return [*lines, "    return x_cut.whole;"]
