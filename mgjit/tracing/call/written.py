"""Elements of buffers among the arguments that a step assigns: outputs of its kernel, written after each call.

1. After the trace, `record_writes` makes each assigned element an output.
2. Before a call, `Writes.check` checks that the buffers of this call can be written like those of the trace: that they
   are not read-only, and do not share memory with another argument or an object around the step.  Otherwise the call
   runs as plain Python.
3. After the kernel has run, `Writes.show` writes the numbers into the buffers; a run of neighbours is one copy.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import FunctionType, ModuleType
from typing import Any

from ...engine.leaks import PlainCall
from .inputs import BufferNode, root_of
from .node import Frame


@dataclass(frozen=True)
class _Run:
    """Consecutive elements of a buffer that are also consecutive outputs."""

    region: int
    position: int
    output: int
    count: int
    integers: bool


#: How deep views are searched for in the objects around a step.
_DEPTH = 4
_OPAQUE = (ModuleType, FunctionType, type, str, float, int)


class Writes:
    """The writes of one kernel into the buffers among its arguments.

    Args:
        nodes: of the buffers.
        assigned: (number of the buffer, position, whether it is an int), in the order of the outputs.
        first_output: where they begin.
        captured: identities of objects that the step reaches in other ways than by its arguments.
    """

    def __init__(
        self,
        nodes: Sequence[BufferNode],
        assigned: Sequence[tuple[int, int, bool]],
        first_output: int,
        captured: Collection[int],
    ) -> None:
        self._nodes, self._captured = nodes, captured
        self._regions = sorted({region for region, _, _ in assigned})
        self._runs: list[_Run] = []
        numbered = [(region, position - k, k, position, whole) for k, (region, position, whole) in enumerate(assigned)]
        for (region, _, whole), group in groupby(numbered, lambda one: (one[0], one[1], one[4])):
            found = list(group)
            _, _, k, position, _ = found[0]
            self._runs.append(_Run(region, position, first_output + k, len(found), whole))

    def __bool__(self) -> bool:
        return bool(self._runs)

    def path(self) -> str:
        """The first argument that is written."""
        return self._nodes[self._regions[0]].path

    def check(self, frame: Frame) -> None:
        """Check that the buffers in a frame can be written.

        Raises:
            PlainCall: they cannot, so the call must run as plain Python.
        """
        if not self._runs:
            return
        roots = [root_of(given) for given in frame.given]
        for region in self._regions:
            path, given = self._nodes[region].path, frame.given[region]
            if memoryview(given).readonly:
                raise PlainCall(f"the step assigns elements of argument {path}, which is read-only")
            if id(given) in self._captured or id(roots[region]) in self._captured:
                raise PlainCall(f"the step assigns elements of argument {path}, which it also reaches in another way")
            for other, root in enumerate(roots):
                if other != region and root is roots[region] and _may_overlap(given, frame.given[other]):
                    raise PlainCall(f"arguments {path} and {self._nodes[other].path} are parts of one buffer")

    def show(self, frame: Frame, outputs: Any) -> None:
        """Write the numbers that the kernel has computed; may be repeated."""
        for run in self._runs:
            node, given = self._nodes[run.region], frame.given[run.region]
            numbers = memoryview(outputs)[run.output : run.output + run.count]
            view = memoryview(given)
            if view.c_contiguous and node.format == numbers.format == "d":
                flat = view if view.ndim == 1 and view.format == "d" else view.cast("B").cast("d")
                flat[run.position : run.position + run.count] = numbers
                continue
            for k, number in enumerate(numbers.tolist(), run.position):
                given[node.index_of(k)] = int(number) if run.integers and number - number == 0.0 else number


def record_writes(
    elements: Sequence[Any], output: Callable[[Any], int], first_output: int, nodes: Sequence[BufferNode],
    captured: Collection[int], reachable: Iterable[Any],
) -> Writes:  # fmt: skip
    """Make outputs of the elements that a step has assigned.

    Args:
        elements: of each buffer, an `Elements` or None for one that cannot be assigned.
        output: records a number as the next output.
        captured: identities of what the step reaches by another way than its arguments.
        reachable: objects that it reaches so; arrays in them may be views of the memory of an argument.
    """
    assigned = []
    for region, held in enumerate(elements):
        for position, number in held.assigned() if held is not None else ():
            output(number)
            assigned.append((region, position, isinstance(number, int)))
    if not assigned:
        return Writes(nodes, (), first_output, ())
    return Writes(nodes, assigned, first_output, {*captured, *(id(root_of(view)) for view in _views(reachable))})


def _views(things: Iterable[Any]) -> Iterator[Any]:
    """The arrays in objects that are views of other memory."""
    level = list(things)
    seen: set[int] = set()
    for _ in range(_DEPTH):
        new = [thing for thing in level if id(thing) not in seen and not isinstance(thing, _OPAQUE)]
        seen.update(map(id, new))
        yield from (thing for thing in new if _is_view(thing))
        level = gc.get_referents(*new)


def _is_view(thing: Any) -> bool:
    return type(thing) is memoryview or (type(thing).__module__ == "numpy" and hasattr(thing, "base"))


def _may_overlap(one: Any, other: Any) -> bool:
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(one, numpy.ndarray) or not isinstance(other, numpy.ndarray):
        return True
    return bool(numpy.may_share_memory(one, other))
