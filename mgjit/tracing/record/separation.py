"""What the update of a step depends on: whether the gradients of several rows can be added up before one update.

A step can be separated if its trace is forward, backward and update, one after the other:

1. The update is everything after the last BACKWARD record.  Nothing but gradients may be assigned before it, nothing
   may read them there, and assignments between two backward passes would be repeated for each row.
2. The gradients that are added up are those that the step itself sets, as `zero_grad` does: others go on growing from
   call to call, and mean nothing once they are added up.
3. What the update assigns may depend on gradients, parameters, state and constants, and on inputs, of which the caller
   says later whether they differ from row to row.  Inputs are found among the operands of the update and, where those
   are records of the forward phase, by walking from there to their leaves.  Only if that finds any inputs does a walk
   from each assignment tell which of them matter; in all other cases a step of a million parameters needs no walk.
4. An output belongs to the update if it depends on something that the backward pass or the update has written.  All
   others are computed before the backward pass (`with_early_outputs`), with which the phases are built.
"""

from __future__ import annotations

import math
import re
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING

from ...base.cached import cached_property
from ...ir import opcodes as ops

if TYPE_CHECKING:
    from ...ir.trace import Trace

#: So many operands of an output are followed, to see whether it depends on a row.
_FEW = 1000
_GRADIENTS, _CONSTANTS, _RECORDS = (frozenset({k}) for k in (ops.GRADIENT, ops.CONSTANT, ops.TEMPORARY))
#: Memory that a backward pass writes.
_OF_BACKWARD = frozenset({ops.GRADIENT, ops.LOCAL_GRADIENT, ops.ADJOINT})
#: Memory that holds numbers of one row.
_OF_ROWS = frozenset({ops.LOCAL, ops.LOCAL_GRADIENT, ops.ADJOINT})


@dataclass
class Separation:
    """What is known about the phases of a traced step.

    Attributes:
        reason: why its gradient cannot be separated from its update, in words; empty if it can.
        gradients: the numbers of the gradients that are added up, for each storage of the kernel.
        update_inputs: the inputs that the update depends on.
        late_outputs: the outputs that the update computes. late_inputs: the inputs that these depend on.
        early_inputs: the inputs that other outputs depend on, where finding out takes a few steps.
        structure: the hash of the structure of the trace.
        update: equal for steps with the same update, as far as operations and constants tell.
    """

    reason: str = ""
    gradients: Sequence[Sequence[int]] = ()
    update_inputs: frozenset[int] = frozenset()
    late_outputs: frozenset[int] = frozenset()
    late_inputs: frozenset[int] = frozenset()
    early_inputs: dict[int, frozenset[int]] = field(default_factory=dict)
    structure: str = ""
    update: tuple[object, ...] = field(default=(), repr=False)


def separation_of(trace: Trace, structure: str) -> Separation:
    """Find out what the update of a step depends on.

    Args:
        structure: the hash of the structure of the trace.
    """
    passes = _positions(trace.op, ops.BACKWARD)
    if not passes:
        return Separation(
            "it has no backward pass that could be run on its own: backward() is not called, or what it does is "
            "recorded operation by operation, see step.lower(...).explain()",
            structure=structure,
        )
    stores = _positions(trace.op, ops.STORE)
    before = stores[: bisect_left(stores, passes[-1])]
    tensors = "it computes with tensors, and only steps over scalars can be separated. Use threads= instead"
    reason = tensors if trace.nests else _refused(trace, passes, before)
    if reason:
        return Separation(reason, structure=structure)
    return _Walk(trace, passes[-1], stores).separation(structure)


def forward_assigns(trace: Trace, copied: range) -> bool:
    """Whether the forward phase, or a step without a backward pass, assigns numbers that are not the step's own state.

    Args:
        copied: the indices of state that stands for numbers of the user's objects.
    """
    passes = _positions(trace.op, ops.BACKWARD)
    end = passes[0] if passes else len(trace)
    stores = _positions(trace.op[:end], ops.STORE)
    if any(code >= ops.PUT for code in set(trace.op[:end])):
        stores += [k for k, code in enumerate(trace.op[:end]) if code >= ops.PUT]
    targets = array("i", map(trace.a.__getitem__, stores))
    # Gradients that are set to 0 before a backward pass belong to that pass.
    kinds = {ops.PARAMETER} if passes else {ops.PARAMETER, ops.GRADIENT}
    states = map(ops.leaf_index, _of_kinds(targets, frozenset({ops.STATE})))
    return not kinds.isdisjoint(_kinds(targets)) or any(index in copied for index in states)


def with_early_outputs(trace: Trace) -> Trace:
    """The same trace, in which an output that depends on no backward pass is computed and stored before the first.

    A step stores what it returns at its very end, in the order in which it is returned.  Numbers of the forward phase
    would otherwise be in loops with those of the update.
    """
    passes = _positions(trace.op, ops.BACKWARD)
    if not passes or trace.nests:  # which records of other memory depend on
        return trace
    first = passes[0]
    walk = _Walk(trace, first, _positions(trace.op, ops.STORE))
    moved = walk.records([k for k in walk.outputs if k > first and not walk.is_late(k)])
    if not moved:
        return trace
    #: The records from the first backward pass on that stay there, in stretches.
    stretches = [range(low + 1, high) for low, high in zip([first - 1, *moved], [*moved, len(trace)])]
    places = array("i")
    for number, stretch in enumerate(stretches):
        places.extend(range(stretch.start + len(moved) - number, stretch.stop + len(moved) - number))
        if number < len(moved):
            places.append(first + number)

    def reordered(column: array[int]) -> array[int]:
        found = column[:first] + array("i", map(column.__getitem__, moved))
        for stretch in stretches:
            found += column[stretch.start : stretch.stop]
        return found

    def operands(column: array[int]) -> array[int]:
        found = reordered(column)
        return found[:first] + array("i", [places[o - first] if o >= first else o for o in found[first:]])

    return replace(
        trace,
        op=reordered(trace.op),
        a=operands(trace.a),
        b=operands(trace.b),
        c=None if trace.c is None else operands(trace.c),
        adjoint_reads=[
            (places[r - first] if r >= first else r, at + len(moved) - bisect_left(moved, at) if at > first else at)
            for r, at in trace.adjoint_reads
        ],
        blocks=[block for block in trace.blocks if block.end <= first],
        sites=None if trace.sites is None else reordered(trace.sites),
    )


def _positions(column: array[int], code: int) -> list[int]:
    """The records with an opcode; there may be millions, so that no loop of Python looks at each."""
    low = 0 if sys.byteorder == "little" else 3
    found = re.finditer(re.escape(bytes([code])), column.tobytes()[low::4])
    return [match.start() for match in found if column[match.start()] == code]


def _kinds(column: array[int]) -> bytes:
    """The kinds of operands."""
    top = 3 if sys.byteorder == "little" else 0
    return column.tobytes()[top::4].translate(ops.KIND_OF_TOP_BYTE)


def _of_kinds(column: array[int], kinds: frozenset[int]) -> Iterator[int]:
    """The operands of some kinds."""
    return compress(column, _kinds(column).translate(bytes(kind in kinds for kind in range(256))))


def _refused(trace: Trace, passes: Sequence[int], stores: Sequence[int]) -> str:
    """Why what comes before the last backward pass cannot be repeated for each row; empty if it can.

    Args:
        stores: the assignments before it.
    """
    first, last = passes[0], passes[-1]
    assigned = _kinds(array("i", map(trace.a.__getitem__, stores)))
    gradients = list(compress(stores, map(ops.GRADIENT.__eq__, assigned)))
    read = _kinds(trace.a[:last]).count(ops.GRADIENT) - len(gradients)
    if read or any(ops.GRADIENT in _kinds(column[:last]) for column in (trace.b, trace.c) if column is not None):
        return "it reads gradients before its last backward(): those of other rows are not there yet"
    others = set(assigned) - {ops.GRADIENT, ops.OUTPUT}
    if others or any(code >= ops.PUT for code in set(trace.op[:last])):
        what = _NAMES.get(min(others, default=ops.STATE), "numbers")
        return f"it assigns {what} before its last backward(), which each row would repeat"
    if gradients and (gradients[-1] > first or max(map(trace.b.__getitem__, gradients)) >= 0):
        return "it assigns gradients between two backward passes, or computes what it assigns to them before one"
    return ""


_NAMES = {ops.PARAMETER: "parameters", ops.STATE: "state (numbers that it keeps from call to call)"}


class _Walk:
    """Walks from what is assigned after a backward pass to what that depends on.

    Attributes:
        outputs: the records that store outputs.
    """

    def __init__(self, trace: Trace, last: int, stores: Sequence[int]) -> None:
        self._trace, self._last, self._stores = trace, last, stores
        self._columns = [trace.a, trace.b] if trace.c is None else [trace.a, trace.b, trace.c]
        self._assigned = array("i", map(trace.a.__getitem__, stores))
        kinds = _kinds(self._assigned)
        self.outputs = list(compress(stores, map(ops.OUTPUT.__eq__, kinds)))

    @cached_property
    def _gradients(self) -> set[int]:
        """The gradients that the step sets."""
        return set(_of_kinds(self._assigned, _GRADIENTS))

    @cached_property
    def _written(self) -> dict[int, int]:
        """What the update assigns, and where it does so first."""
        start = bisect_left(self._stores, self._last)
        return dict(zip(reversed(self._assigned[start:]), reversed(self._stores[start:])))

    def separation(self, structure: str) -> Separation:
        trace = self._trace
        late = [k for k in self.outputs if k > self._last and self.is_late(k)]
        late_inputs, unusable = self._reached(trace.b[k] for k in late)
        if unusable:
            return Separation(f"it returns, after the update, {unusable}", structure=structure)
        update = [column[self._last + 1 :] for column in self._columns]
        unread = {found for column in update for found in _of_kinds(column, _GRADIENTS)} - self._gradients
        if unread or not self._gradients:
            return Separation(
                "it never sets gradients to 0 that its update uses, so that they grow from call to call",
                structure=structure,
            )
        inputs, unusable = self._inputs(update)
        if unusable:
            return Separation(f"its update uses {unusable}", structure=structure)
        return Separation(
            gradients=self._places(),
            update_inputs=inputs,
            late_outputs=frozenset(ops.leaf_index(trace.a[k]) for k in late),
            late_inputs=late_inputs,
            early_inputs=self._early_inputs(set(self.outputs) - set(late)),
            structure=structure,
            update=self._signature(update),
        )

    def _places(self) -> list[list[int]]:
        """The numbers of the gradients in each storage, as kernels count storages (factory.py)."""
        trace = self._trace
        starts = [trace.new_parameters[0][0]] if trace.new_parameters else []
        starts += [start for start, _ in trace.bound_storages]
        indices = sorted([~leaf & ops.INDEX_MASK for leaf in self._gradients])
        found = []
        for start in starts:
            end = min((other for other in starts if other > start), default=ops.INDEX_MASK + 1)
            found.append([k - start for k in indices[bisect_left(indices, start) : bisect_left(indices, end)]])
        return found

    def _inputs(self, update: Sequence[array[int]]) -> tuple[frozenset[int], str]:
        """The inputs that the update depends on; and what it uses of a single row, in words."""
        columns = [column[:] for column in update]
        for k in self.outputs:
            if k > self._last:
                for column in columns:
                    column[k - self._last - 1] = ops.NO_OPERAND
        direct = {operand for column in columns for operand in _of_kinds(column, _OF_ROWS | {ops.INPUT})}
        deep = {o for column in columns for o in _of_kinds(column, _RECORDS) if 0 <= o <= self._last}
        found, unusable = self._reached(direct)
        if not unusable and not any(self._reached(deep)):
            return found, ""
        outputs = set(self.outputs)
        assignments = [k for k in self._stores[bisect_left(self._stores, self._last) :] if k not in outputs]
        assignments += [k for k in range(self._last, len(self._trace)) if self._trace.op[k] >= ops.PUT]
        return self._reached(column[k] for k in assignments for column in self._columns[1:])

    def _early_inputs(self, outputs: Iterable[int]) -> dict[int, frozenset[int]]:
        found = {}
        for k in outputs:
            inputs, unusable = self._reached([self._trace.b[k]], _FEW)
            if not unusable:
                found[ops.leaf_index(self._trace.a[k])] = inputs
        return found

    def _reached(self, operands: Iterable[int], most: float = math.inf) -> tuple[frozenset[int], str]:
        """The inputs that operands depend on; and what they depend on of a single row, in words.

        Args:
            most: with more operands than this, it is given up.
        """
        inputs: set[int] = set()
        unusable = ""
        seen: set[int] = set()
        pending = list(operands)
        while pending:
            operand = pending.pop()
            if operand in seen:
                continue
            seen.add(operand)
            if len(seen) > most:
                return frozenset(inputs), "too many numbers"
            if operand >= 0:
                pending += [column[operand] for column in self._columns if column[operand] != ops.NO_OPERAND]
            elif ops.leaf_kind(operand) == ops.INPUT:
                inputs.add(ops.leaf_index(operand))
            elif ops.leaf_kind(operand) in _OF_ROWS:
                unusable = "numbers of nodes of the graph (their .data or .grad), which belong to a single row"
        return frozenset(inputs), unusable

    def is_late(self, store: int) -> bool:
        """Whether what is stored after the backward pass depends on what that, or the update, has written."""
        pending, seen = [store], set()
        while pending:
            record = pending.pop()
            if record <= self._last or record in seen:
                continue
            seen.add(record)
            for column in self._columns[1:] if record == store else self._columns:
                operand = column[record]
                if operand >= 0:
                    pending.append(operand)
                elif ops.leaf_kind(operand) in _OF_BACKWARD or self._written.get(operand, record) < record:
                    return True
        return False

    def records(self, stores: Iterable[int]) -> list[int]:
        """Stores, and the records after the backward pass that they need, in order."""
        found, pending = set(), list(stores)
        while pending:
            record = pending.pop()
            if record > self._last and record not in found:
                found.add(record)
                pending += [column[record] for column in self._columns]
        return sorted(found)

    def _signature(self, update: Sequence[array[int]]) -> tuple[object, ...]:
        trace = self._trace
        used = {ops.leaf_index(o) for column in update for o in set(_of_kinds(column, _CONSTANTS))}
        constants = sorted(float(trace.constants[index]).hex() for index in used)
        return hash(trace.op[self._last + 1 :].tobytes()), tuple(constants)
