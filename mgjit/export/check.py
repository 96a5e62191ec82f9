"""The caller of an export: a program that repeats recorded calls and compares what it gets, bit for bit.

1. The inputs and results of each call are hexadecimal floats.  Of parameters and state after the last call there is a
   checksum of their bits, in the order of the memory.
2. Before the initialisation, the memory holds nans: nobody may rely on what is there.
3. It prints what differs, or that nothing does, and returns 0 only then.
4. If numbers differ and the compiler has made one rounding of a product and a sum, it says which option is missing.
5. Of a step in fast mode, only results are compared, with a tolerance: compilers may reorder its operations.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from ..engine.precision import FLOAT32, Precision
from .arguments import as_array
from .design import Data, Design
from .numbers import CHECKSUM_BASIS, CHECKSUM_PRIME, checksum, element_texts, lines_of

_HEAD = """\
/* Exported by mgjit: a caller of {prefix}.c that checks it. {calls} recorded calls must give the recorded numbers. */
#include "{prefix}.h"

#include <stddef.h>
#include <stdio.h>

#define CALLS {calls}

static {prefix}_memory memory; /* may lie anywhere */
"""

_SAME = """\
static int same({number} x, {number} y)
{{
    union {{ {number} number; {integer} bits; }} a, b;
    a.number = x;
    b.number = y;
    return a.bits == b.bits || (x != x && y != y);
}}
"""

_NEAR = """\
static int same({number} x, {number} y) /* in fast mode, compilers may reorder operations */
{{
    const {number} difference = x > y ? x - y : y - x, size = x > 0 ? x : -x;
    return x == y || (x != x && y != y) || difference <= {tolerance} * (1 + size);
}}
"""

_ADD = """\
static uint32_t checksum = {basis}u;

static void add(const {number} *numbers, long count)
{{
    for (long k = 0; k < count; k++) {{
        union {{ {number} number; {integer} bits; }} one;
        one.number = numbers[k];
        if (numbers[k] != numbers[k]) one.bits = {nan};
        checksum = (checksum ^ (uint32_t)one.bits) * {prime}u;
{high}    }}
}}
"""
_HIGH = "        checksum = (checksum ^ (uint32_t)(one.bits >> 32)) * {prime}u;\n"

LOAD = """\
static {number} weights[{size}];

static int load(void)
{{
    FILE *file = fopen("{prefix}_weights.bin", "rb");
    const size_t count = file ? fread(weights, sizeof weights[0], {size}, file) : 0;
    if (file) fclose(file);
    return count == {size};
}}
"""

_FUSED = """\
static {number} product_and_sum({number} x, {number} y, {number} z)
{{
    return x * y + z;
}}

static int is_contracted(void)
{{
    volatile {number} x = {x}, z = {z}; /* z is minus the square of x, rounded */
    return product_and_sum(x, x, z) != 0;
}}
"""
#: A number whose square is no number, and minus that square, rounded.
_UNROUNDED = {"double": ("0x1.0000001p+0", "-0x1.0000002p+0"), "float": ("0x1.001p+0f", "-0x1.002p+0f")}

_COMPARE = """\
        for (int k = 0; k < {macro}_SIZE_OF_RESULT; k++)
            if (!same(result[k], results[call][k]) && wrong++ < 10)
                printf("call %d, result[%d]: %.17g, recorded %.17g\\n", call, k, {cast}result[k],
                       {cast}results[call][k]);
"""

_TOLERANCES = {"float": "1e-3f", "double": "1e-9"}


def check_text(design: Design) -> str:
    """The text of the program."""
    prefix, number, recording = design.prefix, design.number, design.recording
    is_exact, precision = design.mode == "strict", design.program.precision
    integer = "uint32_t" if precision is FLOAT32 else "uint64_t"
    parts = [_HEAD.format(prefix=prefix, calls=len(recording.results)), *_inputs(design)]
    if design.outputs:
        head = f"static const {number} results[CALLS][{design.outputs}]"
        parts.append(_table(head, recording.results, precision))
        same = _SAME if is_exact else _NEAR
        parts.append(same.format(number=number, integer=integer, tolerance=_TOLERANCES[number]))
    learned = [one for one in design.changing if is_exact and one.target.space != "gradient"]
    if learned:
        nan, high = ("0x7fc00000u", "") if precision is FLOAT32 else ("UINT64_C(0x7ff8000000000000)", _HIGH)
        basis, prime = hex(CHECKSUM_BASIS), hex(CHECKSUM_PRIME)
        high = high.format(prime=prime)
        parts.append(_ADD.format(number=number, integer=integer, basis=basis, prime=prime, nan=nan, high=high))
    if is_exact:
        x, z = _UNROUNDED[number]
        parts.append(_FUSED.format(number=number, x=x, z=z))
    if design.in_file:
        parts.append(LOAD.format(prefix=prefix, number=number, size=design.file_size))
    parts.append("\n".join(_main(design, learned)))
    return "\n".join(parts)


def _inputs(design: Design) -> list[str]:
    """The recorded inputs, an array of rows for each argument."""
    rows = [design.arguments.row(design.plan, frame) for frame in design.recording.frames]
    found = []
    for number, one in enumerate(design.arguments.arguments):
        numbers = [as_array(one, row[number]) for row in rows]
        head = f"static const {one.type} in_{one.name}[CALLS]"
        if one.size is None:
            elements = lines_of([x for row in numbers for x in row], one.precision)
            found.append("\n".join([f"{head} = {{", *elements, "};\n"]))
        else:
            found.append(_table(f"{head}[{one.size}]", numbers, one.precision))
    return found


def _table(head: str, rows: Sequence[array[Any]], precision: Precision | None) -> str:
    lines = [f"{head} = {{"]
    for row in rows:
        texts = element_texts(row, precision)
        lines += [f"    {{{texts[0]}}},"] if len(texts) == 1 else ["    {", *lines_of(row, precision), "    },"]
    return "\n".join([*lines, "};\n"])


def _main(design: Design, learned: Sequence[Data]) -> list[str]:
    prefix, macro = design.prefix, design.macro
    lines = ["int main(void)", "{", "    int wrong = 0;"]
    lines.append("    for (size_t k = 0; k < sizeof memory; k++) ((unsigned char *)&memory)[k] = 0xff; /* whatever */")
    if design.in_file:
        lines += [
            "    if (!load()) {",
            f'        printf("{prefix}_weights.bin cannot be read\\n");',
            "        return 1;",
            "    }",
        ]
    if design.needs_init:
        lines.append(f"    {prefix}_init(&memory{', weights' if design.in_file else ''});")
    lines.append("    for (int call = 0; call < CALLS; call++) {")
    names = ["&memory", *(f"in_{one.name}[call]" for one in design.arguments.arguments)]
    if design.outputs:
        lines.append(f"        {design.number} result[{macro}_SIZE_OF_RESULT];")
        names.append("result")
    lines += [
        f"        if ({prefix}_run({', '.join(names)}) != {macro}_OK) {{",
        f'            printf("{prefix}: call %d: an index is out of range\\n", call);',
        "            return 1;",
        "        }",
    ]
    if design.outputs:
        cast = "" if design.number == "double" else "(double)"
        lines += _COMPARE.format(macro=macro, cast=cast).rstrip().split("\n")
    lines.append("    }")
    if learned:
        wanted = checksum([_recorded(design, one) for one in learned])
        lines += [f"    add({design.first_of(one, 'memory.')}, {len(one.numbers)});" for one in learned]
        lines += [
            f"    if (checksum != {wanted:#x}u) {{",
            f'        printf("{prefix}: parameters and state differ after the last call\\n");',
            "        wrong++;",
            "    }",
        ]
    said = "all bits as recorded" if design.mode == "strict" else "as recorded, but for rounding"
    lines.append(f'    if (wrong) printf("{prefix}: %d numbers differ\\n", wrong);')
    if design.mode == "strict":
        why = "a product and a sum are rounded once: compile with -ffp-contract=off"
        lines.append(f'    if (wrong && is_contracted()) printf("{prefix}: {why}\\n");')
    return [
        *lines,
        f'    if (!wrong) printf("{prefix}: %d call%s, {said}\\n", CALLS, CALLS == 1 ? "" : "s");',
        "    return wrong != 0;",
        "}",
        "",
    ]


def _recorded(design: Design, one: Data) -> array[float]:
    regions = design.recording.parameters if one.target.space == "parameter" else design.recording.states
    return regions[one.target.region]
