"""The passes for the Program of a family: those that a single trace goes through, with numbers that are given."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from ...base.garbage import without_garbage_collection
from ...ir.trace import InputRegion, Trace
from ...ir.verify import verify
from ..lengths.family import Family, Member
from ..lengths.founding import found_family
from ..roll.growing import roll_growing
from ..roll.reach import reach
from ..toolchain.target import Processor
from .order import PASSES, SCHEDULE, Work
from .pipeline import Lowered, lowered_by


def lower_family(
    one: Member,
    other: Member,
    processor: Processor | None = None,
    grads: bool = True,
    separate: bool = False,
    quick: bool = False,
) -> tuple[Family, Lowered]:
    """The family of two members, and its Program after all passes.

    Args:
        processor, grads, separate, quick: as for `lower`.

    Raises:
        Unlike: they are no family.
        LiftError, DifferentiateError: the Program cannot be expressed.
    """

    def lowered() -> tuple[Family, Lowered]:
        started = perf_counter()
        shared = found_family(one, other, lambda member: roll_growing(member.trace, member.reach, alike=True))
        seconds = dict.fromkeys(("roll", "lift", "differentiate", "schedule", "simplify"), 0.0)
        seconds["roll"] = perf_counter() - started
        work = Work(shared.program, shared.memory, processor, grads, separate)
        verify(work.program)
        for one_ in PASSES:
            if not (quick and one_.name in SCHEDULE):
                begun = perf_counter()
                work.run(one_)
                seconds[one_.stage] += perf_counter() - begun
        verify(work.program)
        return shared.family, lowered_by(work, len(other.trace), seconds)

    return without_garbage_collection(lowered)


def member_of(trace: Trace, inputs: Sequence[InputRegion]) -> Member:
    """A trace as it may be a member of a family."""
    return Member(trace, inputs, reach(trace))
