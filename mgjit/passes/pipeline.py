"""The passes in order: from a Trace to a Program that a backend can emit.

If a pass cannot express something, the pipeline starts again from the next form of the trace, which is slower but
simpler: loops that may contain backward passes; loops that do not; no loops at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from ..garbage import without_garbage_collection
from ..ir.program import Loop, Program, count_statements, walk
from ..ir.verify import verify
from ..record.opcodes import PARAMETER
from ..record.recorder import Trace
from .blocks import cut_blocks
from .common import share
from .cost import Processor
from .differentiate import DifferentiateError, differentiate
from .distribute import distribute
from .first_contributions import merge_first_contributions
from .fuse import fuse
from .hoist import hoist
from .layout import choose_layout, cut_at_blocks, walks_state
from .lift import LiftError, lift
from .memory import InputRegion, Memory
from .merge import merge
from .pad import pad
from .phases import split_phases
from .powers import write_powers
from .reach import Reach, reach
from .reductions import find_reductions
from .registers import forward_copies, use_registers
from .roll import Item, roll
from .simplify import delete_dead_statements, forget_gradients
from .unroll import unroll
from .vectorise import vectorise


@dataclass
class Lowered:
    """A Program with the memory it works on, and what was done to get it.

    Attributes:
        notes: what could not be expressed the fast way, for `explain()`.
        schedule: how each nest is executed, a line each.
        seconds: by stage.
    """

    program: Program
    memory: Memory
    records: int
    loops: int = 0
    statements: int = 0
    notes: list[str] = field(default_factory=list)
    schedule: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


def lower(
    trace: Trace, inputs: Sequence[InputRegion], processor: Processor | None = None, grads: bool = True
) -> Lowered:
    """Roll, lift, differentiate, schedule and simplify a trace.

    Args:
        trace: of a step.
        inputs: the memory of its arguments.
        processor: what the nests are scheduled for; None leaves them in the order of the trace.
        grads: whether gradients can be read after a whole step.
    """
    return without_garbage_collection(lambda: _first_form_that_works(trace, inputs, processor, grads))


def _first_form_that_works(
    trace: Trace, inputs: Sequence[InputRegion], processor: Processor | None, grads: bool
) -> Lowered:
    started = perf_counter()
    reached = reach(trace)
    notes: list[str] = []
    forms: list[Callable[[], list[Item]]] = [lambda: roll(trace, reached.marks)]
    if reached.backwards:
        forms.append(lambda: roll(trace, _marks_that_keep_passes_out(reached)))
    forms.append(lambda: list(range(len(trace))))
    for number, form in enumerate(forms):
        try:
            lowered = _lower(trace, form(), inputs, reached, processor, grads, perf_counter() - started)
            break
        except (LiftError, DifferentiateError) as error:
            if number == len(forms) - 1:
                raise
            notes.append(str(error))
    lowered.notes = notes
    return lowered


def _lower(
    trace: Trace,
    forest: Sequence[Item],
    inputs: Sequence[InputRegion],
    reached: Reach,
    processor: Processor | None,
    grads: bool,
    rolled: float,
) -> Lowered:
    started = perf_counter()
    program, memory = _lift(trace, forest, inputs, reached)
    unroll(program)
    merge(program, memory)
    lifted = perf_counter()
    differentiate(program, memory)
    split_phases(program)
    write_powers(program)
    differentiated = perf_counter()
    merge_first_contributions(program)
    _tidy(program)
    distribute(program)
    merge_first_contributions(program)  # more of them are by themselves in their loops now
    _tidy(program)
    fuse(program, processor or Processor(lanes=1), whole_step=not grads)
    hoist(program)
    delete_dead_statements(program)
    cut_blocks(program)
    schedule: list[str] = []
    if processor is not None:
        pad(program, processor.lanes)
        schedule = vectorise(program, processor)
    scheduled = perf_counter()
    use_registers(program, across_loops=True)
    share(program)
    delete_dead_statements(program)
    if not grads:
        forget_gradients(program)
        delete_dead_statements(program)  # what only those gradients were computed from
    verify(program)
    done = perf_counter()
    nodes = [node for _, phase in program.phases for node in phase]
    return Lowered(
        program,
        memory,
        len(trace),
        loops=sum(1 for node in walk(nodes) if isinstance(node, Loop)),
        statements=count_statements(nodes),
        schedule=schedule,
        seconds={
            "roll": rolled,
            "lift": lifted - started,
            "differentiate": differentiated - lifted,
            "schedule": scheduled - differentiated,
            "simplify": done - scheduled,
        },
    )


def _tidy(program: Program) -> None:
    """Use registers instead of memory and loads instead of copies, and delete dead statements, before rearranging."""
    use_registers(program, across_loops=False)
    for _, phase in program.phases:
        forward_copies(phase)
    delete_dead_statements(program)


def _lift(
    trace: Trace, forest: Sequence[Item], inputs: Sequence[InputRegion], reached: Reach
) -> tuple[Program, Memory]:
    """Lift the trace and find its reductions, with new parameters in the best layout."""
    memory = Memory(trace, inputs)
    program = lift(trace, forest, memory, reached)
    find_reductions(program, memory)
    if not trace.new_parameters or trace.layouts:  # look-up tables need rows in their natural order
        return program, memory
    start, size = trace.new_parameters[0][0], memory.regions[PARAMETER][0][1].size
    layout = choose_layout(program, memory.regions[PARAMETER][0][1])
    if layout is None or walks_state(forest, trace, start, size):
        return program, memory
    memory = Memory(trace, inputs, layout)
    program = lift(trace, cut_at_blocks(forest, trace, layout, start, size), memory, reached)
    find_reductions(program, memory)
    return program, memory


def _marks_that_keep_passes_out(reached: Reach) -> list[int]:
    """Marks that make every backward pass different from all other records, so that no loop contains one."""
    assert reached.marks is not None
    marks = list(reached.marks)
    for number, position in enumerate(reached.backwards):
        marks[position] = -1 - number
    return marks
