"""Makes the trace of one call from what the recorder has collected.

1. Records that may be in another order are put in that order (`Recorder.rearrange`).
2. A number that was read before a store and is used after it is copied in front of that store (`Recorder.late_read`).
3. New parameters are numbered without the holes that other Values, made in between, have left.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from itertools import repeat
from operator import attrgetter, itemgetter, sub
from typing import TYPE_CHECKING, Any

from ...ir.opcodes import (
    BACKWARD,
    COPY,
    GRADIENT,
    LOCAL_GRADIENT,
    NO_OPERAND,
    NUMBER,
    PARAMETER,
    PUT,
    STORE,
    leaf,
    leaf_index,
    leaf_kind,
)
from ...ir.sites import sites_of_records
from ...ir.trace import LATE, NEW_BASE, Trace

if TYPE_CHECKING:
    from .recorder import Recorder

#: The operands of that kind are this one and those below.
_FIRST_LATE = leaf(LATE, 0)
#: Records that change memory, apart from assignments by run-time indices.
_WRITES = frozenset({STORE, BACKWARD})
_MAY_WRITE = bytes(byte in _WRITES for byte in range(256))  # by the lowest byte of the opcode
#: How many unused indices between parameters are tolerated as holes in the storage.
_TOLERATED_HOLES = 1000
_leaf_of = attrgetter("_leaf")


class Finishing:
    """Makes the trace of a recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder, self._late = recorder, recorder.late
        self._adjoint_reads = recorder.adjoint_reads
        self._blocks = recorder.blocks
        self._third = recorder.third
        self._sites = None if recorder.sites is None else sites_of_records(recorder.sites, recorder.b)

    def trace(self) -> Trace:
        """The trace."""
        recorder = self._recorder
        op, a, b = recorder.op, recorder.a, recorder.b
        if recorder.arrangements or self._late:
            op, a, b = self._in_place(op, a, b)
        c: array[int] | None = None
        if self._third:
            c = array("i", [NO_OPERAND]) * len(a)
            for position, operand in self._third.items():
                c[position] = operand
        parameters = sorted(zip(_indices(recorder.new_parameters), recorder.new_parameters), key=itemgetter(0))
        if parameters and parameters[-1][0] - parameters[0][0] >= len(parameters) + _TOLERATED_HOLES:
            parameters, a, b, c = _without_holes(parameters, a, b, c)
        return Trace(
            op, a, b, c, recorder.constants, recorder.layouts, parameters, recorder.bound_storages, recorder.states,
            len(recorder.local_values), recorder.outputs, self._adjoint_reads, recorder.checks, recorder.precision,
            recorder.power_lines, self._blocks, self._sites, recorder.nests, recorder.tensors,
            recorder.is_path,
        )  # fmt: skip

    def _in_place(self, op: array[int], a: array[int], b: array[int]) -> tuple[array[int], array[int], array[int]]:
        """The records in their final order, with copies of what is read late."""
        # One copy for each (leaf, first write after the read), placed just before that write.
        next_write = self._next_writes() if self._late else []
        added = sorted({(position, operand) for position, (operand, _) in zip(next_write, self._late)})
        cuts = [position for position, _ in added]
        place_of = {one: one[0] + number for number, one in enumerate(added)}
        copies = [place_of[position, operand] for position, (operand, _) in zip(next_write, self._late)]
        ends = [*cuts, len(op)]
        places = list(range(ends[0]))  # by position
        for number, (cut, end) in enumerate(zip(cuts, ends[1:]), 1):
            places += range(cut + number, end + number)
        sources, low, high = self._order(len(op))
        for place, source in zip(places[low:high], sources):
            places[source] = place

        def operands(column: Iterable[int]) -> array[int]:
            return array("i", [
                places[x] if x >= 0 else x if x > _FIRST_LATE else copies[leaf_index(x)] for x in column
            ])  # fmt: skip

        gathered = itemgetter(*sources) if len(sources) > 1 else tuple

        def in_order(column: array[int]) -> array[int]:
            return column[:low] + array("i", gathered(column)) + column[high:] if len(sources) > 1 else column

        def with_copies(column: array[int], inserted: Iterable[int]) -> array[int]:
            found = column[: ends[0]]
            for item, cut, end in zip(inserted, cuts, ends[1:]):
                found.append(item)
                found += column[cut:end]
            return found

        self._adjoint_reads = [
            (places[r] if r >= 0 else r, at + bisect_left(cuts, at + 1)) for r, at in self._adjoint_reads
        ]
        self._third = {places[r]: o for r, o in zip(self._third, operands(self._third.values()))}
        # No store is in a block; where records are in another order, it may be in pieces.
        self._blocks = [] if sources else [block._replace(start=places[block.start]) for block in self._blocks]
        if self._sites is not None:
            sites = in_order(self._sites)
            self._sites = with_copies(sites, [sites[cut] for cut in cuts])
        return (
            with_copies(in_order(op), repeat(COPY | NUMBER)),
            with_copies(operands(in_order(a)), (operand for _, operand in added)),
            with_copies(operands(in_order(b)), repeat(NO_OPERAND)),
        )

    def _order(self, count: int) -> tuple[list[int], int, int]:
        """Which record comes at each place from one to another, where records are in another order."""
        arrangements = self._recorder.arrangements
        if not arrangements:
            return [], 0, 0
        sources = list(range(count))
        for start, order in arrangements:
            sources[start : start + len(order)] = order
        low = min(start for start, _ in arrangements)
        high = max(start + len(order) for start, order in arrangements)
        return sources[low:high], low, high

    def _next_writes(self) -> list[int]:
        """For each late read, the first record after it that changes what is read."""
        op, a = self._recorder.op, self._recorder.a
        positions: dict[int, list[int]] = {operand: [] for operand in (BACKWARD, *self._recorder.read_late())}
        tables: dict[tuple[int, int], list[int]] = {}  # by first element and opcode: the elements that are read late
        start = min(read_at for _, read_at in self._late)
        writes = [k for k in self._recorder.positions(_MAY_WRITE) if op[k] == BACKWARD or a[k] in positions]
        puts = [k for k in self._recorder.look_ups() if op[k] >= PUT]
        for position in sorted([*writes, *puts]) if puts else writes:
            code, first = op[position], a[position]
            if position < start or not (code in _WRITES or code >= PUT):
                continue
            if code >= PUT:
                if (first, code) not in tables:
                    tables[first, code] = [x for x in self._recorder.elements(first, code) if x in positions]
                for written in tables[first, code]:
                    positions[written].append(position)
                continue
            written = first if code == STORE else BACKWARD
            if written in positions:
                positions[written].append(position)
        found = []
        for operand, read_at in self._late:
            writers = (operand, BACKWARD) if leaf_kind(operand) in (GRADIENT, LOCAL_GRADIENT) else (operand,)
            following = [(positions[one], bisect_left(positions[one], read_at)) for one in writers]
            found.append(min(written[k] for written, k in following if k < len(written)))
        return found


def _indices(parameters: Iterable[Any]) -> list[int]:
    return list(map(sub, repeat(leaf(PARAMETER, 0)), map(_leaf_of, parameters)))


def _without_holes(
    parameters: list[tuple[int, Any]], a: array[int], b: array[int], c: array[int] | None
) -> tuple[list[tuple[int, Any]], array[int], array[int], array[int] | None]:
    """Number the parameters densely, where Values that are none were created in between."""
    moved = {}
    for rank, (index, value) in enumerate(parameters):
        for kind in (PARAMETER, GRADIENT):
            moved[leaf(kind, index)] = leaf(kind, NEW_BASE + rank)
        value._leaf = leaf(PARAMETER, NEW_BASE + rank)

    def renumbered(column: array[int]) -> array[int]:
        return array("i", map(moved.get, column, column))

    found = [(NEW_BASE + rank, value) for rank, (_, value) in enumerate(parameters)]
    return found, renumbered(a), renumbered(b), c if c is None else renumbered(c)
