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
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from . import opcodes as ops

if TYPE_CHECKING:
    from .trace import Trace

#: So many operands of an output are followed, to see whether it depends on a row.
_FEW = 1000
#: Memory that a backward pass writes.
_OF_BACKWARD = frozenset({ops.GRADIENT, ops.LOCAL_GRADIENT, ops.ADJOINT})
#: Memory that holds numbers of one row.
_OF_ROWS = frozenset({ops.LOCAL, ops.LOCAL_GRADIENT, ops.ADJOINT})


@dataclass
class Separation:
    """What is known about the phases of a traced step.

    Attributes:
        reason: why its gradient cannot be separated from its update, in words; empty if it can.
        gradients: the gradients that are added up: the number of the kernel's storage, and the number in it.
        update_inputs: the inputs that the update depends on.
        late_outputs: the outputs that the update computes. late_inputs: the inputs that these depend on.
        early_inputs: the inputs that other outputs depend on, where finding out takes a few steps.
        structure: the hash of the structure of the trace.
        update: equal for steps with the same update, as far as operations and constants tell.
    """

    reason: str = ""
    gradients: frozenset[tuple[int, int]] = frozenset()
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
    passes = [k for k in _outside_blocks(trace) if trace.op[k] == ops.BACKWARD]
    if not passes:
        return Separation(
            "it has no backward pass that could be run on its own: backward() is not called, or what it does is "
            "recorded operation by operation, see step.lower(...).explain()",
            structure=structure,
        )
    reason = "it computes with tensors" if trace.nests else _refused(trace, passes)
    if reason:
        return Separation(reason, structure=structure)
    return _Walk(trace, passes[-1]).separation(structure)


def with_early_outputs(trace: Trace) -> Trace:
    """The same trace, in which an output that depends on no backward pass is computed and stored before the first.

    A step stores what it returns at its very end, in the order in which it is returned.  Numbers of the forward phase
    would otherwise be in loops with those of the update.
    """
    passes = [k for k in _outside_blocks(trace) if trace.op[k] == ops.BACKWARD]
    if not passes or trace.nests:  # which records of other memory depend on
        return trace
    first, walk = passes[0], _Walk(trace, passes[0])
    stores = [k for k in _outside_blocks(trace) if k > first and trace.op[k] == ops.STORE]
    outputs = [k for k in stores if ops.leaf_kind(trace.a[k]) == ops.OUTPUT]
    written = {trace.a[k]: k for k in reversed(stores)}
    early = [k for k in outputs if not walk.is_late(k, written)]
    moved = walk.records(early)
    if not moved:
        return trace
    order = [*range(first), *moved, *sorted(set(range(first, len(trace))) - set(moved))]
    places = [0] * len(order)
    for place, source in enumerate(order):
        places[source] = place

    def column(operands: array[int] | None) -> array[int] | None:
        if operands is None:
            return None
        return array("i", [places[o] if o >= first else o for o in map(operands.__getitem__, order)])

    a, b = column(trace.a), column(trace.b)
    assert a is not None
    assert b is not None
    return replace(
        trace,
        op=array("i", map(trace.op.__getitem__, order)),
        a=a,
        b=b,
        c=column(trace.c),
        adjoint_reads=[
            (places[record] if record >= 0 else record, at + len(moved) - bisect_left(moved, at) if at > first else at)
            for record, at in trace.adjoint_reads
        ],
        blocks=[block for block in trace.blocks if block.end <= first],
    )


def _outside_blocks(trace: Trace) -> Iterator[int]:
    """The records that belong to no block: only these assign, or are backward passes."""
    return (k for low, high in trace.gaps() for k in range(low, high))


def _refused(trace: Trace, passes: Sequence[int]) -> str:
    """Why what comes before the last backward pass cannot be repeated for each row; empty if it can."""
    first, last = passes[0], passes[-1]
    if _has_kind(trace.b[:last], ops.GRADIENT) or (trace.c is not None and _has_kind(trace.c[:last], ops.GRADIENT)):
        return _READS
    for k in _outside_blocks(trace):
        if k >= last:
            break
        code, kind = trace.op[k], ops.leaf_kind(trace.a[k])
        if code >= ops.PUT or (code == ops.STORE and kind not in (ops.GRADIENT, ops.OUTPUT)):
            return f"it assigns {_NAMES.get(kind, 'numbers')} before its last backward(), which each row would repeat"
        if code == ops.STORE and kind == ops.GRADIENT and (k > first or trace.b[k] >= 0):
            return "it assigns gradients between two backward passes, or computes what it assigns to them before one"
        if code not in (ops.STORE, ops.BACKWARD) and kind == ops.GRADIENT:
            return _READS
    return ""


_READS = "it reads gradients before its last backward(): those of other rows are not there yet"
_NAMES = {ops.PARAMETER: "parameters", ops.STATE: "state (numbers that it keeps from call to call)"}


class _Walk:
    """Walks from what the update assigns to what that depends on."""

    def __init__(self, trace: Trace, last: int) -> None:
        self._trace, self._last = trace, last
        self._columns = [trace.a, trace.b] if trace.c is None else [trace.a, trace.b, trace.c]
        self._update = range(last + 1, len(trace.op))

    def separation(self, structure: str) -> Separation:
        op, a, b = self._trace.op, self._trace.a, self._trace.b
        stores = [k for k in _outside_blocks(self._trace) if op[k] == ops.STORE]
        gradients = frozenset(a[k] for k in stores if ops.leaf_kind(a[k]) == ops.GRADIENT)
        outputs = [k for k in stores if ops.leaf_kind(a[k]) == ops.OUTPUT]
        written = {a[k]: k for k in reversed(stores) if k > self._last}
        late = [k for k in outputs if k > self._last and self.is_late(k, written)]
        late_inputs, unusable = self._reached(b[k] for k in late)
        if unusable:
            return Separation(f"it returns, after the update, {unusable}", structure=structure)
        inputs, unusable = self._inputs(set(outputs))
        if not unusable:
            unread = self._gradients_read() - gradients
            unusable = "gradients that it never sets to 0, so that they grow from call to call" if unread else ""
        if unusable:
            return Separation(f"its update uses {unusable}", structure=structure)
        if not gradients:
            return Separation("it never sets gradients to 0, so that they grow from call to call", structure=structure)
        return Separation(
            gradients=frozenset(map(self._place, gradients)),
            update_inputs=inputs,
            late_outputs=frozenset(ops.leaf_index(a[k]) for k in late),
            late_inputs=late_inputs,
            early_inputs=self._early_inputs(set(outputs) - set(late)),
            structure=structure,
            update=self._signature(),
        )

    def _place(self, gradient: int) -> tuple[int, int]:
        """The storage of a gradient, as kernels count them (making.py), and its number there."""
        trace, index = self._trace, ops.leaf_index(gradient)
        starts = [trace.new_parameters[0][0]] if trace.new_parameters else []
        starts += [start for start, _ in trace.bound_storages]
        start, region = max((start, region) for region, start in enumerate(starts) if start <= index)
        return region, index - start

    def _gradients_read(self) -> set[int]:
        found = set().union(*(column[self._last + 1 :] for column in self._columns[1:]))
        stores = {k for k in self._update if self._trace.op[k] == ops.STORE}
        found |= {self._trace.a[k] for k in self._update if k not in stores}
        return {operand for operand in found if ops.leaf_kind(operand) == ops.GRADIENT}

    def _inputs(self, outputs: set[int]) -> tuple[frozenset[int], str]:
        """The inputs that the update depends on; and what it uses of a single row, in words."""
        roots = {column[k] for k in self._update if k not in outputs for column in self._columns}
        direct = {o for o in roots if o < 0}
        deep, unusable = self._reached(o for o in roots if 0 <= o <= self._last)
        found, more = self._reached(direct)
        if not deep and not unusable and not more:
            return found, ""
        assignments = [k for k in self._update if self._trace.op[k] == ops.STORE or self._trace.op[k] >= ops.PUT]
        return self._reached(column[k] for k in assignments if k not in outputs for column in self._columns[1:])

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

    def is_late(self, store: int, written: Mapping[int, int]) -> bool:
        """Whether what is stored after the backward pass depends on what that, or the update, has written.

        Args:
            written: what the update assigns, and where it does so first.
        """
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
                elif ops.leaf_kind(operand) in _OF_BACKWARD or written.get(operand, record) < record:
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

    def _signature(self) -> tuple[object, ...]:
        trace, start = self._trace, self._last + 1
        operands = set().union(*(column[start:] for column in self._columns))
        constants = {trace.constants[ops.leaf_index(o)] for o in operands if ops.leaf_kind(o) == ops.CONSTANT}
        return hash(bytes(memoryview(trace.op[start:]).cast("B"))), tuple(sorted(map(float.hex, map(float, constants))))


def _has_kind(column: array[int], kind: int) -> bool:
    """Whether an operand of a kind is among these."""
    top = 3 if sys.byteorder == "little" else 0
    tops = column.tobytes()[top::4]
    return kind in tops.translate(ops.KIND_OF_TOP_BYTE)
