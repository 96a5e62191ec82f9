"""Assignments by run-time indices to lists of the user's: `table[i] = x`, `table[i][k] = x`.

Elements of lists are traced numbers that replace one another, so such an assignment is a selection for each element:
the new number in one of them, the old ones in all others.  Where the elements are floats at equal distances in memory,
it can be a single record (`Recorder.put`) instead:

1. Numbers that the step has assigned to elements of the table are stored, so that memory is what the lists say.
2. The record assigns one of them, whichever it is.
3. All elements are read anew.  Who has read one before, has its old number: elements of these lists know when they were
   read (`LeafNumber`).  They are known from the start of a trace, which is made again for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..record.recorder import Recorder
from ..record.values import TracedTypes
from .knowledge import Again, Knowledge
from .number_kinds import EnteredCopy

#: Of fewer elements one is selected.
_FEWEST = 5


class IndexedAssignments:
    """The lists of one trace to whose elements run-time indices may assign."""

    def __init__(
        self, copies: Sequence[EnteredCopy], recorder: Recorder, types: TracedTypes, knowledge: Knowledge
    ) -> None:
        self._recorder, self._types, self._knowledge = recorder, types, knowledge
        self._lists = {
            id(copied.place.read()): (copied.place.key, leaf)
            for copied, contents, _, leaf in copies
            if copied.size and not copied.mixed and all(type(number) is float for number in contents)
        }
        #: The leaves of elements that have been assigned so.
        self.leaves: set[int] = set()

    def put(self, places: Sequence[tuple[Any, int]], index: Any, content: Any) -> bool:
        """Assign to one of several places; returns False, and has done nothing, where that is no single record.

        Args:
            places: lists and positions in them.
            index: which one, a number that is known to be in range.
            content: what is assigned.

        Raises:
            Again: it will be one in the next trace.
        """
        known = [self._lists.get(id(thing)) for thing, _ in places]
        if len(places) < _FEWEST or None in known or not self._is_float(content):
            return False
        leaves = [found[1] - k for found, (_, k) in zip(known, places) if found is not None]
        numbers = [thing[k] for thing, k in places]
        recorder, types = self._recorder, self._types
        if len(set(leaves)) < len(leaves) or not recorder.is_table(leaves) or not all(map(self._is_float, numbers)):
            return False
        keys = {found[0] for found in known if found is not None}
        if not keys <= self._knowledge.indexed:
            chosen = [self._lists.get(id(row)) for rows in types.gatherer.rows for row in rows]  # perhaps they are next
            self._knowledge.indexed |= keys.union(found[0] for found in chosen if found is not None)
            raise Again
        for leaf, number in zip(leaves, numbers):
            if not types.is_current(number, leaf):
                recorder.store(leaf, types.number_operand(number))
        recorder.put(leaves, types.number_operand(index), types.number_operand(content))
        self.leaves.update(leaves)
        for leaf, (thing, k) in zip(leaves, places):
            thing[k] = types.leaf_number(leaf)
        return True

    def _is_float(self, number: Any) -> bool:
        kind, types = type(number), self._types
        is_one = issubclass(kind, types.number) and not issubclass(kind, types.integer)
        return kind is float or (is_one and not hasattr(kind, "_kind"))
