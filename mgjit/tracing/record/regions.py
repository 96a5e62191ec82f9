"""The memory of tensors in a trace, by regions: what a loop nest reads and writes.

A nest names elements by strides, so what is lost or needed is known for whole tensors, and not for single elements.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from ...ir.opcodes import GRADIENT, NEST, PARAMETER, TENSOR, TENSOR_GRADIENT, leaf, leaf_index, leaf_kind
from ...ir.trace import NestRecord, Place, Trace
from ...tensor.memory import Memory


class Regions:
    """The regions of one trace; each is known by its first leaf.

    Attributes:
        memories: by the PARAMETER leaf of a region, the memory of the tensor from outside of the step.
        nests: by the position of its record.
    """

    def __init__(self, trace: Trace) -> None:
        codes = enumerate(trace.op) if trace.nests else ()
        self.nests = {position: trace.nests[leaf_index(trace.a[position])] for position, code in codes if code == NEST}
        self.memories: dict[int, Memory] = {}
        own = [region.base for region in trace.tensors]
        outside: list[int] = []
        ends: dict[int, int] = {}
        for base, storage in trace.bound_storages:
            if isinstance(storage, Memory):
                outside.append(base)
                ends[base] = base + len(storage)
                self.memories[leaf(PARAMETER, base)] = storage
        self._ends = ends
        self._bases = {TENSOR: own, TENSOR_GRADIENT: own, PARAMETER: outside, GRADIENT: outside}

    def of(self, operand: int) -> int:
        """The region that a leaf belongs to; what is no element of a tensor is a region of its own."""
        bases = self._bases.get(leaf_kind(operand)) if operand < 0 else None
        if not bases:
            return operand
        index = leaf_index(operand)
        position = bisect_right(bases, index) - 1
        if position < 0 or index >= self._ends.get(bases[position], index + 1):
            return operand
        return leaf(leaf_kind(operand), bases[position])

    def is_of_tensor(self, operand: int) -> bool:
        """Whether a leaf, a PARAMETER or a GRADIENT, belongs to a tensor from outside."""
        return leaf(PARAMETER, leaf_index(self.of(operand))) in self.memories

    def read_by(self, nest: NestRecord) -> Iterator[int]:
        """The regions of the operands."""
        return (self.of(place.leaf) for place in nest.operands if not place.column)

    def fills(self, nest: NestRecord) -> bool:
        """Whether a nest assigns all elements of the region of its target."""
        target = nest.target
        region = self.of(target.leaf)
        memory = self.memories.get(leaf(PARAMETER, leaf_index(region)))
        return memory is not None and target.leaf == region and _covers(target, nest.outer, len(memory))

    def is_of_training(self, region: int) -> bool:
        """Whether a tensor from outside is a parameter, which only training assigns."""
        return leaf_kind(region) == PARAMETER and self.memories[region].is_leaf


def _covers(place: Place, counts: tuple[int, ...], size: int) -> bool:
    """Whether some loops visit `size` elements that follow each other."""
    covered = 1
    for stride, count in sorted(zip(place.strides, counts)):
        if count > 1 and stride != covered:
            return False
        covered *= count
    return covered == size and place.chosen is None
