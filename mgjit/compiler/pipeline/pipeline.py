"""From a Trace to a Program that a backend can emit: the passes of `order.py`, and what is done when one cannot.

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
from typing import TypeVar

from ...base import settings
from ...base.garbage import without_garbage_collection
from ...errors import DefectWarning, VerificationError, is_defect, user_stacklevel
from ...ir.opcodes import BACKWARD, NEST
from ...ir.program import Loop, Program, count_copies, count_statements, walk
from ...ir.trace import InputRegion, Trace
from ...ir.verify import verify
from ..lift.folded import Folded
from ..lift.memory import Memory
from ..roll.forest import Item, LiftError
from ..roll.growing import Rolled, roll_growing
from ..roll.reach import reach
from ..roll.roll import roll
from ..schedule.report import Scheduled
from ..simplify.differentiate import DifferentiateError
from ..toolchain.target import Processor
from .dump import Dump
from .order import OPTIONAL, PASSES, SCHEDULE, SLOW, Work

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


def lowered_by(work: Work, records: int, seconds: dict[str, float]) -> Lowered:
    """What work has led to, of a trace with so many records."""
    nodes = [node for _, phase in work.program.phases for node in phase]
    return Lowered(
        work.program,
        work.memory,
        records,
        loops=sum(1 for node in walk(nodes) if isinstance(node, Loop)),
        statements=count_statements(nodes),
        copies=count_copies(nodes),
        schedule=work.schedule,
        seconds=seconds,
    )


#: See `Processor.slack` and `Processor.neglected`: for Programs that are to be there soon.
_SLACK, _NEGLECTED = 1.2, 0.002


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
        processor = replace(processor, slack=_SLACK, neglected=_NEGLECTED)
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
        return lowered_by(work, len(self._trace), seconds)

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
