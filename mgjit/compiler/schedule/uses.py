"""What the plans of a nest (schedule/cost.py) need to know of its accesses, found out once for all of them."""

from __future__ import annotations

from ...base.cached import cached_property
from ...ir.nest import Nest, loops_of, work
from ...ir.program import Loop
from ..toolchain.target import Processor
from .pack import can_be_packed
from .plan import Plan
from .register_block import vector_access


class Uses:
    """The accesses of a nest; lists are in their order.

    Args:
        nest: to be executed.
        processor: to plan for.
    """

    def __init__(self, nest: Nest, processor: Processor) -> None:
        self.nest, self._processor = nest, processor
        self._depends = [loops_of(use.reference.index) for use in nest.uses]
        self._costs: dict[Loop | None, list[float]] = {}

    @cached_property
    def packable(self) -> list[bool]:
        """Which of them can be packed."""
        written = {use.reference.array for use in self.nest.uses if use.writes}
        return [can_be_packed(use, self.nest, written) for use in self.nest.uses]

    def costs(self, vector: Loop | None) -> list[float]:
        """What each costs for one iteration of a vector loop."""
        if vector not in self._costs:
            uses = self.nest.uses
            self._costs[vector] = [vector_access(use.reference, vector, self._processor) for use in uses]
        return self._costs[vector]

    def times(self, plan: Plan) -> list[float]:
        """How often each is executed, if it is moved out of the innermost loops that it does not depend on."""
        found, orders = [], {}
        for use, depends in zip(self.nest.uses, self._depends):
            if use.loops not in orders:
                loops = [*plan.order, *(loop for loop in use.loops if loop not in plan.order)]
                orders[use.loops] = loops, [work(loops[:count]) for count in range(len(loops) + 1)]
            loops, works = orders[use.loops]
            count = len(loops)
            while count and loops[count - 1] not in depends and loops[count - 1] is not plan.vector:
                count -= 1
            found.append(works[count])
        return found
