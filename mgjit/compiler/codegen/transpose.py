"""Copies that turn rows into columns, such as those of packed arrays (schedule/pack.py), by whole vectors.

    for i: for j: packed[64 i + j] = p[i + 64 j]      ->      transpose(&packed[0], 64, &p[0], 64, 64, 64)

1. Such a copy is two loops around one statement, in which one loop takes single steps on one side, the other one on the
   other side.  It is a call, for any compiler.
2. The function takes square blocks, as wide as the vectors of the source: halves of two vectors change places, then
   quarters, down to single numbers.
3. What is left at the sides is copied in blocks of half that width, at last one number at a time.

Source: the butterfly of J. Eklundh, "A fast computer method for matrix transposing", IEEE Trans. Computers 1972.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...ir.dependence import plain
from ...ir.program import Block, Index, Load, Loop, Node, Reference, Statement

#: Loops of fewer iterations than this are left as they are, and all copies of a source that have fewer elements
#: together: the function takes compilers longer than loops.
_FEWEST, _FEWEST_ELEMENTS = 8, 1024
_WIDEST, _NARROWEST = 16, 4


class Transposition(NamedTuple):
    """A copy: `target` and `source` are the first elements; row r and column c are `step` r + c and r + `step` c."""

    target: Reference
    target_step: int
    source: Reference
    source_step: int
    rows: int
    columns: int


def transposition(outer: Loop) -> Transposition | None:
    """What a nest transposes; None if it is anything else."""
    inner = _only(outer)
    statement = _only(inner) if isinstance(inner, Loop) else None
    if not isinstance(inner, Loop) or not isinstance(statement, Statement) or statement.update:
        return None
    source, target = statement.operands[0], statement.target
    if statement.operation != "copy" or not isinstance(source, Load) or not isinstance(target, Reference):
        return None
    if any(loop.lanes or loop.bound is not None or loop.count < _FEWEST for loop in (outer, inner)):
        return None
    read = source.reference
    if read.array is target.array or plain(read.index) is None or plain(target.index) is None:
        return None
    to, of = dict(target.index.terms), dict(read.index.terms)
    for row, column in ((outer, inner), (inner, outer)):
        if to.get(column) == of.get(row) == 1 and to.get(row, 0) >= column.count and of.get(column, 0) >= 1:
            steps = to[row], of[column]
            return Transposition(_first(target, row, column), steps[0], _first(read, row, column), steps[1], row.count,
                                 column.count)  # fmt: skip
    return None


def has_many(nodes: Iterable[Node]) -> bool:
    """Whether the copies in nodes have so many elements that the function is worth its compilation."""
    return _elements(nodes) >= _FEWEST_ELEMENTS


def _elements(nodes: Iterable[Node]) -> int:
    found = 0
    for node in nodes:
        if isinstance(node, Block):
            found += _elements(node.body)
        elif isinstance(node, Loop):
            copy = transposition(node)
            found += node.count * _elements(node.body) if copy is None else copy.rows * copy.columns
    return found


def _only(loop: Loop) -> Node | None:
    return loop.body[0] if len(loop.body) == 1 else None


def _first(reference: Reference, *loops: Loop) -> Reference:
    """The element in the first iteration of some loops."""
    terms = tuple(term for term in reference.index.terms if term[0] not in loops)
    return Reference(reference.array, Index(reference.index.base, terms))


# ---- 2 and 3: the function ------------------------------------------------------------------------------------

_PARAMETERS = "real *to, long to_step, const real *from, long from_step, long rows, long columns"

_SINGLE = f"""\
static UNUSED void transpose_1({_PARAMETERS})
{{
    for (long r = 0; r < rows; r++)
        for (long c = 0; c < columns; c++)
            to[to_step * r + c] = from[r + from_step * c];
}}
"""

_SHUFFLE = """\
#if defined(__clang__)
#define SHUFFLE(mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(mask, a, b, ...) __builtin_shuffle(a, b, (mask){__VA_ARGS__})
#endif
"""


def block_widths(lanes: int) -> list[int]:
    """The widths of blocks where the widest vector has so many lanes."""
    found, width = [], min(lanes, _WIDEST)
    while width >= max(_NARROWEST, lanes // 2):
        found.append(width)
        width //= 2
    return found


def transpose_function(lanes: int) -> str:
    """The text of `transpose`, for a source whose vectors, and those in memory, have up to so many lanes."""
    texts, last = [_SINGLE], "transpose_1"
    for width in reversed(block_widths(lanes)):
        texts += [_SHUFFLE] if last == "transpose_1" else []
        texts.append(_blocks(width, last))
        last = f"transpose_{width}"
    return "\n".join([*texts, f"#define transpose {last}\n"])


def _blocks(width: int, rest: str) -> str:
    """A function that transposes blocks of a width, and leaves the rest to another one."""
    lines = [
        f"static NOINLINE UNUSED void transpose_{width}({_PARAMETERS})",
        "{",
        f"    const long height = rows - rows % {width}, breadth = columns - columns % {width};",
        f"    for (long r = 0; r < height; r += {width})",
        f"        for (long c = 0; c < breadth; c += {width}) {{",
    ]
    indent = 12 * " "
    lines += [
        f"{indent}real{width} v{k} = *(const memory_real{width} *)&from[r + from_step * (c + {k})], w{k};"
        for k in range(width)
    ]
    now, then = "v", "w"
    half = width // 2
    while half:
        low = [k if not k & half else width + k - half for k in range(width)]
        for k in (k for k in range(width) if not k & half):
            for target, places in ((k, low), (k + half, [place + half for place in low])):
                text = ", ".join(map(str, places))
                pair = f"{now}{k}, {now}{k + half}"
                lines.append(f"{indent}{then}{target} = SHUFFLE(mask{width}, {pair}, {text});")
        now, then, half = then, now, half // 2
    lines += [f"{indent}*(memory_real{width} *)&to[to_step * (r + {k}) + c] = {now}{k};" for k in range(width)]
    lines += [
        "        }",
        f"    {rest}(to + breadth, to_step, from + from_step * breadth, from_step, height, columns - breadth);",
        f"    {rest}(to + to_step * height, to_step, from + height, from_step, rows - height, columns);",
        "}",
        "",
    ]
    return "\n".join(lines)
