"""The C file of an export.

1. Checks of the compiler: numbers depend on the rounding of each operation.
2. Constant data.
3. The functions of the phases of the step, one after the other.
4. The exported functions: the initialisation, and one call, which checks run-time indices before anything is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from ..compiler.codegen.scalar import float_literal
from ..ir.trace import IndexCheck
from .design import Design
from .emitter import ExportEmitter, Helpers
from .header import init_prototype, memory_size, run_prototype
from .lines import as_comment
from .numbers import array_text, integer_type

_CHECKS = """\
#if !defined({macro}_ANY_ROUNDING)
#if defined(__FAST_MATH__)
#error "-ffast-math changes the numbers of {prefix}: leave it out, or define {macro}_ANY_ROUNDING"
#endif
#if defined(__FLT_EVAL_METHOD__)
#if __FLT_EVAL_METHOD__ != 0{allowed}
#error "this processor computes with more bits than {prefix} needs: use SSE, or define {macro}_ANY_ROUNDING"
#endif
#endif
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
"""


#: The largest elements of formats whose comparison with a larger number compilers find fault with.
_LARGEST = {"b": 127, "B": 255, "h": 32767, "H": 65535, "?": 255}


def source_text(design: Design) -> str:
    """The text of the C file, without the lines at the top."""
    helpers = Helpers(design.prefix, design.program, design.mode, design.sites)
    functions, calls = _functions(design, helpers)
    parts = [f'#include "{design.prefix}.h"\n']
    if helpers.uses_math:
        parts.append("#include <math.h>\n")
    allowed = "" if design.number == "float" else " && __FLT_EVAL_METHOD__ != 1"
    parts.append(_CHECKS.format(macro=design.macro, prefix=design.prefix, allowed=allowed))
    parts += [*_sizes(design), *_data(design, helpers), *helpers.definitions(), *functions]
    if design.needs_init:
        parts.append(_init(design))
    parts.append(_run(design, calls))
    return "\n".join(parts)


def _sizes(design: Design) -> list[str]:
    size = memory_size(design)
    if size is None:
        return []
    condition = f"sizeof({design.prefix}_memory) == {design.macro}_MEMORY_SIZE"
    return [f"/* The macro is right. */\ntypedef char {design.prefix}_check[{condition} ? 1 : -1];\n"]


def _data(design: Design, helpers: Helpers) -> list[str]:
    """Constant data that is used: compilers find fault with any other."""
    precision, prefix = design.program.precision, design.prefix
    found = []
    kept = [] if design.in_file else design.data
    for one in kept:
        name = f"{prefix}_first_{one.name}" if one.changes else f"{prefix}_{one.name}"
        if any(map(_is_not_zero, one.numbers)) if one.changes else one.target in helpers.used:
            head = f"static const {design.number} {name}[{len(one.numbers)}]"
            about = "" if one.changes or not one.about else as_comment(one.about) + "\n"
            found.append(about + array_text(head, one.numbers, precision))
    constants = design.program.constants
    if any(array.space == "constant" for array in helpers.used):
        head = f"static const {design.number} {prefix}_constants[{len(constants)}]"
        found.append(array_text(head, constants, precision))
    tables = design.layout.tables
    if helpers.uses_tables:
        head = f"static const {integer_type(tables)} {prefix}_table[{len(tables)}]"
        found.append(array_text(head, tables, None))
    return found


def _is_not_zero(number: float) -> bool:
    return number != 0.0 or str(number)[0] == "-"


def _parameters(design: Design) -> list[tuple[str, str]]:
    """Declaration and name of what the functions of the phases take."""
    regions = enumerate(design.arguments.regions)
    types = [
        (number, design.number if design.arguments.numbers_of(number) else one.type)
        for number, region in regions
        for one in design.arguments.arguments
        if region.size and one.region == number and one.offset == 0
    ]
    found = [(f"{design.prefix}_memory *memory", "memory")]
    found += [(f"const {kind} *x{number}", f"x{number}") for number, kind in types]
    return found + ([(f"{design.number} *y", "y")] if design.outputs else [])


def _functions(design: Design, helpers: Helpers) -> tuple[list[str], list[str]]:
    """The functions of the phases, and the names of those that do something."""
    sources, constants, parameters = design.sources(), design.constants(), _parameters(design)
    functions, names = [], []
    for name, nodes in design.program.phases:
        if nodes:
            emitter = ExportEmitter(design.program, design.layout, helpers, sources, constants, parameters)
            emitter.nodes(nodes)
            text = emitter.function(name)
            functions += [*helpers.take(), text]
            names.append(name)
    return functions, names


def _init(design: Design) -> str:
    lines = [f"{init_prototype(design)}", "{"]
    if design.in_file:
        lines.append("    memory->weights = weights;")
    for one in design.changing:
        source = f"weights[{one.offset} + k]" if design.in_file else f"{design.prefix}_first_{one.name}[k]"
        if not design.in_file and not any(map(_is_not_zero, one.numbers)):
            source = float_literal(0.0, design.program.precision)
        lines.append(f"    for (long k = 0; k < {len(one.numbers)}; k++) {design.element(one, 'k')} = {source};")
    return "\n".join([*lines, "}", ""])


def _run(design: Design, calls: Sequence[str]) -> str:
    arguments = design.arguments
    body: list[str] = []
    names = ["memory"]
    for number, region in enumerate(arguments.regions):
        single = arguments.numbers_of(number)
        if single:
            values = [f"({design.number}){one.name}" if one.is_integer else one.name for one in single]
            body.append(f"    const {design.number} x{number}[{region.size}] = {{{', '.join(values)}}};")
        names += [f"x{number}" if single else one.name for one in arguments.arguments if one.region == number][:1]
    names += ["result"] if design.outputs else []
    checks = [line for group in _groups(design.checks) for line in _check(design, *group)]
    checks += _kept_checks(design)
    lines = [f"    {design.prefix}_{name}({', '.join(names)});" for name in calls]
    unused = [] if calls else [f"    (void){name};" for name in names]
    return "\n".join([
        run_prototype(design), "{", *body, *checks, *unused, *lines, f"    return {design.macro}_OK;", "}", "",
    ])  # fmt: skip


def _groups(checks: Sequence[IndexCheck]) -> list[tuple[int, int, range]]:
    """Checks as (first input, how many that follow each other, the integers that they may be)."""
    wanted = sorted({(check.start, check.count, check.input_index) for check in checks})
    found = []
    for (start, size, _), group in groupby(enumerate(wanted), lambda one: (*one[1][:2], one[1][2] - one[0])):
        inputs = [index for _, (_, _, index) in group]
        found.append((inputs[0], len(inputs), range(start, start + size)))
    return sorted(found, key=itemgetter(0))


def _kept_checks(design: Design) -> list[str]:
    """Lines that check the indices that earlier calls, or the caller, have left in the memory."""
    named = {one.target: one for one in design.changing}
    found = [(design.element(named[array], str(k)), count) for array, k, count in design.kept if array in named]
    return [_refusal(design, _is_no_index(text, design.number, range(count))) for text, count in found]


def _refusal(design: Design, wrong: str) -> str:
    return f"    if ({wrong}) return {design.macro}_INDEX_ERROR;"


def _is_no_index(text: str, number: str, allowed: range) -> str:
    """Whether a float or double is none of these integers."""
    suffix = "f" if number == "float" else ""
    in_range = f"{text} >= {allowed.start}.0{suffix} && {text} < {allowed.stop}.0{suffix}"
    return f"!({in_range}) || {text} != ({number})(long){text}"


def _check(design: Design, first: int, count: int, allowed: range) -> list[str]:
    """Lines that check run-time indices."""
    lines: list[str] = []
    least, limit = allowed.start, allowed.stop
    while count:
        one, position = design.arguments.find(first)
        here = min(count, one.count - position)
        text = one.name if one.size is None else f"{one.name}[{f'k + {position}' if position else 'k'}]"
        if one.is_integer:
            low = [] if one.format in "BHIQ?" and least <= 0 else [f"{text} < {least}"]
            high = [] if limit > _LARGEST.get(one.format, limit) else [f"{text} >= {limit}"]
            wrong = " || ".join([*low, *high])
            if not wrong:
                return lines
        else:
            wrong = _is_no_index(text, one.type, allowed)
        refusal = _refusal(design, wrong)
        lines.append(refusal if one.size is None else f"    for (long k = 0; k < {here}; k++) {refusal.strip()}")
        first, count = first + here, count - here
    return lines
