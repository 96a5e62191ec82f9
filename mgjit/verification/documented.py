"""Documented differences: what a compiled step sees and returns instead of what plain Python would.

1. Instead of numpy's arrays of floats of fewer bits, and its scalars other than float64, a step sees plain ints and
   floats; in a list that mixes ints and floats, it sees floats.  In other precisions, arrays of ints are like those.
2. Where plain Python returns a Value, a compiled step returns a float that has `.data`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..base.lookup import has
from ..engine.precision import FLOAT64
from ..engine.value import Value
from ..tensor.tensor import Tensor
from ..tracing.call.containers import MappingNode, SequenceNode
from ..tracing.call.inputs import BufferNode, NumberNode, NumbersNode
from ..tracing.call.node import Node
from ..tracing.call.plan import ArgumentPlan
from ..tracing.call.results import Result
from ..tracing.call.stand_ins import is_rebuilt, sequence


class Seen:
    """The arguments for plain Python.

    Args:
        plan: their structure. arguments: the caller's.

    Attributes:
        arguments: the caller's own objects, wherever possible.
    """

    def __init__(self, plan: ArgumentPlan, arguments: Sequence[Any]) -> None:
        self._precision = plan.precision
        self._arrays: list[tuple[Any, Any]] = []
        #: By the id of what is passed instead, which is kept, so that nothing else gets this id.
        self._given: dict[int, tuple[Any, Any]] = {}
        self.arguments = [self._seen(node, argument) for node, argument in zip(plan.nodes, arguments)]

    def write_back(self) -> None:
        """Copy to the caller's arrays what was assigned to those passed instead."""
        for given, seen in self._arrays:
            if given.flags.writeable and (given.astype(object) != seen).any():
                given[...] = seen

    def as_given(self, result: Any) -> Any:
        """A result with the caller's own lists and arrays in place of those that were passed instead."""
        if not self._given:
            return result
        if id(result) in self._given:
            return self._given[id(result)][0]
        parts = result.values() if type(result) is dict else result if is_rebuilt(result) and _is_row(result) else ()
        found = list(map(self.as_given, parts))
        if all(map(operator.is_, parts, found)):
            return result
        if type(result) is dict:
            return dict(zip(result, found))
        return sequence(type(result), found)

    def _seen(self, node: Node, argument: Any) -> Any:
        if isinstance(node, NumberNode):
            return argument.item() if has(argument, "item") and node.is_plain else argument
        if isinstance(node, NumbersNode):
            return argument if node.integer or node.whole or not node.is_plain else self._as_floats(argument)
        is_array = isinstance(node, BufferNode) and node.dtype is not None and not node.are_numpys
        if is_array and (node.format == "f" or self._precision is not FLOAT64):  # type: ignore[attr-defined]
            seen = self._instead_of(argument, argument.astype(object))
            self._arrays.append((argument, seen))
            return seen
        if isinstance(node, SequenceNode) and type(argument) in (list, tuple):
            return self._rebuilt(argument, map(self._seen, node.parts, argument), type(argument))
        if isinstance(node, MappingNode):
            parts = [self._seen(part, argument[key]) for key, part in node.parts.items()]
            return self._rebuilt(argument, parts, lambda parts: dict(zip(argument, parts)))
        return argument

    def _as_floats(self, numbers: Any) -> Any:
        """The same with floats instead of ints and numpy's numbers; the object itself if there are none."""
        parts = [
            self._as_floats(part) if type(part) in (list, tuple) else part if type(part) is float else float(part)
            for part in numbers
        ]
        return self._rebuilt(numbers, parts, type(numbers))

    def _rebuilt(self, given: Any, parts: Iterable[Any], make: Callable[[list[Any]], Any]) -> Any:
        own, parts = given.values() if isinstance(given, dict) else given, list(parts)
        return given if all(map(operator.is_, own, parts)) else self._instead_of(given, make(parts))

    def _instead_of(self, given: Any, seen: Any) -> Any:
        self._given[id(seen)] = given, seen
        return seen


def as_returned(result: Any, of_values: bool = True) -> Any:
    """What a compiled step returns where plain Python has returned `result`.

    Args:
        of_values: whether Values are floats then, as of a kernel.
    """
    try:
        return _as_returned(result, of_values)
    except RecursionError:  # it contains itself
        return result


def _as_returned(result: Any, of_values: bool) -> Any:
    if isinstance(result, Tensor):
        return result.detach() if result.requires_grad and not result.is_leaf else result
    if isinstance(result, Value):
        return Result(result.data) if of_values else result
    if type(result) is not dict and not (_is_row(result) and is_rebuilt(result)):
        return result
    parts = list(result.values() if type(result) is dict else result)
    found = [_as_returned(part, of_values) for part in parts]
    if all(map(operator.is_, parts, found)):
        return result
    return dict(zip(result, found)) if type(result) is dict else sequence(type(result), found)


def _is_row(thing: Any) -> bool:
    return isinstance(thing, (list, tuple))
