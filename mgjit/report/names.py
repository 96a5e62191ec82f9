"""Arrays by the names that the user knows, instead of `p0`, `g0` and `t17`.

What belongs to the user has a name of its own: parameters, arguments, state.  What the step computes in between is
called after the variable that the user's line assigns, or else after the line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..ir.program import Array, Origin, Program, arrays_written
from ..ir.rewrite import with_surroundings
from ..tracing.call.plan import ArgumentPlan
from ..tracing.tracer.knowledge import HeapPlan
from .source import Function, Sources

_ASSIGNED = re.compile(r"\s*([A-Za-z_][\w.]*(?:\[[^\]]*\])?)\s*(?:[-+*/]|\*\*|//)?=(?!=)")


class Names:
    """The names of the arrays of one Program.

    Args:
        plan: of the arguments.
        heap: what became of the numbers in the user's objects.
        sources: the user's functions.
        program: lowered from the trace.
    """

    def __init__(self, plan: ArgumentPlan, heap: HeapPlan, sources: Sources, program: Program) -> None:
        self._sources = sources
        self._arguments = _packed(plan)
        self._buffers = [buffer.path for buffer in plan.buffers]
        state = list(dict.fromkeys(copied.place.describe() for copied in heap.copied))
        self._state = ", ".join(state[:2]) + (" ..." if len(state) > 2 else "") if state else "state"
        self._computed: dict[Array, Origin] = {}
        for _, nodes in program.phases:
            for statement, _ in with_surroundings(nodes):
                for array in arrays_written(statement):
                    self._computed.setdefault(array, statement.origin)

    def of(self, array: Array) -> str:
        """The name of an array."""
        if array.space == "parameter":
            return "parameters"
        if array.space == "gradient":
            return "gradients"
        if array.space == "state":
            return self._state
        if array.space == "input":
            region = array.region - 1
            return self._arguments if region < 0 else self._buffers[region] if region < len(self._buffers) else "draws"
        if array.space == "output":
            return "the result"
        if array.space == "constant":
            return "constants"
        return self.of_origin(self._computed.get(array))

    def of_origin(self, origin: Origin | None) -> str:
        """What is computed there."""
        if origin is None or not origin.sites:
            return "a temporary"
        site = max(origin.sites, key=lambda number: origin.sites[number])
        line = self._sources.lines_of(site).get(0)
        if line is None:
            return "a temporary"
        variable = assigned_at(self._sources.functions[0], line)
        name = variable or f"line {line}"
        return f"gradient of {name}" if origin.is_gradient else name


def assigned_at(function: Function, line: int) -> str:
    """The variable that a line assigns; empty if it does something else."""
    number = line - function.first
    found = _ASSIGNED.match(function.lines[number]) if 0 <= number < len(function.lines) else None
    return found.group(1) if found else ""


def _packed(plan: ArgumentPlan) -> str:
    """The arguments whose numbers are copied for a call."""
    buffers = {re.split(r"[.\[]", buffer.path)[0] for buffer in plan.buffers}
    names = [name for name, node in zip(plan.names, plan.nodes) if node.identified < 0 and name not in buffers]
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "") if names else "arguments"


def of_spaces(sizes: Mapping[str, int]) -> list[tuple[str, int]]:
    """The kinds of memory that a step has, in the words of a report, with their sizes."""
    words = {
        "parameter": "parameters", "gradient": "gradients", "state": "state", "input": "arguments",
        "output": "results", "scratch": "scratch", "constant": "constants", "table": "index tables",
    }  # fmt: skip
    return [(word, sizes[space]) for space, word in words.items() if sizes.get(space)]
