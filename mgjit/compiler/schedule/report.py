"""How each nest was scheduled, in words, for `explain()`.

forward: 100 x 16 (16) into r6, t7: 8 lanes along the loop of 16, 2 vectors x 10 rows at a time, packed: p0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...ir.dependence import independent
from ...ir.nest import Nest, band
from ...ir.program import Array, Loop, Statement, arrays_written, statements
from ..toolchain.target import Processor
from .cost import Plan


@dataclass
class Scheduled:
    """How a nest is executed.

    Attributes:
        shape: the counts of its loops.
        written: the arrays that it writes.
        how: in lanes, rows, or why not.
        packed: arrays of which it reads packed copies.
        phase: of the step.
        members: the statements that it became.
    """

    shape: str
    written: list[Array]
    how: str
    packed: list[Array]
    phase: str = ""
    members: list[Statement] = field(default_factory=list, repr=False)

    def __str__(self) -> str:
        names = ", ".join(array.name for array in self.written[:3]) + (" ..." if len(self.written) > 3 else "")
        return f"{self.phase}: {self.shape} into {names}: {self.method()}"

    def method(self, name: Callable[[Array], str] = lambda array: array.name) -> str:
        """How it is executed, with the names of the packed arrays."""
        return self.how + (f", packed: {', '.join(dict.fromkeys(map(name, self.packed)))}" if self.packed else "")


def describe(loop: Loop, nest: Nest | None, plan: Plan | None, processor: Processor) -> Scheduled:
    """How a nest is executed."""
    loops = band(loop)
    inner = sorted({one.count for one in _below(loops[-1])}, reverse=True)
    shape = " x ".join(str(one.count) for one in loops) + (f" ({', '.join(map(str, inner))})" if inner else "")
    written = list(dict.fromkeys(array for s in statements(loop.body) for array in arrays_written(s)))
    packed = [] if plan is None else list(dict.fromkeys(reference.array for reference in plan.packed))
    return Scheduled(shape, written, _how(loop, nest, plan, processor), packed)


def _below(loop: Loop) -> list[Loop]:
    found: list[Loop] = []
    for node in loop.body:
        if isinstance(node, Loop):
            found += [node, *_below(node)]
    return found


def _how(loop: Loop, nest: Nest | None, plan: Plan | None, processor: Processor) -> str:
    if plan is None or plan.vector is None:
        reason = f"not vectorised, {_why_not(loop, nest, processor)}"
        return reason if plan is None or plan.rows is None else f"{plan.row_count} rows at a time, {reason}"
    lanes = min(processor.lanes, plan.vector.count)
    words = [f"{lanes} lanes along the loop of {plan.vector.count}"]
    if plan.vectors > 1 or plan.row_count > 1:
        rows = f" x {plan.row_count} rows" if plan.row_count > 1 else ""
        words.append(f"{plan.vectors} vector{'s' if plan.vectors > 1 else ''}{rows} at a time")
    if plan.padded:
        words.append("rows padded")
    return ", ".join(words)


def _why_not(loop: Loop, nest: Nest | None, processor: Processor) -> str:
    if processor.lanes == 1:
        return "the compiler knows no vectors"
    if nest is None:
        return "it writes where only a table knows, or is cut into functions"
    free = [one for one in nest.band if independent(one, [loop])]
    if not free:
        return "iterations depend on each other"
    if all(one in nest.fixed for one in free):
        return "its first iteration or a table makes a difference"
    return "single elements cost less than vectors of separate ones"
