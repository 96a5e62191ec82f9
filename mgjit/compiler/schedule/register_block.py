"""What an iteration of a sum costs when several vectors and rows of it are computed side by side.

As in R. Whaley, J. Dongarra, "Automatically tuned linear algebra software", SC 1998, with loads, operations and latency
instead of measurements.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.nest import Nest
from ...ir.program import Constant, Loop, Reference, Register, Statement
from ..toolchain.target import Processor
from .plan import LOAD, STRIDED, UNALIGNED, Plan, operation_cost

#: Operations that could be executed between two dependent additions.
_LATENCY = 8.0


class _Counts:
    """What there is once, once for each vector, for each row, and for each of both."""

    def __init__(self) -> None:
        self._weights = [0.0, 0.0, 0.0, 0.0]

    def add(self, by_vector: bool, by_row: bool, weight: float) -> None:
        """Count something."""
        self._weights[by_vector + 2 * by_row] += weight

    def total(self, vectors: int, rows: int) -> float:
        """All of it, with so many vectors and rows."""
        once, by_vector, by_row, by_both = self._weights
        return once + vectors * by_vector + rows * (by_row + vectors * by_both)


class RegisterBlock:
    """The cost of an iteration of the innermost loop, with several vectors and rows side by side."""

    def __init__(self, nest: Nest, plan: Plan, inner: Loop, processor: Processor) -> None:
        members = [s for s, loops in nest.around.items() if self._last(loops, plan) is inner]
        by_vector = nest.varying(plan.vector) if plan.vector else set()
        by_row = nest.varying(plan.rows) if plan.rows else set()
        fused = _fused(members) | {s for s in members if _adds_zero(s)} if processor.fuses else set()
        self.sums, self._registers = 0, processor.registers
        self._operations, self._loads = _Counts(), _Counts()
        for s in members:
            if s not in fused:
                self._operations.add(s in by_vector, s in by_row, operation_cost(s))
        for reference in {use.reference for use in nest.uses if use.statement in members}:
            steps = dict(reference.index.terms)
            if inner not in steps:
                self.sums += any(u.writes and u.reference == reference for u in nest.uses)
                continue
            access = 0.0 if reference in plan.packed else vector_access(reference, plan.vector, processor)
            weight = max(1.0, access * processor.lanes / LOAD)
            self._loads.add(plan.vector in steps, plan.rows in steps, weight)
            if plan.vector is not None and plan.vector not in steps:
                self._operations.add(False, plan.rows in steps, processor.spreading)
        #: The cost of one vector and one row, as it was counted in the cost of the nest.
        self.counted = sum(map(operation_cost, members)) + LOAD * self._loads.total(1, 1)

    @staticmethod
    def _last(loops: tuple[Loop, ...], plan: Plan) -> Loop:
        return [*plan.order, *(loop for loop in loops if loop not in plan.order)][-1]

    def fits(self, vectors: int, rows: int) -> bool:
        """Whether the sums leave registers for what they add: a quarter, or three for a single vector or row."""
        left = self._registers - self._registers * 3 // 4
        if vectors == 1 or rows == 1:
            left = min(left, 3)
        return vectors * rows * max(1, self.sums) <= self._registers - left or vectors == rows == 1

    def cost(self, vectors: int, rows: int) -> float:
        """The longest of loads, operations and waiting for sums, in units of operations."""
        loads, operations = self._loads.total(vectors, rows), self._operations.total(vectors, rows)
        return max(loads, operations, _LATENCY) + 0.2 * loads


def _fused(members: Sequence[Statement]) -> set[Statement]:
    """Products that are used only as a term of a sum."""
    added = {
        part.statement
        for statement in members
        if statement.update and statement.operation in ("add", "subtract")
        for part in statement.operands
        if isinstance(part, Register)
    }
    return {statement for statement in added if statement.operation == "multiply"}


def _adds_zero(statement: Statement) -> bool:
    """Whether it keeps a number, but for the sign of zero, which fast mode ignores."""
    return statement.operation == "add" and not statement.update and Constant(0.0) in statement.operands


def vector_access(reference: Reference, vector: Loop | None, processor: Processor) -> float:
    """The cost of an access for one iteration of the vector loop."""
    steps = dict(reference.index.terms)
    step = 0 if vector is None else steps.pop(vector, 0)
    if step not in (0, 1):
        return STRIDED
    width = processor.lanes if vector is None else min(processor.lanes, vector.count)
    aligned = not step or not (reference.index.base % width or any(c % width for c in steps.values()))
    return (LOAD if aligned else UNALIGNED) / processor.lanes


def steps_of(count: int, width: int) -> list[tuple[int, int]]:
    """`count` split into steps, as (width, how many): whole steps and the remainder."""
    return [(width, count // width)] + ([(count % width, 1)] if count % width else [])
