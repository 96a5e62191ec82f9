"""The header of an export: what a caller needs to know, in C99 and C++."""

from __future__ import annotations

from textwrap import wrap

from ..engine.precision import Precision
from .arguments import CArgument
from .design import Design
from .lines import as_comment

#: The width of comments about members of the memory.
_COLUMNS = 100

_GUARD = """\
#ifndef {macro}_H
#define {macro}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* How the functions are declared; define it before, if need be. */
#ifndef {macro}_API
#if defined(_WIN32) && defined({macro}_BUILD_DLL)
#define {macro}_API __declspec(dllexport)
#elif defined(_WIN32) && defined({macro}_USE_DLL)
#define {macro}_API __declspec(dllimport)
#else
#define {macro}_API
#endif
#endif
"""

_END = """\
#ifdef __cplusplus
}
#endif

#endif
"""


def header_text(design: Design) -> str:
    """The text of the header, without the lines at the top."""
    parts = [_GUARD.format(macro=design.macro), _sizes(design), _memory(design)]
    if design.needs_init:
        parts.append(_init(design))
    parts += [_run(design), _END]
    return "\n".join(parts)


def run_prototype(design: Design) -> str:
    """The head of the exported function."""
    parameters = [f"{design.prefix}_memory *memory", *(one.declaration() for one in design.arguments.arguments)]
    if design.outputs:
        parameters.append(f"{design.number} result[{design.outputs}]")
    return f"int {design.prefix}_run({', '.join(parameters)})"


def init_prototype(design: Design) -> str:
    """The head of the function that initialises the memory."""
    weights = f", const {design.number} *weights" if design.in_file else ""
    return f"void {design.prefix}_init({design.prefix}_memory *memory{weights})"


def memory_size(design: Design) -> int | None:
    """The size of the memory in bytes; None where it has a pointer, whose size is up to the processor."""
    if design.in_file:
        return None
    return design.program.precision.size * sum(size for _, size, _ in design.members())


def _sizes(design: Design) -> str:
    macro, size = design.macro, memory_size(design)
    total = f"sizeof({design.prefix}_memory)" if size is None else str(size)
    lines = [f"#define {macro}_MEMORY_SIZE {total} /* bytes, all of them from the caller */"]
    if design.outputs:
        lines.append(f"#define {macro}_SIZE_OF_RESULT {design.outputs}")
    arrays = [one for one in design.arguments.arguments if one.size is not None]
    lines += [f"#define {macro}_SIZE_OF_{one.name.upper()} {one.size}" for one in arrays]
    if design.file_size:
        weights = design.file_size * design.program.precision.size
        lines.append(f"#define {macro}_WEIGHTS_SIZE {weights} /* bytes of {design.prefix}_weights.bin */")
    lines += ["", f"#define {macro}_OK 0", f"#define {macro}_INDEX_ERROR 1 /* an index is out of range */", ""]
    return "\n".join(lines)


def _memory(design: Design) -> str:
    lines = ["/* What a step works on. Calls with different memories may run at the same time. */", "typedef struct {"]
    if design.in_file:
        lines.append(f"    const {design.number} *weights;")
    for declarator, _, what in design.members():
        member = f"    {design.number} {declarator};"
        comment = wrap(as_comment(what), _COLUMNS, subsequent_indent="   ")
        if len(comment) == 1:
            lines.append(f"{member} {comment[0]}")
        else:
            lines += [*(f"    {line}" for line in comment), member]
    return "\n".join([*lines, f"}} {design.prefix}_memory;", ""])


def _init(design: Design) -> str:
    if design.in_file:
        text = (
            f"/* Before the first call: `weights` are the numbers of {design.prefix}_weights.bin, little-endian,\n"
            "   which stay where they are as long as the memory is used. */"
        )
    else:
        text = "/* Before the first call, and to begin anew. */"
    return f"{text}\n{design.macro}_API {init_prototype(design)};\n"


def _run(design: Design) -> str:
    lines = [f"One call of {design.title}: returns {design.macro}_OK, or why nothing was done."]
    lines += [line for one in design.arguments.arguments for line in _argument(one, design.program.precision)]
    lines += design.results
    lines += [f"{path} is fixed: {text}" for path, text in design.arguments.fixed]
    comment = "\n   ".join(line.replace("*/", "* /") for line in lines)
    return f"/* {comment} */\n{design.macro}_API {run_prototype(design)};\n"


def _argument(one: CArgument, precision: Precision) -> list[str]:
    lines = [] if one.name == one.path else [f"{one.name}: {one.path}"]
    return lines + [f"{one.name}[{offset}]: {path}" for path, offset in one.parts]
