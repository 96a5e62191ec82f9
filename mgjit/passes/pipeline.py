"""The passes in order: from a Trace to a Program that a backend can emit.

1. Roll the trace, lift it, and put the Program through `PASSES`; with MGJIT_DUMP, it is written down after each.
2. If a pass cannot express something, start again from the next form of the trace, which is slower but simpler: loops
   that may grow; loops that may contain backward passes; loops that do not; no loops at all.
3. Verify the Program.  If it is not well formed, or a pass has raised an exception, that is a defect of mgjit, which
   must not stop anybody: start again, check after each pass, and leave out the optional pass that fails, until the
   rest works.  A DefectWarning names the pass.
"""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import ge
from time import perf_counter
from typing import NamedTuple, TypeVar

from .. import settings
from ..errors import DefectWarning, VerificationError, is_defect, user_stacklevel
from ..garbage import without_garbage_collection
from ..ir.domain import has_bounds
from ..ir.parameters import NATURAL, Layouts, ParameterLayout
from ..ir.program import Loop, Program, count_copies, count_statements, walk
from ..ir.verify import verify
from ..record.opcodes import BACKWARD, NEST, PARAMETER
from ..record.trace import InputRegion, Trace
from .adjacent import join_adjacent
from .blocks import cut_blocks
from .boxes import fill_boxes
from .common import share
from .cost import Processor
from .differentiate import DifferentiateError, differentiate
from .distribute import distribute
from .dump import Dump
from .first_contributions import merge_first_contributions
from .forest import Item, LiftError, leaves
from .fuse import fuse
from .growing import Rolled, roll_growing
from .hoist import hoist
from .layout import (
    OF_STATE,
    choose_layout,
    cut_at_blocks,
    cut_at_gaps,
    layouts_beside,
    look_ups,
    walks,
    walks_settled_state,
)
from .lift import lift
from .memory import Memory
from .merge import merge
from .pad import pad
from .phases import split_phases
from .powers import write_powers
from .quotients import look_up_quotients
from .reach import Reach, reach
from .reductions import find_reductions
from .registers import forward_copies, use_registers
from .report import Scheduled
from .roll import roll
from .rotate import rotate
from .simplify import delete_dead_statements, forget_gradients
from .unroll import unroll
from .vectorise import vectorise

T = TypeVar("T")
#: Gets the number of a pass, its name, and the Program that it has left.
Watch = Callable[[int, str, Program], object]


@dataclass
class Lowered:
    """A Program with the memory it works on, and what was done to get it.

    Attributes:
        statements, copies: how many there are, and how many in the code, where register blocks have one for each
            iteration side by side.
        notes: what could not be expressed the fast way, for `explain()`.
        schedule: how each nest is executed.
        seconds: by stage.
    """

    program: Program
    memory: Memory
    records: int
    loops: int = 0
    statements: int = 0
    copies: int = 0
    notes: list[str] = field(default_factory=list)
    schedule: list[Scheduled] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


class Folded:
    """A rolled trace, which can be lifted again with another layout of its new parameters.

    Args:
        trace: of a step.
        inputs: the memory of its arguments.
        reached: what its backward passes reach.
        forest: the trace, rolled.
    """

    def __init__(self, trace: Trace, inputs: Sequence[InputRegion], reached: Reach, forest: Sequence[Item]) -> None:
        self.trace, self.inputs, self.reached = trace, inputs, reached
        #: The loops, of those over parameters each over one storage.
        self.natural_forest = cut_at_gaps(forest, trace)
        self.forest = self.natural_forest
        for base, size, layout in self.bound_storages:
            if layout is not None:
                self.forest = cut_at_blocks(self.forest, trace, layout, base, size)
        for start, state in trace.states:
            if state._layout is not None:
                self.forest = cut_at_blocks(self.forest, trace, state._layout, start, len(state), OF_STATE)

    def lifted(
        self, layouts: Layouts = NATURAL, hole: int | None = None, wanted: Callable[[int], bool] | None = None
    ) -> tuple[Program, Memory]:
        """A Program, and the memory it works on; see `lift` for holes, and for what is wanted."""
        forest, memory = self.forest, Memory(self.trace, self.inputs, layouts)
        if layouts.parameters is not None:
            forest = cut_at_blocks(forest, self.trace, layouts.parameters, *self.new_parameters)
        for region, layout in layouts.states.items():
            start, state = self.trace.states[region]
            forest = cut_at_blocks(forest, self.trace, layout, start, len(state), OF_STATE)
        return lift(self.trace, forest, memory, self.reached, hole, wanted), memory

    def places(self) -> list[int]:
        """The position of the first iteration of each statement, in the order of the Program."""
        found = leaves(self.forest)
        return [position for position in found if self.trace.op[position] not in (BACKWARD, NEST)]

    @property
    def bound_storages(self) -> list[tuple[int, int, ParameterLayout | None]]:
        """For each storage of another kernel its first number, its size and its layout."""
        return [(base, len(storage), storage.layout) for base, storage in self.trace.bound_storages]

    @property
    def new_parameters(self) -> tuple[int, int]:
        """The number of the first new parameter, and how many there are."""
        first, last = self.trace.new_parameters[0][0], self.trace.new_parameters[-1][0]
        return first, last - first + 1


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


#: See `Processor.slack`: for Programs with loops that grow, and for those that are to be there soon.
_SLACK, _SLACK_OF_QUICK = 1.02, 1.2
#: See `Processor.neglected`: for Programs that are to be there soon.
_NEGLECTED = 0.002


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
    Pass("phases", lambda work: split_phases(work.program, work.separate), "differentiate", optional=False),
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
    Pass("quotients", _look_up_quotients, "schedule"),
    Pass("rotate", _rotate, "schedule"),
)

#: What makes code fast, and takes most of the time of all passes.
SCHEDULE = frozenset(one.name for one in PASSES if one.stage == "schedule")
#: What takes most of the time of a schedule.
SLOW = frozenset({"fuse"})
#: What can be left out: these passes, and what is done before them.
OPTIONAL = tuple(one.name for one in PASSES if one.optional)


def lower(
    trace: Trace,
    inputs: Sequence[InputRegion],
    processor: Processor | None = None,
    grads: bool = True,
    simply: bool = False,
    separate: bool = False,
    quick: bool = False,
    name: str = "step",
    watch: Watch | None = None,
    natural: bool = False,
    scheduled: bool = False,
) -> Lowered:
    """Roll, lift, differentiate, schedule and simplify a trace.

    Args:
        trace: of a step.
        inputs: the memory of its arguments.
        processor: what the nests are scheduled for; None leaves them in the order of the trace.
        grads: whether gradients can be read after a whole step.
        simply: without loops and without any optional pass.
        separate: whether the phases of the step are to be run separately.
        quick: without a schedule.
        name: of the step.
        watch: called before the first and after each pass; from 0 on again if another form of the trace is tried.
        natural: whether new parameters lie in their natural order; loops over them are cut all the same.
        scheduled: if quick, with a schedule all the same, without what takes long.

    Raises:
        VerificationError: not even the simplest form can be lowered.
    """
    columns = [trace.a, trace.b] + ([trace.c] if trace.c is not None else [])
    if any(any(map(ge, column[low:high], range(low, high))) for column in columns for low, high in trace.gaps()) or any(
        max(block.operands(trace.b)) >= block.start for block in trace.blocks
    ):
        raise VerificationError("a record of the trace needs one that comes after it. This is a defect of mgjit.")
    if quick and scheduled and processor is not None:
        processor = replace(processor, slack=_SLACK_OF_QUICK, neglected=_NEGLECTED)
    left_out = set(OPTIONAL) if simply else set(SLOW if scheduled else SCHEDULE) if quick else set()
    name = f"{name}.quick" if quick else name
    return without_garbage_collection(
        lambda: _Lowering(trace, inputs, processor, grads, simply, separate, left_out, name, watch, natural).result()
    )


def _show(watches: Sequence[Watch], number: int, name: str, program: Program) -> None:
    for watch in watches:
        watch(number, name, program)


class _Defect(Exception):
    """Something in a pass is wrong; the pass is known where each is checked."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.name = name


class _Lowering:
    """Lowers a trace in the first way that works."""

    def __init__(
        self,
        trace: Trace,
        inputs: Sequence[InputRegion],
        processor: Processor | None,
        grads: bool,
        simply: bool,
        separate: bool,
        left_out: set[str],
        name: str,
        watch: Watch | None,
        natural: bool,
    ) -> None:
        self._watch = watch
        self._trace, self._inputs, self._processor = trace, inputs, processor
        self._name, self._left_out = name, left_out
        self._grads, self._separate = grads, separate
        self._started = perf_counter()
        self._reached = reached = reach(trace)

        def flat(forest: list[Item]) -> Rolled:
            return Rolled(trace, reached, forest)

        self._forms: list[Callable[[], Rolled]] = [
            lambda: roll_growing(trace, reached),
            lambda: flat(roll(trace, reached.marks)),
        ]
        if reached.backwards:
            self._forms.append(lambda: flat(roll(trace, _marks_that_keep_out(trace, BACKWARD, reached.marks))))
        if trace.nests:
            self._forms.append(lambda: flat(roll(trace, _marks_that_keep_out(trace, NEST, reached.marks))))
        self._forms.append(lambda: flat(list(range(len(trace)))))
        self._all_forms = len(self._forms)
        self._natural = natural
        if simply:
            self._forms = self._forms[-1:]
        self._checking = settings.checks_passes()
        self._notes: list[str] = []
        self._defect: _Defect | None = None

    def result(self) -> Lowered:
        while True:
            try:
                lowered = self._lowered()
                if self._defect is not None:
                    self._report("it does not fail again", self._defect)
                lowered.notes = self._notes
                return lowered
            except (LiftError, DifferentiateError) as error:
                self._notes.append(str(error))
                self._take_next_form(error)
            except _Defect as defect:
                if self._checking:
                    self._defect = None
                    self._leave_out(defect)
                else:  # do it again, to see which pass it is
                    self._defect, self._checking = defect, True

    def _take_next_form(self, error: Exception) -> None:
        if len(self._forms) == 1:
            raise VerificationError(f"{error}. This is a defect of mgjit: please report it.") from error
        self._forms = self._forms[1:]

    def _leave_out(self, defect: _Defect) -> None:
        if defect.name in OPTIONAL:
            self._left_out.add(defect.name)
            self._report("the step is compiled without it", defect)
        else:
            self._take_next_form(defect)
            self._report("the step is compiled with fewer loops", defect)

    def _report(self, what: str, defect: _Defect) -> None:
        self._notes.append(f"the pass {defect.name!r} fails: {what} ({defect})")
        warnings.warn(
            f"A defect of mgjit: for this step its pass {defect.name!r} fails ({defect}); {what}. The numbers are "
            "right, the step may be slower. Please report it, with this text and the step.",
            DefectWarning,
            stacklevel=user_stacklevel(),
        )

    def _lowered(self) -> Lowered:
        """The Program of the first form, without what is left out."""
        rolled = self._step("roll", self._forms[0])
        if rolled.trace is self._trace and len(self._forms) == self._all_forms:
            self._forms = self._forms[1:]  # nothing grows, so that the next form is the same
        done = perf_counter()
        seconds = {"roll": done - self._started, "lift": 0.0, "differentiate": 0.0, "schedule": 0.0, "simplify": 0.0}
        work = self._step("lift", lambda: self._lifted(rolled))
        seconds["lift"] = perf_counter() - done
        dump = Dump.open(self._name)
        watches = [dump.write, *([self._watch] if self._watch is not None else [])]
        _show(watches, 0, "lift", work.program)
        for number, one in enumerate(PASSES, 1):
            if one.name not in self._left_out:
                started = perf_counter()
                try:
                    self._step(one.name, lambda one=one: work.run(one), work)  # type: ignore[misc]
                finally:  # also if it is broken
                    seconds[one.stage] += perf_counter() - started
                    _show(watches, number, one.name, work.program)
        if not self._checking:
            started = perf_counter()
            self._step("the last", lambda: verify(work.program))
            seconds["simplify"] += perf_counter() - started
        nodes = [node for _, phase in work.program.phases for node in phase]
        return Lowered(
            work.program,
            work.memory,
            len(self._trace),
            loops=sum(1 for node in walk(nodes) if isinstance(node, Loop)),
            statements=count_statements(nodes),
            copies=count_copies(nodes),
            schedule=work.schedule,
            seconds=seconds,
        )

    def _lifted(self, rolled: Rolled) -> Work:
        folded = Folded(rolled.trace, self._inputs, rolled.reach, rolled.forest)
        return Work(*folded.lifted(), self._processor, self._grads, self._separate, folded, self._natural)

    def _step(self, name: str, action: Callable[[], T], work: Work | None = None) -> T:
        """Do something; what goes wrong is a defect of the pass `name`.

        Raises:
            _Defect: it failed, or has left a Program that is not well formed.
        """
        try:
            result = action()
            if self._checking and work is not None:
                verify(work.program)
        except (LiftError, DifferentiateError, _Defect):
            raise
        except Exception as error:
            if not is_defect(error):
                raise
            raise _Defect(name, error) from error
        return result


def _marks_that_keep_out(trace: Trace, code: int, marks: array[int] | None) -> array[int]:
    """Marks that make every record of an operation different from all others, so that no loop contains one."""
    found = array("i", bytes(4 * len(trace))) if marks is None else marks[:]
    for number, position in enumerate(position for position, one in enumerate(trace.op) if one == code):
        found[position] = -1 - number
    return found
