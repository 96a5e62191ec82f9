"""The passes in order: what each does to a Program between lifting and code generation.

The list is data: the product, the tests and `docs/passes.md` run the same one.  Each pass says which stage its time
belongs to, and whether it can be left out, which leaves a Program that is right and slower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ...ir.domain import has_bounds
from ...ir.opcodes import OUTPUT, PARAMETER
from ...ir.parameters import Layouts
from ...ir.program import Program
from ..lift.folded import Folded
from ..lift.layout import choose_layout, layouts_beside, look_ups, walks, walks_settled_state
from ..lift.memory import Memory
from ..schedule.adjacent import join_adjacent
from ..schedule.blocks import cut_blocks
from ..schedule.boxes import fill_boxes
from ..schedule.distribute import distribute
from ..schedule.fuse import fuse
from ..schedule.hoist import hoist
from ..schedule.report import Scheduled
from ..schedule.rotate import rotate
from ..schedule.vectorise import vectorise
from ..simplify.common import share
from ..simplify.differentiate import differentiate
from ..simplify.first_contributions import merge_first_contributions
from ..simplify.late_gradients import compute_gradients_late
from ..simplify.merge import merge
from ..simplify.pad import pad
from ..simplify.phases import split_phases
from ..simplify.powers import write_powers
from ..simplify.quotients import look_up_quotients
from ..simplify.reductions import find_reductions
from ..simplify.registers import forward_copies, use_registers
from ..simplify.simplify import delete_dead_statements, forget_gradients
from ..simplify.unroll import unroll
from ..toolchain.target import Processor


@dataclass
class Work:
    """The state that passes work on, and what they need to know.

    Attributes:
        program, memory: changed by the passes.
        processor: the processor to schedule for; None leaves nests in the order of the trace.
        grads: whether gradients can be read after a whole step.
        separate: whether its phases are to be run separately.
        folded: what the Program was lifted from; None if it was made by hand.
        natural: whether new parameters lie in their natural order.
        schedule: how each nest is executed.
        done: the passes that were run.
    """

    program: Program
    memory: Memory
    processor: Processor | None = None
    grads: bool = True
    separate: bool = False
    folded: Folded | None = None
    natural: bool = False
    schedule: list[Scheduled] = field(default_factory=list)
    done: list[Pass] = field(default_factory=list)

    def run(self, one: Pass) -> None:
        """The next pass."""
        one.run(self)
        self.done.append(one)


class Pass(NamedTuple):
    """One pass: its name, what it does to a Program, the stage its time belongs to, and whether it can be left out."""

    name: str
    run: Callable[[Work], object]
    stage: str
    optional: bool = True


def _split_phases(work: Work) -> None:
    split_phases(work.program, work.separate, work.memory.regions[OUTPUT][0][1].size)


def _write_powers(work: Work) -> None:
    write_powers(work.program, work.processor is not None and work.processor.is_fast)


def _lay_out(work: Work) -> None:
    """Lift the trace again, with new parameters and state in the best layout, and do again what was done until now."""
    folded = work.folded
    if folded is None:
        return
    trace, forest, layout, storages = folded.trace, folded.natural_forest, None, folded.bound_storages
    if trace.new_parameters:
        layout = choose_layout(work.program, work.memory.regions[PARAMETER][0][1], look_ups(trace))
        if layout is not None and walks_settled_state(walks(forest, trace, *folded.new_parameters), trace):
            layout = None
        storages.append((*folded.new_parameters, layout))
    layouts = Layouts(layout, layouts_beside(forest, trace, storages))
    if layouts:
        work.program, work.memory = folded.lifted(layouts.natural() if work.natural else layouts)
        for one in work.done:
            one.run(work)


#: See `Processor.slack`: for Programs with loops that grow.
_SLACK = 1.02


def _fill_boxes(work: Work) -> None:
    if work.processor is not None and any(has_bounds(nodes) for _, nodes in work.program.phases):
        # A step with loops that grow has many nests, of which each has few iterations.
        work.processor = replace(work.processor, slack=max(_SLACK, work.processor.slack))
        fill_boxes(work.program, work.processor)


def _fuse(work: Work) -> None:
    fuse(work.program, work.processor or Processor(lanes=1))


def _forward_copies(work: Work) -> None:
    for _, phase in work.program.phases:
        forward_copies(phase)


def _pad(work: Work) -> None:
    if work.processor is not None:
        pad(work.program, work.processor.lanes)


def _vectorise(work: Work) -> None:
    if work.processor is not None:
        work.schedule += vectorise(work.program, work.processor)


def _forget_gradients(work: Work) -> None:
    if not (work.grads or work.separate):
        forget_gradients(work.program)
        delete_dead_statements(work.program)  # what only those gradients were computed from


def _compute_gradients_late(work: Work) -> None:
    if work.processor is not None and work.grads and not work.separate:
        compute_gradients_late(work.program)


def _look_up_quotients(work: Work) -> None:
    if work.processor is not None and work.processor.lanes > 1:  # else a division takes no longer than a look-up
        look_up_quotients(work.program)


def _rotate(work: Work) -> None:
    if work.processor is not None:
        rotate(work.program)


def _tidy(when: str) -> tuple[Pass, ...]:
    """Use registers instead of memory and loads instead of copies, and delete dead statements, before rearranging."""
    return (
        Pass(f"registers {when}", lambda work: use_registers(work.program, across_loops=False), "schedule"),
        Pass(f"copies {when}", _forward_copies, "schedule"),
        Pass(f"dead statements {when}", lambda work: delete_dead_statements(work.program), "schedule"),
    )


#: Between lifting and code generation, in order.
PASSES = (
    Pass("reductions", lambda work: find_reductions(work.program, work.memory), "lift"),
    Pass("layout", _lay_out, "lift"),
    Pass("unroll", lambda work: unroll(work.program), "lift"),
    Pass("merge", lambda work: merge(work.program, work.memory), "lift"),
    Pass("differentiate", lambda work: differentiate(work.program, work.memory), "differentiate", optional=False),
    Pass("phases", _split_phases, "differentiate", optional=False),
    Pass("powers", _write_powers, "differentiate"),
    Pass("first contributions", lambda work: merge_first_contributions(work.program), "schedule"),
    *_tidy("before"),
    Pass("distribute", lambda work: distribute(work.program), "schedule"),
    # More of them are by themselves in their loops now.
    Pass("more first contributions", lambda work: merge_first_contributions(work.program), "schedule"),
    *_tidy("after"),
    Pass("adjacent", lambda work: join_adjacent(work.program), "schedule"),
    Pass("boxes", _fill_boxes, "schedule"),
    Pass("fuse", _fuse, "schedule"),
    Pass("hoist", lambda work: hoist(work.program), "schedule"),
    Pass("dead statements", lambda work: delete_dead_statements(work.program), "schedule"),
    Pass("blocks", lambda work: cut_blocks(work.program), "schedule"),
    Pass("pad", _pad, "schedule"),
    Pass("vectorise", _vectorise, "schedule"),
    Pass("registers", lambda work: use_registers(work.program, across_loops=True), "simplify"),
    Pass("share", lambda work: share(work.program), "simplify"),
    Pass("last dead statements", lambda work: delete_dead_statements(work.program), "simplify"),
    Pass("gradients", _forget_gradients, "simplify"),
    Pass("late gradients", _compute_gradients_late, "simplify"),
    Pass("quotients", _look_up_quotients, "schedule"),
    Pass("rotate", _rotate, "schedule"),
)

#: What makes code fast, and takes most of the time of all passes.
SCHEDULE = frozenset(one.name for one in PASSES if one.stage == "schedule")
#: What takes most of the time of a schedule.
SLOW = frozenset({"fuse"})
#: What can be left out: these passes, and what is done before them.
OPTIONAL = tuple(one.name for one in PASSES if one.optional)
