"""The memory map of a kernel: which array each leaf of the trace lives in.

The indices of each kind of leaf are divided into regions: every ParameterStorage, State and argument buffer is one
region, and one array of the Program.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from ...ir.opcodes import GRADIENT, INPUT, LOCAL, LOCAL_GRADIENT, OUTPUT, PARAMETER, STATE, TENSOR, TENSOR_GRADIENT
from ...ir.parameters import NATURAL, Layouts, ParameterLayout
from ...ir.program import Array, Joined
from ...ir.trace import InputRegion, Trace


class Memory:
    """The arrays behind the leaves of one trace.

    Args:
        trace: its parameters, states and outputs give the regions.
        inputs: the regions of the arguments, in order.
        layouts: the places of the new parameters and state.
    """

    def __init__(self, trace: Trace, inputs: Sequence[InputRegion], layouts: Layouts = NATURAL) -> None:
        parameters = []
        if trace.new_parameters:
            first, last = trace.new_parameters[0][0], trace.new_parameters[-1][0]
            parameters.append((first, last - first + 1))
        parameters += [(base, len(storage)) for base, storage in trace.bound_storages]
        self.layouts = layouts
        of_parameters = [layouts.parameters] if trace.new_parameters else []
        of_parameters += [storage.layout for _, storage in trace.bound_storages]
        of_states = [layouts.states.get(region, state._layout) for region, (_, state) in enumerate(trace.states)]
        self._layouts = {"parameter": of_parameters, "gradient": of_parameters, "state": of_states}
        states = [(start, len(state)) for start, state in trace.states]
        tensors = _arrays("b", "scratch", [(base, size) for base, size, _ in trace.tensors])
        leaves = [one for one, region in zip(tensors, trace.tensors) if region.is_leaf]
        gradients = [(base, Array(f"{array.name}g", "scratch", array.size)) for base, array in leaves]
        self.regions: dict[int, list[tuple[int, Array]]] = {
            PARAMETER: self._laid_out("p", "parameter", parameters),
            GRADIENT: self._laid_out("g", "gradient", parameters),
            STATE: self._laid_out("s", "state", states),
            INPUT: [
                (region.start, Array(f"x{number}", "input", region.size, number, region.format))
                for number, region in enumerate(inputs)
            ],
            OUTPUT: [(0, Array("y", "output", trace.outputs))],
            LOCAL: [(0, Array("v", "scratch", trace.locals))],
            LOCAL_GRADIENT: [(0, Array("vg", "scratch", trace.locals))],
            TENSOR: tensors,
            TENSOR_GRADIENT: gradients,
        }
        self._gradients = {
            id(data): gradient
            for kind, other in ((PARAMETER, GRADIENT), (LOCAL, LOCAL_GRADIENT))
            for (_, data), (_, gradient) in zip(self.regions[kind], self.regions[other])
        }
        self._gradients.update((id(data), gradient) for (_, data), (_, gradient) in zip(leaves, gradients))
        self.adjoint_reads: dict[tuple[Array, int], Array] = {}
        #: By kind and base: the places of what has been joined in the arrays.
        self._offsets: dict[tuple[int, int], int] = {}

    def join_tensors(self, groups: Sequence[Sequence[int]]) -> None:
        """Let tensors be one array, one after the other.

        Args:
            groups: the numbers of the tensors of each such array.
        """
        tensors = self.regions[TENSOR]
        for group in groups:
            array = Array(tensors[group[0]][1].name, "scratch", 0)
            for number in group:
                base, own = tensors[number]
                self._offsets[TENSOR, base] = array.size
                array.size += own.size
                tensors[number] = base, array

    def join_parameters(self, groups: Sequence[Sequence[int]]) -> None:
        """Let parameters, and their gradients, of several regions be one array.

        Args:
            groups: the numbers of the regions of each such array, which have equal sizes.
        """
        for group in groups:
            arrays = []
            for kind in (PARAMETER, GRADIENT):
                first = self.regions[kind][group[0]][1]
                joined = Joined(tuple(group), first.size)
                array = Array(first.name, first.space, joined.pitch * len(group), first.region)
                array.joined = joined
                for member, number in enumerate(group):
                    base, own = self.regions[kind][number]
                    self._gradients.pop(id(own), None)
                    self._offsets[kind, base] = joined.pitch * member
                    self.regions[kind][number] = base, array
                arrays.append(array)
            self._gradients[id(arrays[0])] = arrays[1]

    def bases_of_parameters(self) -> list[int]:
        """Where the regions of parameters begin."""
        return [base for base, _ in self.regions[PARAMETER]]

    def _laid_out(self, name: str, space: str, regions: Sequence[tuple[int, int]]) -> list[tuple[int, Array]]:
        arrays = _arrays(name, space, regions)
        for (_, array), layout in zip(arrays, self._layouts[space]):
            if layout is not None:
                array.size, array.padded_rows = layout.size, layout.padded_rows()
        return arrays

    def place(self, kind: int, low: int, high: int) -> tuple[Array, int] | None:
        """The array that holds the leaves `low .. high`, and its first index; None if there are several."""
        regions = self.regions[kind]
        position = bisect_right([start for start, _ in regions], low) - 1
        start, array = regions[position]
        end = regions[position + 1][0] if position + 1 < len(regions) else high + 1
        if high >= end:
            return None
        return array, start - self._offsets.get((kind, start), 0)

    def layout_of(self, array: Array) -> ParameterLayout | None:
        """Where the elements of an array of parameters, gradients or state lie; None for their natural order."""
        return self._layouts[array.space][array.region] if array.space in self._layouts else None

    def gradient(self, array: Array) -> Array | None:
        """The array of the gradients of a parameter array (or of the Values made in the step)."""
        return self._gradients.get(id(array))

    def adjoint(self, result: Array, number: int) -> Array:
        """A placeholder for the adjoints of `result` after `number` backward passes, until differentiation."""
        key = result, number
        if key not in self.adjoint_reads:
            self.adjoint_reads[key] = Array(f"d_{result.name}_{number}", "adjoint", result.size, number)
        return self.adjoint_reads[key]


def _arrays(name: str, space: str, regions: Sequence[tuple[int, int]]) -> list[tuple[int, Array]]:
    return [(start, Array(f"{name}{number}", space, size, number)) for number, (start, size) in enumerate(regions)]
