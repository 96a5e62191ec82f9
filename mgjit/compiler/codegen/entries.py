"""Additional entry points of a generated C file.

`mgjit_loop` runs many steps.  Its argument is an array of two pointers: the pointer block of the step, and an array of
integers: how many rows to run, how many have been run, how many pointers move from row to row, and for each of these
its index in the block and its stride in bytes.

`mgjit_turns` runs rows of several steps in turn.  Its argument is an array of three pointers: an array of integers (how
many rows to run, how many have been run, and for each row its step), and for each step the function `mgjit_loop` and
its argument, by which one row is run.

`mgjit_paths` runs rows of kernels for the paths of one step (runtime/path_rows.py), and stops in front of a row that is
for none of them.  Its argument is an array of pointers: integers (how many rows to run, how many have been run, the
path of the last one, or -1, how many paths there are, how many answers each has at most); for each path the function
`mgjit_loop` and its argument; pairs of memory and room for a copy of it; for each path four integers (the slot of its
outputs, which of them is its verdict, its first pair and the one behind its last one; likewise for numbers that are
copied); how many numbers each pair has; the answers of each path, nan behind the last one; the path of each row, which
is written; numbers that are copied from the user's objects, as they were after the last path; the memory of each path
for such numbers; for each of them its place in both; and how many rows each path may still run.

`mgjit_call` takes the inputs of a call as arguments, because foreign functions are cheapest with few arguments that
need no conversion: first the packed numbers, preceded by the address of the pointer block in the bytes of a double;
then the buffers, null for those that are already in the block.  It returns the first output, and counts the call once
the step has run.  `mgjit_counted_step` takes only the block, which then holds all inputs.

`mgjit_short_call` is `mgjit_call` if the gate of the step, a word in memory, is 0 (open).  Otherwise it does nothing
and returns the negative nan, which is never returned as a result.  The block has three more pointers behind the slots
of the step: to the gate, to the counter, and to two words about gradients, or null.

Where gradients can be late (simplify/late_gradients.py), these calls leave them out if the second word is not 0, and
note in the first one that they are due; `mgjit_gradients` computes those that are.

A step whose phases are run separately has entries that add up the gradients of many rows (distributed/sums.py).  Their
argument is an array of pointers: the pointer block, an array of integers, and the sums.  The integers: how many rows to
run, how many have been run, how many parts of the block are added up, how many pointers move from row to row; then for
each part its index in the block, its first element, its length, and whether it is cleared after a row; then index and
stride for each pointer.  `mgjit_rows` runs forward and backward for each row, and adds; `mgjit_add` adds other sums
to the sums; `mgjit_mean` writes the sums, divided by a number, into the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .slot import Slot

if TYPE_CHECKING:
    from .layout import Layout

#: Steps with more inputs than this have no `mgjit_call`.
MOST_INPUTS = 32
#: The phase that may be left out until somebody looks at gradients.
LATE = "gradients"

_LOOP = """\
{head}
{{
    void **const m = (void **)both[0];
    long long *const plan = (long long *)both[1];
    ENTER
    for (long long row = 0; row < plan[0]; row++) {{
        {step}
        for (long long k = 3; k < 3 + 2 * plan[2]; k += 2)
            m[plan[k]] = (char *)m[plan[k]] + plan[k + 1];
    }}
    {last}LEAVE
    plan[1] += plan[0];
    return 0;
}}
"""

_TURNS = """\
{head}
{{
    long long *const plan = (long long *)all[0];
    int (*const *const loops)(void *const *) = (int (*const *)(void *const *))all[1];
    void *const *const arguments = (void *const *)all[2];
    for (const long long *row = plan + 2 + plan[1], *const end = row + plan[0]; row < end; row++)
        loops[*row]((void *const *)arguments[*row]);
    plan[1] += plan[0];
    return 0;
}}
"""

_PATHS = """\
static void copy(void *const to, const void *const from, const long long count)
{{
    for (long long k = 0; k < count; k++) ((real *)to)[k] = ((const real *)from)[k];
}}

{head}
{{
    long long *const plan = (long long *)all[0];
    int (*const *const loops)(void *const *) = (int (*const *)(void *const *))all[1];
    void *const *const arguments = (void *const *)all[2];
    void *const *const pairs = (void *const *)all[3];
    const long long *const facts = (const long long *)all[4], *const sizes = (const long long *)all[5];
    const double *const answers = (const double *)all[6];
    long long *const taken = (long long *)all[7];
    real *const shared = (real *)all[8];
    const long long *const places = (const long long *)all[10];
    const long long end = plan[1] + plan[0], paths = plan[3], most = plan[4];
    long long *const budgets = (long long *)all[11];
    unsigned long long over = 0;
    for (long long k = 0; k < paths; k++) if (!budgets[k]) over |= 1ULL << k;
    for (long long row = plan[1], path = 0; row < end; plan[1] = ++row) {{
        for (path = plan[2] < 0 ? 0 : plan[2]; over >> path & 1;) {{
            for (path = 0; path < paths && over >> path & 1; path++);
            if (path == paths) return 0;
        }}
        for (unsigned long long left = over;;) {{
            const long long *const fact = facts + 6 * path;
            if (path != plan[2]) {{
                real *const mine = (real *)((void *const *)all[9])[path];
                for (long long k = fact[4]; k < fact[5]; k++) mine[places[2 * k + 1]] = shared[places[2 * k]];
                plan[2] = path;
            }}
            void *const *const both = (void *const *)arguments[path];
            void **const m = (void **)both[0];
            long long *const own = (long long *)both[1], behind = row - own[1];
            for (long long k = 3; k < 3 + 2 * own[2]; k += 2)
                if (own[k] != fact[0]) m[own[k]] = (char *)m[own[k]] + own[k + 1] * behind;
            own[1] = row;
            for (long long k = fact[2]; k < fact[3]; k++) copy(pairs[2 * k + 1], pairs[2 * k], sizes[k]);
            const real *const outputs = (const real *)m[fact[0]];
            loops[path](both);
            const double verdict = outputs[fact[1]], instead = outputs[fact[1] + 1];
            if (verdict == 0.0) break;
            for (long long k = fact[2]; k < fact[3]; k++) copy(pairs[2 * k], pairs[2 * k + 1], sizes[k]);
            m[fact[0]] = (void *)outputs;
            const real *const held = (const real *)((void *const *)all[9])[path];
            for (long long k = fact[4]; k < fact[5]; k++) shared[places[2 * k]] = held[places[2 * k + 1]];
            left |= 1ULL << path;
            if (verdict < 0.0) return 0;
            const long long place = (long long)verdict - 1;
            const double *const mine = answers + most * path;
            long long other = 0;
            for (; other < paths; other++) {{
                const double *const theirs = answers + most * other;
                long long k = 0;
                while (k < place && theirs[k] == mine[k]) k++;
                if (left >> other & 1 || k < place || theirs[k] != theirs[k]) continue;
                if (instead == instead ? theirs[k] == instead : theirs[k] != mine[k]) break;
            }}
            if (other == paths) return 0;
            path = other;
        }}
        taken[row] = path;
        if (!--budgets[path]) over |= 1ULL << path;
    }}
    return 0;
}}
"""

#: The bits of nans are handled as integers, because in fast mode compilers may assume that there are no nans.
_CALLS = """\
static double call(void **m, {parameters})
{{
{assignments}
    ENTER
    {step}
    LEAVE
    ++*(long long *)m[{counter}];
    return m[{output}] ? *(const real *)m[{output}] : 0.0;
}}

{counted}
{{
    ENTER
    {step}
    LEAVE
    ++*(long long *)m[{counter}];
    return 0;
}}

{call}
{{
    return call((void **)(long long)input0[0], {arguments});
}}

{short_call}
{{
    void **const m = (void **)(long long)input0[0];
    union {{ double number; unsigned long long bits; }} result;
    if (*(const long long *)m[{gate}]) {{
        result.bits = 0xfff8000000000000ULL;
        return result.number;
    }}
    result.number = call(m, {arguments});
    if ((result.bits & 0x7fffffffffffffffULL) > 0x7ff0000000000000ULL)
        result.bits = 0x7ff8000000000000ULL;
    return result.number;
}}
"""

_LATE = """\
{gradients}
{{
    long long *const late = (long long *)m[{late}];
    if (late[0]) {{
        late[0] = 0;
        ENTER
        gradients(m);
        LEAVE
    }}
    return 0;
}}
"""
#: The end of a step.
_OR_LATE = "{{ long long *const late = (long long *)m[{late}]; if (late && late[1]) late[0] = 1; else gradients(m); }}"

_SUMS = """\
{rows}
{{
    void **const m = (void **)all[0];
    long long *const plan = (long long *)all[1];
    const long long *const parts = plan + 4, *const moves = parts + 4 * plan[2];
    ENTER
    for (long long row = 0; row < plan[0]; row++) {{
        real *sum = (real *)all[2];
        forward(m); backward(m);
        for (const long long *part = parts; part < moves; part += 4) {{
            real *const from = (real *)m[part[0]] + part[1];
            for (long long k = 0; k < part[2]; k++) sum[k] += from[k];
            if (part[3]) for (long long k = 0; k < part[2]; k++) from[k] = 0;
            sum += part[2];
        }}
        for (const long long *move = moves; move < moves + 2 * plan[3]; move += 2)
            m[move[0]] = (char *)m[move[0]] + move[1];
    }}
    LEAVE
    plan[1] += plan[0];
    return 0;
}}

{add}
{{
    const long long length = *(const long long *)all[2];
    real *const sum = (real *)all[0];
    const real *const other = (const real *)all[1];
    for (long long k = 0; k < length; k++) sum[k] += other[k];
    return 0;
}}

{mean}
{{
    void *const *const m = (void *const *)all[0];
    const long long *const plan = (const long long *)all[1];
    const real *sum = (const real *)all[2];
    const real count = (real)*(const double *)all[3];
    for (const long long *part = plan + 4; part < plan + 4 + 4 * plan[2]; part += 4) {{
        real *const to = (real *)m[part[0]] + part[1];
        for (long long k = 0; k < part[2]; k++) to[k] = sum[k] / count;
        sum += part[2];
    }}
    return 0;
}}
"""


def sum_entries() -> str:
    """The C source of the entries that add up gradients, of a step whose phases are run separately."""
    return _SUMS.format(**{name: exported(f"int mgjit_{name}(void *const *all)") for name in ("rows", "add", "mean")})


def entries(layout: Layout, phases: Sequence[str], loop: str = "", is_path: bool = False, ending: str = "") -> str:
    """The C source of these entry points.

    Args:
        layout: of the pointer block.
        phases: the functions that a step consists of.
        loop: the source of `mgjit_loop`, if there is a better one than calling the step for each row.
        is_path: whether the step is one path of several.
        ending: as for `called`.
    """
    at_once, is_late = called([name for name in phases if name != LATE], ending=ending), LATE in phases
    if not loop:
        last = f"if (plan[0] > 0) {LATE}(m); " if is_late else ""
        loop = _LOOP.format(step=at_once, last=last, head=exported("int mgjit_loop(void *const *both)"))
    loop += "\n" + _TURNS.format(head=exported("int mgjit_turns(void *const *all)"))
    if is_path:
        loop += "\n" + _PATHS.format(head=exported("int mgjit_paths(void *const *all)"))
    inputs = input_slots(layout.slots)
    if len(inputs) > MOST_INPUTS:
        return loop
    gate = len(layout.slots)
    names = [f"input{number}" for number in range(len(inputs))]
    assignments = [f"    m[{inputs[0]}] = (void *)(input0 + 1);"]
    assignments += [f"    if ({name}) m[{slot}] = (void *){name};" for name, slot in zip(names[1:], inputs[1:])]
    parameters = ", ".join(["const double *input0", *(f"const void *{name}" for name in names[1:])])
    calls = _CALLS.format(
        parameters=parameters,
        counted=exported("int mgjit_counted_step(void *const *m)"),
        call=exported(f"double mgjit_call({parameters})"),
        short_call=exported(f"double mgjit_short_call({parameters})"),
        arguments=", ".join(names),
        assignments="\n".join(assignments),
        output=layout.slot_number("output"),
        gate=gate,
        counter=gate + 1,
        step=f"{at_once} {_OR_LATE.format(late=gate + 2)}" if is_late else at_once,
    )
    if is_late:
        calls += "\n" + _LATE.format(gradients=exported("int mgjit_gradients(void *const *m)"), late=gate + 2)
    return f"{loop}\n{calls}"


def called(phases: Sequence[str], block: str = "m", ending: str = "") -> str:
    """C statements that call the functions of phases with a pointer block.

    Args:
        ending: a number; where the first phase has not left 0.0 there, the others are not called.
    """
    calls = [f"{name}({block});" for name in phases]
    if ending and len(calls) > 1:
        calls[1:] = [f"if ({ending} == 0.0) {{ {' '.join(calls[1:])} }}"]
    return " ".join(calls) or f"(void){block};"


def exported(head: str, body: str = "") -> str:
    """An exported function: its prototype and its definition."""
    return f"EXPORT {head};\n{head}{body and ' '}{body}"


def input_slots(slots: list[Slot]) -> list[int]:
    """The slots of the inputs: packed numbers first, then the buffers."""
    found = [(slot.region, number) for number, slot in enumerate(slots) if slot.space == "input"]
    return [number for _, number in sorted(found)]
