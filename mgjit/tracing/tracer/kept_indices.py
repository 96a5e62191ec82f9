"""Run-time indices that a step keeps from call to call, such as the letter that was drawn last.

1. While the step is traced, each look-up by an int that it finds in the user's objects notes which ints that may be
   (`Recorder.kept_indices`).
2. What the step leaves there must be one of them in any case: a number drawn from such a range, the place of a maximum.
3. Each call checks the int that it finds, before anything is changed (`Copied.allowed`).  Between the rows of a loop
   only the step itself assigns it, so that nothing needs to be checked there.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import TraceError
from ...ir.opcodes import STATE, STORE, leaf
from ..record.ranges import range_of
from ..record.recorder import Recorder
from .number_kinds import EnteredCopy


def can_be_kept(operand: int, copies: Sequence[EnteredCopy]) -> bool:
    """Whether a leaf is an int that is copied in before each call."""
    found = next((entry for entry in copies if 0 <= entry[3] - operand < len(entry[1])), None)
    return found is not None and not found[0].mixed and type(found[1][found[3] - operand]) is int


def note_kept_indices(recorder: Recorder, copies: Sequence[EnteredCopy]) -> None:
    """Note which ints each call has to find in the places of indices.

    Raises:
        TraceError: the step may leave another one there.
    """
    for check in recorder.kept_indices:
        place = leaf(STATE, check.input_index)
        copied, _, _, first = next(entry for entry in copies if 0 <= entry[3] - place < len(entry[1]))
        position = recorder.last_store.get(place)
        if position is not None:
            known = range_of(recorder, recorder.b[position]) if recorder.op[position] == STORE else None
            if known is None or known[0] < 0 or known[-1] >= check.count:
                raise TraceError(
                    f"{check.location}: the index is an int that an earlier call has left in "
                    f"{copied.place.describe()}, and what this step assigns there is not known to be in "
                    f"range({check.count}). Assign a number that is drawn from this range, or pass the index as an "
                    "argument of the step."
                )
        number = copied.offset + first - place
        copied.allowed[number] = min(copied.allowed.get(number, check), check, key=lambda one: one.count)
