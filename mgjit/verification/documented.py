"""Documented differences: what a compiled step sees and returns instead of what plain Python would.

1. Instead of numpy's arrays and scalars, a step sees plain ints and floats; in a list that mixes ints and floats, it
   sees floats.
2. Where plain Python returns a Value, a compiled step returns a float that has `.data`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..call.arguments import BufferNode, MappingNode, Node, NumberNode, NumbersNode, SequenceNode
from ..call.plan import ArgumentPlan
from ..call.results import Result
from ..engine.value import Value
from ..lookup import has


class Seen:
    """The arguments for plain Python.

    Attributes:
        arguments: the caller's own objects, wherever possible.
    """

    def __init__(self) -> None:
        self.arguments: list[Any] = []
        self._instead: list[tuple[Any, Any]] = []

    def instead_of(self, given: Any, seen: Any) -> Any:
        """Note an array that is passed instead of the caller's."""
        self._instead.append((given, seen))
        return seen

    def write_back(self) -> None:
        """Copy to the caller's arrays what was assigned to those passed instead."""
        for given, seen in self._instead:
            if given.flags.writeable and (given.astype(object) != seen).any():
                given[...] = seen


def as_documented(plan: ArgumentPlan, arguments: Sequence[Any]) -> Seen:
    """The arguments of a call as the step is meant to see them."""
    seen = Seen()
    seen.arguments = [_seen(node, argument, seen) for node, argument in zip(plan.nodes, arguments)]
    return seen


def _seen(node: Node, argument: Any, seen: Seen) -> Any:
    if isinstance(node, NumberNode):
        return argument.item() if has(argument, "item") else argument
    if isinstance(node, NumbersNode):
        return argument if node.integer else _as_floats(argument)
    if isinstance(node, BufferNode) and node.dtype is not None:
        return seen.instead_of(argument, argument.astype(object))
    if isinstance(node, SequenceNode) and type(argument) in (list, tuple):
        return _rebuilt(argument, [_seen(part, a, seen) for part, a in zip(node.parts, argument)], type(argument))
    if isinstance(node, MappingNode):
        parts = [_seen(part, argument[key], seen) for key, part in node.parts.items()]
        return _rebuilt(argument, parts, lambda parts: dict(zip(argument, parts)))
    return argument


def _as_floats(numbers: Any) -> Any:
    """The same with floats instead of ints and numpy's numbers; the object itself if there are none."""
    parts = [
        _as_floats(part) if type(part) in (list, tuple) else part if type(part) is float else float(part)
        for part in numbers
    ]
    return _rebuilt(numbers, parts, type(numbers))


def _rebuilt(given: Any, parts: list[Any], make: Callable[[list[Any]], Any]) -> Any:
    own = given.values() if isinstance(given, dict) else given
    return given if all(map(_is, own, parts)) else make(parts)


def _is(one: Any, other: Any) -> bool:
    return one is other


def as_returned(result: Any) -> Any:
    """What a compiled step returns where plain Python has returned `result`."""
    if isinstance(result, Value):
        return Result(result.data)
    if type(result) in (list, tuple):
        return type(result)([as_returned(part) for part in result])
    if isinstance(result, tuple) and has(result, "_fields"):
        return type(result)(*map(as_returned, result))
    if type(result) is dict:
        return {key: as_returned(part) for key, part in result.items()}
    return result
