"""The files of an export that help its user: the smallest caller, and a page that says what is there."""

from __future__ import annotations

from .arguments import as_array
from .check import LOAD
from .design import Design
from .numbers import element_texts, lines_of

_PAGE = """\
# {title}

Exported by mgjit {version}: C99 that needs neither Python nor mgjit.

| file | what it is |
|---|---|
| `{prefix}.h` | the functions, and the memory that they work on: who calls them provides it |
| `{prefix}.c` | the code{weights}; comments name the lines of Python that it comes from |
| `{prefix}_example.c` | the smallest caller: one call with recorded arguments |
| `{prefix}_check.c` | repeats {calls}, and compares {compared} with what mgjit computed |
{file}| `CMakeLists.txt` | a library and a test for each export in this folder |

```sh
cc -std=c99 -O2 -ffp-contract=off {prefix}.c {prefix}_example.c -lm -o {prefix}_example && ./{prefix}_example
cc -std=c99 -O2 -ffp-contract=off {prefix}.c {prefix}_check.c -lm -o {prefix}_check && ./{prefix}_check
```

`-ffp-contract=off` keeps the two roundings of a product and a sum, as Python has them. `-ffast-math` is refused.

## What the memory holds

| member | meaning |
|---|---|
{members}
"""

_EXAMPLE = """\
/* Exported by mgjit: the smallest caller of {prefix}.c. */
#include "{prefix}.h"

#include <stdio.h>

static {prefix}_memory memory; /* {macro}_MEMORY_SIZE bytes; may lie anywhere */

{more}int main(void)
{{
{lines}
    return 0;
}}
"""


def page_text(design: Design, version: str) -> str:
    """The page, in Markdown."""
    calls = len(design.recording.results)
    data = f"| `{design.prefix}_weights.bin` | the numbers that are there before the first call |\n"
    members = [f"| `{declarator}` | {what.replace('|', '/')} |" for declarator, _, what in design.members()]
    return _PAGE.format(
        title=design.title, version=version, prefix=design.prefix, members="\n".join(members),
        weights="" if design.in_file else " and the weights", file=data if design.in_file else "",
        calls=f"{calls} recorded call{'s' if calls > 1 else ''}",
        compared="all bits" if design.mode == "strict" else "results",
    )  # fmt: skip


def example_text(design: Design) -> str:
    """The smallest caller."""
    prefix, names, lines = design.prefix, ["&memory"], []
    row = design.arguments.row(design.plan, design.recording.frames[0])
    for number, one in enumerate(design.arguments.arguments):
        numbers = as_array(one, row[number])
        if one.size is None:
            lines.append(f"    const {one.type} {one.name} = {element_texts(numbers, one.precision)[0]};")
        else:
            elements = [f"    {line}" for line in lines_of(numbers, one.precision)]
            lines += [f"    static const {one.type} {one.name}[{one.size}] = {{", *elements, "    };"]
        names.append(one.name)
    if design.outputs:
        lines.append(f"    {design.number} result[{design.macro}_SIZE_OF_RESULT];")
        names.append("result")
    if design.in_file:
        lines.append("    if (!load()) return 1;")
    if design.needs_init:
        lines.append(f"    {prefix}_init(&memory{', weights' if design.in_file else ''});")
    lines.append(f"    if ({prefix}_run({', '.join(names)}) != {design.macro}_OK) return 1;")
    if design.outputs:
        cast = "" if design.number == "double" else "(double)"
        lines.append(f'    for (int k = 0; k < {design.macro}_SIZE_OF_RESULT; k++) printf("%.9g\\n", {cast}result[k]);')
    more = LOAD.format(prefix=prefix, number=design.number, size=design.file_size) + "\n" if design.in_file else ""
    return _EXAMPLE.format(prefix=prefix, macro=design.macro, more=more, lines="\n".join(lines))
