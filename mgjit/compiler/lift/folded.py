"""A rolled trace that can be lifted again, with another layout of what is new in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.opcodes import BACKWARD, NEST
from ...ir.parameters import NATURAL, Layouts, ParameterLayout
from ...ir.program import Program
from ...ir.trace import InputRegion, Trace
from ..roll.forest import Item, leaves
from ..roll.reach import Reach
from .layout import OF_STATE, cut_at_blocks, cut_at_gaps
from .lift import Guide, lift
from .memory import Memory


class Folded:
    """A rolled trace, which can be lifted again with another layout of its new parameters.

    Args:
        trace: of a step.
        inputs: the memory of its arguments.
        reached: what its backward passes reach.
        forest: the trace, rolled.
    """

    def __init__(self, trace: Trace, inputs: Sequence[InputRegion], reached: Reach, forest: Sequence[Item]) -> None:
        self.trace, self.inputs, self.reached = trace, inputs, reached
        #: The loops, of those over parameters each over one storage.
        self.natural_forest = cut_at_gaps(forest, trace)
        self.forest = self.natural_forest
        for base, size, layout in self.bound_storages:
            if layout is not None:
                self.forest = cut_at_blocks(self.forest, trace, layout, base, size)
        for start, state in trace.states:
            if state._layout is not None:
                self.forest = cut_at_blocks(self.forest, trace, state._layout, start, len(state), OF_STATE)

    def lifted(
        self,
        layouts: Layouts = NATURAL,
        hole: int | None = None,
        wanted: Callable[[int], bool] | None = None,
        guide: Guide | None = None,
    ) -> tuple[Program, Memory]:
        """A Program, and the memory it works on; see `lift` for the others."""
        forest, memory = self.forest, Memory(self.trace, self.inputs, layouts)
        if layouts.parameters is not None:
            forest = cut_at_blocks(forest, self.trace, layouts.parameters, *self.new_parameters)
        for region, layout in layouts.states.items():
            start, state = self.trace.states[region]
            forest = cut_at_blocks(forest, self.trace, layout, start, len(state), OF_STATE)
        return lift(self.trace, forest, memory, self.reached, hole, wanted, guide), memory

    def places(self) -> list[int]:
        """The position of the first iteration of each statement, in the order of the Program."""
        found = leaves(self.forest)
        return [position for position in found if self.trace.op[position] not in (BACKWARD, NEST)]

    @property
    def bound_storages(self) -> list[tuple[int, int, ParameterLayout | None]]:
        """For each storage of another kernel its first number, its size and its layout."""
        return [(base, len(storage), storage.layout) for base, storage in self.trace.bound_storages]

    @property
    def new_parameters(self) -> tuple[int, int]:
        """The number of the first new parameter, and how many there are."""
        first, last = self.trace.new_parameters[0][0], self.trace.new_parameters[-1][0]
        return first, last - first + 1
