"""Which operations on tensors may be one statement of a loop, as the time steps of a recurrent network.

1. Two nests (record/nests.py) are alike if they differ in nothing but the places of what they read and write.
2. In a run of iterations, each place must change by the same step.  What an iteration writes is a tensor of its own,
   of which lifting makes one array (lift/nest_places.py); or it is the same in all.  A tensor that is read may be
   another one in the first iteration, as the first state of a recurrence is.
3. State and other memory from outside must be one region for all iterations.  Parameters may lie in a region each, such
   as the weights of equal layers, if these have equal sizes: lifting makes one array of them, too.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ...ir.opcodes import CONSTANT, GRADIENT, NEST, PARAMETER, STATE, TENSOR, leaf_index, leaf_kind
from ...ir.trace import NestRecord, Place, Trace


class AlikeNests:
    """Compares the nests of a trace.

    Args:
        trace: any.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._own = [region.base for region in trace.tensors]
        self._leaves = {number for number, region in enumerate(trace.tensors) if region.is_leaf}
        bases = sorted([base for base, _ in trace.bound_storages] + [number for number, _ in trace.new_parameters[:1]])
        self._outside = {PARAMETER: bases, GRADIENT: bases, STATE: sorted(start for start, _ in trace.states)}
        sizes = {base: len(storage) for base, storage in trace.bound_storages if storage.layout is None}
        self._sizes = [sizes.get(base) if trace.has_pointers else None for base in bases]  # of what can be joined
        self._positions = [position for position, code in enumerate(trace.op) if code == NEST] if trace.nests else []

    def forms(self) -> array[int]:
        """For each record a number, which nests that are alike have in common; 0 for other records."""
        numbers: dict[Any, int] = {}
        found = array("i", bytes(4 * len(self._trace)))
        for position in self._positions:
            nest = self._nest(position)
            places = [(*place[1:], leaf_kind(place.leaf)) for place in (*nest.operands, nest.target)]
            key = nest._replace(operands=tuple(places[:-1]), target=places[-1])  # type: ignore[arg-type]
            found[position] = numbers.setdefault(
                position if self._is_apart(nest.target) else key, len(numbers) + 1
            )  # fmt: skip
        return found

    def are_in(self, start: int, end: int) -> bool:
        """Whether there is a nest among these records."""
        first = bisect_right(self._positions, start - 1)
        return first < len(self._positions) and self._positions[first] < end

    def alike(self, start: int, period: int, count: int) -> int:
        """How many iterations (of `count`) from the record `start` on have nests whose places change regularly."""
        first = bisect_right(self._positions, start - 1)
        for position in self._positions[first:]:
            if position >= start + period or count < 2:
                break
            nests = [self._nest(position + k * period) for k in range(count)]
            count = min(count, self._regular([nest.target for nest in nests], is_target=True))
            for number in range(len(nests[0].operands)):
                count = min(count, self._regular([nest.operands[number] for nest in nests[:count]]))
        return count

    def _regular(self, places: Sequence[Place], is_target: bool = False) -> int:
        """How many of these places, from the first one on, are those of a loop."""
        leaves = [place.leaf for place in places]
        if len(leaves) < 2:
            return len(leaves)
        kind = leaf_kind(leaves[0])
        if kind == CONSTANT:
            return len(leaves)  # of which there are tables
        may_differ = kind == TENSOR and not is_target and len(leaves) > 2
        steps = [y - x for x, y in zip(leaves, leaves[1:])]
        expected = steps[1] if may_differ else steps[0]
        count = next((k + 1 for k, step in enumerate(steps) if step != expected and not (k == 0 and may_differ)), None)
        if kind in self._outside and expected:
            leaves = leaves[: self._in_one_array(kind, [leaf_index(leaf) for leaf in leaves])]
        return len(leaves) if count is None else min(count, len(leaves))

    def _in_one_array(self, kind: int, indices: Sequence[int]) -> int:
        """How many elements of memory from outside, from the first one on, are in one region, or in equal ones."""
        bases = self._outside[kind]
        regions = [bisect_right(bases, index) - 1 for index in indices]
        places = [(region, 0) for region in regions]
        if kind != STATE and regions[0] != regions[1] and self._sizes[regions[0]] is not None:
            places = [(self._sizes[region], index - bases[region]) for region, index in zip(regions, indices)]  # type: ignore[misc]
        return next((k for k, place in enumerate(places) if place != places[0]), len(places))

    def _is_apart(self, target: Place) -> bool:
        """Whether nothing is like the nest with this target: tensors of the step that have gradients."""
        return leaf_kind(target.leaf) == TENSOR and bisect_right(self._own, leaf_index(target.leaf)) - 1 in self._leaves

    def _nest(self, position: int) -> NestRecord:
        return self._trace.nests[leaf_index(self._trace.a[position])]
