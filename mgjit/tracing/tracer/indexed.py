"""Lists of the user's that run-time indices read and assign: `table[i] = x`, `table[i][k] = x`.

Elements of lists are traced numbers that replace one another, so such an assignment is a selection for each element:
the new number in one of them, the old ones in all others.  Where the elements are floats at equal distances in memory,
it can be a single record (`Recorder.put`) instead:

1. Numbers that the step has assigned to elements of the table are stored, so that memory is what the lists say.
2. The record assigns one of them, whichever it is.
3. All elements are read anew.  Who has read one before, has its old number: elements of these lists know when they were
   read (`LeafNumber`).  They are known from the start of a trace, which is made again for that.

A table of which every access is by an index that is an argument need not be copied before and after each call: the rows
are enough that the call chooses (copies/tables.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import opcodes as ops
from ..copies.copies import Copied
from ..copies.tables import Table
from ..record.recorder import Recorder
from ..record.values import TracedTypes
from .knowledge import Again, Knowledge
from .number_kinds import EnteredCopy

#: Of fewer elements one is selected.
_FEWEST = 5
#: So many rows for each index are copied one by one; of shorter tables all are.
_FEWEST_FOR_EACH = 2


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
        return kind is float or (is_one and not hasattr(kind, "_kind") and not kind.of_numpy)


# ---- tables of which only some rows are needed ------------------------------------------------------------------


def tables_of(
    recorder: Recorder, look_ups: Sequence[int], copies: Sequence[Copied], start: int, inputs: int
) -> list[Table]:
    """The tables of which a call needs only the rows that its arguments choose.

    Args:
        look_ups: the records that look something up.
        copies: what is copied.
        start: the leaf of the first number that is.
        inputs: how many packed numbers a call has.
    """
    look_ups = [k for k in look_ups if ops.leaf_kind(recorder.a[k]) == ops.STATE]
    if not look_ups:
        return []
    indices: dict[tuple[int, int], set[int]] = {}  # by first element and layout
    others = recorder.a[:], recorder.b[:]  # the operands that are no tables, and no indices of these
    used: set[int] = {operand for operand, _ in recorder.late}
    for k in look_ups:
        code, a = recorder.op[k], recorder.a[k]
        layout = (code & (ops.NUMBER - 1)) - ops.TAKE
        index = recorder.third[k] if code >= ops.PUT else recorder.b[k]
        for column in others[: 1 if code >= ops.PUT else 2]:
            column[k] = ops.NO_OPERAND
        if ops.leaf_kind(index) == ops.INPUT and ops.leaf_index(index) < inputs:
            indices.setdefault((a, layout), set()).add(ops.leaf_index(index))
        else:
            used.update(recorder.elements(a, code))
    used.update(*map(recorder.leaves_in, others))
    used.update(operand for k, operand in recorder.third.items() if recorder.op[k] < ops.PUT)
    part_of = {offset: part for part in copies for offset in part.offsets}
    tables: dict[int, Table] = {}  # by offset of the first row
    owners: dict[int, set[int]] = {}  # by offset of a list: the tables that it belongs to
    for (first, number), places in indices.items():
        pitch, count = recorder.layouts[number]
        parts = [part_of.get(start - first + pitch * k) for k in range(count)]
        rows = list({part.offset: part for part in parts if part is not None}.values())
        table = Table(rows, count, pitch, tuple(sorted(places)))
        if None in parts or not _is_regular(table):
            used.update(range(first, first - pitch * count, -pitch))
            continue
        known = tables.setdefault(rows[0].offset, table)
        known.inputs = tuple(sorted({*known.inputs, *places}))
        for row in rows:
            owners.setdefault(row.offset, set()).add(id(table) if known.rows != rows else id(known))
    return [
        table
        for table in tables.values()
        if _FEWEST_FOR_EACH * len(table.inputs) <= table.count
        and all(len(owners[row.offset]) == 1 for row in table.rows)
        and used.isdisjoint(start - offset for row in table.rows for offset in row.offsets)
    ]


def _is_regular(table: Table) -> bool:
    """Whether rows are alike, and lie in their list as they do in the State."""
    first, *others = table.rows
    if any(row.mixed or row.replaced or row.integers or row.given_integers or not row.size for row in table.rows):
        return False
    if any(row.numpy_floats for row in table.rows):
        return False
    if not others:
        return table.pitch == 1 and first.size == table.count
    holder = first.place.container
    return (
        len(table.rows) == table.count
        and holder is not None
        and first.place.siblings == table.count
        and all(
            (row.size, row.offset, row.assigned, row.positions, row.place.key)
            == (first.size, first.offset + table.pitch * k, first.assigned, first.positions, (first.place.key[0], k))
            for k, row in enumerate(table.rows)
        )
    )
