"""The loops over the rows of `.loop` that are more than calls of the step.

In that of a step without loops, short arrays stay in registers from row to row:

1. Arrays of which all elements are known by their number, and which do not move from row to row, become local arrays.
   Compilers keep their elements in registers as far as there are any.
2. What the step may read before it writes it is copied in before the first row, and what is visible after the last.
3. The statements of the step stand inside of the loop, or those that were packed for it (schedule/superwords.py), which
   may give local arrays another order.  Other arrays are pointers, taken from the block in each row.

In that of a step with a rotation (schedule/rotate.py), the end of a row and the beginning of the next one are one
function of the pointer blocks of both, which are used in turn.  Rows of odd numbers have the second scratch memory.  A
call begins and ends with whole rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...ir.program import Program, arrays_written, statements
from ..schedule.superwords import local_arrays
from .entries import called, exported

if TYPE_CHECKING:
    from .layout import Layout

_LOOP = """\
{head}
{{
    void **const m = (void **)both[0];
    long long *const plan = (long long *)both[1];
    ENTER
{before}
    for (long long row = 0; row < plan[0]; row++) {{
{step}
        for (long long k = 3; k < 3 + 2 * plan[2]; k += 2)
            m[plan[k]] = (char *)m[plan[k]] + plan[k + 1];
    }}
{after}
    LEAVE
    plan[1] += plan[0];
    return 0;
}}
"""

_ROTATED = """\
{head}
{{
    void **const m = (void **)both[0];
    long long *const plan = (long long *)both[1];
    void *blocks[2][{slots}];
    for (long k = 0; k < {slots}; k++)
        blocks[0][k] = blocks[1][k] = m[k];
    blocks[1][{scratch}] = (real *)m[{scratch}] + {second};
    ENTER
    if (plan[0] > 0)
        forward(m);
    for (long long row = 0; row < plan[0]; row++) {{
        void **const now = blocks[row & 1], **const next = blocks[~row & 1];
        for (long long k = 3; k < 3 + 2 * plan[2]; k += 2)
            m[plan[k]] = next[plan[k]] = (char *)now[plan[k]] + plan[k + 1];
        if (row + 1 < plan[0])
            between_rows(now, next);
        else {{
            {rest}
        }}
    }}
    LEAVE
    plan[1] += plan[0];
    return 0;
}}
"""


def rotated_loop(layout: Layout, phases: Sequence[str]) -> str:
    """The C source of `mgjit_loop` of a step with a rotation.

    Args:
        layout: of the pointer block.
        phases: the functions that a step consists of.
    """
    return _ROTATED.format(
        head=exported("int mgjit_loop(void *const *both)"),
        slots=len(layout.slots),
        scratch=layout.slot_number("scratch"),
        second=layout.second_scratch,
        rest=called([name for name in phases if name != "forward"], "now"),
    )


def row_loop(
    program: Program, layout: Layout, bodies: Sequence[Sequence[str]], pointers: Sequence[tuple[str, str]]
) -> str:
    """The C source of `mgjit_loop`.

    Args:
        bodies: the lines of each phase.
        pointers: declaration and initial value of a pointer to each array.
    """
    nodes = [node for _, phase in program.phases for node in phase] if program.row is None else program.row.nodes
    places = {} if program.row is None else program.row.places
    local = local_arrays(nodes)
    names = {array.name for array in local}
    written = {array for s in statements(nodes) for array in arrays_written(s)}
    before, after = [], []
    for array in local:
        before.append(f"    real {array.name}[{array.size}] = {{0}};")
        if array.space == "scratch":
            continue
        place = f"((real *)m[{layout.slot_of[array]}])"
        elements = [*enumerate(places.get(array, range(array.size)))]
        before += [f"    {array.name}[{k}] = {place}[{element}];" for element, k in elements]
        if array in written:
            after += [f"    {place}[{element}] = {array.name}[{k}];" for element, k in elements]
    step = [
        f"        {declaration} = {source};"
        for declaration, source in pointers
        if declaration.rpartition(" ")[2] not in names
    ]
    for body in bodies:
        step += ["        {", *(f"        {line}" for line in body), "        }"]
    return _LOOP.format(
        head=exported("int mgjit_loop(void *const *both)"),
        before="\n".join(before),
        step="\n".join(step),
        after="\n".join(after),
    )
