"""The forward part of a trace.

1. Find where training begins: at the first backward pass; where its operations were recorded one by one, all
   assignments are training.
2. Go through the records in order, and drop what cannot be computed without training: backward passes, assignments to
   parameters and gradients, assignments to state from there on, and whatever reads what was assigned so.
   What a class links to its operands with a derivative of its own (LINK) is a copy of its number.  Of tensors, what is
   lost is the whole tensor (record/regions.py).
3. Go through them backwards, and drop what nothing that is left needs.
4. Number the remaining records anew.  They have not been changed, so that they compute the same bits.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..errors import FreezeError
from ..ir.opcodes import (
    ADJOINT,
    BACKWARD,
    COPY,
    GRADIENT,
    LINK,
    LINK_DIVIDED,
    LOCAL,
    LOCAL_GRADIENT,
    NESTED,
    NO_OPERAND,
    NUMBER,
    OUTPUT,
    PARAMETER,
    PUT,
    STATE,
    STORE,
    TAKE,
    TENSOR,
    TENSOR_GRADIENT,
    leaf,
    leaf_index,
    leaf_kind,
)
from ..ir.trace import Block, NestRecord, Trace
from ..tracing.record.regions import Regions

_LINKS = frozenset({LINK, LINK_DIVIDED})
#: Kinds of memory that backward passes write.
_OF_BACKWARD = frozenset({GRADIENT, LOCAL_GRADIENT, TENSOR_GRADIENT})
#: Kinds that exist only while a step runs: what nobody reads is not computed.
_TEMPORARY = frozenset({TENSOR, TENSOR_GRADIENT})


@dataclass(frozen=True)
class Forward:
    """The forward part of a trace.

    Attributes:
        trace: it.
        assigned: the indices of the elements of state that it assigns.
        tensors: the first PARAMETER indices of the tensors from outside that it assigns.
        dropped: how many records of the trace it does not have.
    """

    trace: Trace
    assigned: frozenset[int]
    tensors: frozenset[int]
    dropped: int


def forward_of(trace: Trace, location: str, is_recorded: bool = False) -> Forward:
    """The forward part of a trace.

    Args:
        trace: of a step.
        location: `file:line` of the step, for messages.
        is_recorded: whether the operations of a backward pass are among the records, instead of a BACKWARD record.

    Raises:
        FreezeError: the step assigns parameters without a backward pass, or a result needs what only training computes.
    """
    return _Cut(trace, location, is_recorded).forward()


class _Cut:
    def __init__(self, trace: Trace, location: str, is_recorded: bool) -> None:
        self._trace, self._location, self._regions = trace, location, Regions(trace)
        stores = [k for k, code in enumerate(trace.op) if code == STORE]
        backward = next((k for k, code in enumerate(trace.op) if code == BACKWARD), len(trace))
        assignment = next((k for k in stores if leaf_kind(trace.a[k]) == PARAMETER), len(trace))
        assignment = min(assignment, self._first_update())
        if assignment < len(trace) and backward == len(trace) and not is_recorded:
            raise FreezeError(
                f"{location}: the step assigns numbers of its parameters without a call of backward(), so that its "
                "forward part cannot be told from its update. Write what is to be frozen as a function of its own, and "
                "keep what it assigns in mgjit.state, in lists, or in tensors without requires_grad."
            )
        self._backward = backward
        self._training = 0 if is_recorded and backward == len(trace) else min(backward, assignment)

    def _first_update(self) -> int:
        """The position of the first assignment to a tensor that is a parameter."""
        regions = self._regions
        updates = (k for k, nest in regions.nests.items() if regions.is_of_training(regions.of(nest.target.leaf)))
        return next(updates, len(self._trace))

    def forward(self) -> Forward:
        trace = self._trace
        effects = self._effects()
        needed = self._needed(effects)
        kept = [position for position, is_needed in enumerate(needed) if is_needed]
        assigned: set[int] = set()
        tensors: set[int] = set()
        for position in effects:
            written = list(self._written(position))
            assigned.update(leaf_index(x) for x in written if leaf_kind(x) == STATE)
            tensors.update(leaf_index(x) for x in written if leaf_kind(x) == PARAMETER)
        return Forward(self._renumbered(kept), frozenset(assigned), frozenset(tensors), len(trace) - len(kept))

    # ---- 2: what can be computed ------------------------------------------------------------------------------

    def _effects(self) -> list[int]:
        """The positions of the assignments that are kept, in order."""
        trace, training = self._trace, self._training
        self._lost = lost = bytearray(len(trace))
        self._gone: set[int] = set()  # leaves whose assignments were dropped
        third = trace.c or array("i", [NO_OPERAND]) * len(trace)
        effects, nests = [], self._regions.nests
        read: tuple[int, ...]
        for position, (code, a, b, c) in enumerate(zip(trace.op, trace.a, trace.b, third)):
            self._is_after_backward = position >= self._backward
            nest = nests.get(position)
            if code == BACKWARD:
                lost[position] = 1
            elif nest is not None:
                read = (b, c, *self._regions.read_by(nest))
                lost[position] = any(map(self._is_lost, read))
                if self._is_effect_of_nest(position, nest, training):
                    effects.append(position)
                elif lost[position] or leaf_kind(nest.target.leaf) not in _TEMPORARY:
                    lost[position] = 1
                    self._gone.add(self._regions.of(nest.target.leaf))
            elif code != STORE and code < PUT:
                read = (a, b, c)
                if code & (NUMBER - 1) in _LINKS:
                    read = (a,)
                elif code & (NUMBER - 1) >= TAKE:
                    read = (b, *(self._elements(a, code) if self._gone else ()))
                lost[position] = any(map(self._is_lost, read))
            else:
                value, kind = b, leaf_kind(a)
                is_lost = self._is_lost(value) or (code >= PUT and self._is_lost(c))
                if kind == OUTPUT and is_lost:
                    raise self._refusal(leaf_index(a))
                if kind == OUTPUT or (not is_lost and (kind == LOCAL or (kind == STATE and position < training))):
                    effects.append(position)
                    self._gone.difference_update(self._written(position))
                else:
                    lost[position] = 1
                    self._gone.update(self._written(position))
        return effects

    def _is_effect_of_nest(self, position: int, nest: NestRecord, training: int) -> bool:
        """Whether an operation on tensors writes results, or a tensor that the forward part assigns."""
        is_lost, target = self._lost[position], nest.target.leaf
        if leaf_kind(target) == OUTPUT:
            if is_lost:
                raise self._refusal(leaf_index(target))
            return True
        return leaf_kind(target) == PARAMETER and not is_lost and position < training

    def _is_lost(self, operand: int) -> bool:
        if operand >= 0:
            return bool(self._lost[operand])
        kind = leaf_kind(operand)
        is_gradient = kind == ADJOINT or (self._is_after_backward and kind in _OF_BACKWARD)
        return operand != NO_OPERAND and (is_gradient or self._regions.of(operand) in self._gone)

    def _written(self, position: int) -> Iterable[int]:
        """The leaves, or the region, that an assignment may change."""
        code, first = self._trace.op[position], self._trace.a[position]
        nest = self._regions.nests.get(position)
        if nest is not None:
            return (self._regions.of(nest.target.leaf),)
        return (first,) if code == STORE else self._elements(first, code)

    def _elements(self, first: int, code: int) -> range:
        stride, count = self._trace.layouts[(code & (NUMBER - 1)) - TAKE]
        return range(first, first - stride * count, -stride)

    def _refusal(self, output: int) -> FreezeError:
        of = "its result" if self._trace.outputs == 1 else f"number {output + 1} of the {self._trace.outputs} in it"
        return FreezeError(
            f"{self._location}: a result of the step needs what only training computes, gradients or parameters that "
            f"have been updated ({of}). Freeze a function that returns the other results only, such as the scores."
        )

    # ---- 3: what is needed ------------------------------------------------------------------------------------

    def _needed(self, effects: Iterable[int]) -> bytearray:
        """For each record, whether it is kept."""
        trace, nests = self._trace, self._regions.nests
        needed = bytearray(len(trace))
        is_effect = bytearray(len(trace))
        locals_read: set[int] = set()  # and regions of tensors
        for position in effects:
            is_effect[position] = 1
        for position in range(len(trace) - 1, -1, -1):
            code = trace.op[position]
            nest = nests.get(position)
            if nest is not None:
                if not is_effect[position] and (
                    self._lost[position] or locals_read.isdisjoint(self._written(position))
                ):
                    continue
                needed[position] = 1
                read = [trace.b[position], *self._regions.read_by(nest)]
            elif is_effect[position]:
                a = trace.a[position]
                if leaf_kind(a) == LOCAL and locals_read.isdisjoint(self._written(position)):
                    continue
                needed[position] = 1
                read = [trace.b[position]]
            elif needed[position]:
                read = [trace.a[position]]
                if code & (NUMBER - 1) not in _LINKS:
                    read.append(trace.b[position])
                if code & (NUMBER - 1) >= TAKE and leaf_kind(read[0]) == LOCAL:
                    read += self._elements(read[0], code)
            else:
                continue
            if trace.c is not None and code & (NUMBER - 1) not in _LINKS:
                read.append(trace.c[position])
            for operand in read:
                if operand >= 0:
                    needed[operand] = 1
                elif leaf_kind(operand) == LOCAL or leaf_kind(operand) in _TEMPORARY:
                    locals_read.add(self._regions.of(operand))
        return needed

    # ---- 4: numbering -----------------------------------------------------------------------------------------

    def _renumbered(self, kept: list[int]) -> Trace:
        trace = self._trace
        places = dict(zip(kept, range(len(kept))))
        op = array(trace.op.typecode, map(trace.op.__getitem__, kept))
        links = [k for k, code in enumerate(op) if code & (NUMBER - 1) in _LINKS]

        def column(of: array[int]) -> array[int]:
            return array(of.typecode, [places[x] if x >= 0 else x for x in map(of.__getitem__, kept)])

        for k in links:  # their other operands may be gone
            op[k] = COPY | NUMBER
        a = column(trace.a)
        nests = {places[k]: nest for k, nest in self._regions.nests.items() if k in places}
        for number, k in enumerate(nests):
            a[k] = leaf(NESTED, number)
        b, c = (None if of is None else of[:] for of in (trace.b, trace.c))
        assert b is not None
        for k in links:
            b[kept[k]] = NO_OPERAND
            if c is not None:
                c[kept[k]] = NO_OPERAND
        blocks = [
            Block(places[block.start], *block[1:])
            for block in trace.blocks
            if all(position in places for position in range(block.start, block.end))
        ]
        sites = None if trace.sites is None else array("i", map(trace.sites.__getitem__, kept))
        b, c = column(b), None if c is None else column(c)
        made = replace(trace, op=op, a=a, b=b, c=c, adjoint_reads=[], blocks=blocks, sites=sites)
        return self._with_tensors(made, list(nests.values())) if trace.nests or self._regions.memories else made

    def _with_tensors(self, trace: Trace, nests: list[NestRecord]) -> Trace:
        """The trace with these nests, and the tensors that it uses."""
        leaves = {place.leaf for nest in nests for place in nest.places()}.union(trace.a, trace.b, trace.c or ())
        used = set(map(self._regions.of, leaves))
        tensors = [region for region in trace.tensors if not used.isdisjoint(_leaves(region.base, TENSOR))]
        bound = [
            (base, storage)
            for base, storage in trace.bound_storages
            if leaf(PARAMETER, base) not in self._regions.memories or not used.isdisjoint(_leaves(base, PARAMETER))
        ]
        return replace(trace, nests=nests, tensors=tensors, bound_storages=bound)


def _leaves(index: int, kind: int) -> tuple[int, int]:
    """The first leaves of a region and of its gradients."""
    return leaf(kind, index), leaf(TENSOR_GRADIENT if kind == TENSOR else GRADIENT, index)
