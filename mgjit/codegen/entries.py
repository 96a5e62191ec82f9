"""Additional entry points of a generated C file.

`mgjit_loop` runs many steps.  Its argument is an array of two pointers: the pointer block of the step, and an array of
integers: how many rows to run, how many have been run, how many pointers move from row to row, and for each of these
its index in the block and its stride in bytes.

`mgjit_call` takes the inputs of a call as arguments, because foreign functions are cheapest with few arguments that
need no conversion: first the packed numbers, preceded by the address of the pointer block in the bytes of a double;
then the buffers, null for those that are already in the block.  It returns the first output, and counts the call once
the step has run.  `mgjit_counted_step` takes only the block, which then holds all inputs.

`mgjit_short_call` is `mgjit_call` if the gate of the step, a word in memory, is 0 (open).  Otherwise it does nothing
and returns the negative nan, which is never returned as a result.  The block has two more pointers behind the slots of
the step: to the gate and to the counter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .slot import Slot

if TYPE_CHECKING:
    from .layout import Layout

#: Steps with more inputs than this have no `mgjit_call`.
MOST_INPUTS = 32

_LOOP = """\
{head}
{{
    void **const m = (void **)both[0];
    long long *const plan = (long long *)both[1];
    for (long long row = 0; row < plan[0]; row++) {{
        {step}
        for (long long k = 3; k < 3 + 2 * plan[2]; k += 2)
            m[plan[k]] = (char *)m[plan[k]] + plan[k + 1];
    }}
    plan[1] += plan[0];
    return 0;
}}
"""

#: The bits of nans are handled as integers, because in fast mode compilers may assume that there are no nans.
_CALLS = """\
static double call(void **m, {parameters})
{{
{assignments}
    {step}
    ++*(long long *)m[{counter}];
    return m[{output}] ? *(const real *)m[{output}] : 0.0;
}}

{counted}
{{
    {step}
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


def entries(layout: Layout, step: str) -> str:
    """The C source of these entry points.

    Args:
        layout: of the pointer block.
        step: C statements that run the step with the pointer block `m`.
    """
    loop = _LOOP.format(step=step, head=exported("int mgjit_loop(void *const *both)"))
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
        step=step,
    )
    return f"{loop}\n{calls}"


def exported(head: str, body: str = "") -> str:
    """An exported function: its prototype and its definition."""
    return f"EXPORT {head};\n{head}{body and ' '}{body}"


def input_slots(slots: list[Slot]) -> list[int]:
    """The slots of the inputs: packed numbers first, then the buffers."""
    found = [(slot.region, number) for number, slot in enumerate(slots) if slot.space == "input"]
    return [number for _, number in sorted(found)]
