"""The contents of traced arguments before and after a trace, which show what the step has changed in place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import is_
from typing import Any

from ...engine.leaks import Traced
from ..surroundings.shapes import attributes
from .containers import DataclassNode, MappingNode, SequenceNode
from .inputs import NumbersNode
from .known import KnownNode, StaticNode
from .node import Node
from .stand_ins import elements, is_frozen, is_rebuilt


class Numbers:
    """The elements of a list of traced numbers: equal to others that are the same objects."""

    __slots__ = ("things",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, things: Sequence[Any]) -> None:
        self.things = tuple(things)

    def __len__(self) -> int:
        return len(self.things)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Numbers) and len(self) == len(other) and all(map(is_, self.things, other.things))


class Identity:
    """Equal to another one of the same object."""

    __slots__ = ("_thing",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self._thing is other._thing


def contents(argument: Any) -> Any:
    """The contents of a traced argument, to check whether the step has changed it in place."""
    kind = type(argument)
    if kind in (list, tuple):
        if argument and all(issubclass(kind, Traced) for kind in set(map(type, argument))):
            return Numbers(argument)
        return tuple(map(contents, argument))
    if kind is dict:
        return tuple((Identity(key), contents(part)) for key, part in argument.items())
    if not is_rebuilt(argument):
        return Identity(argument)
    if isinstance(argument, (list, tuple)):
        return tuple(map(contents, elements(argument)))
    return tuple((name, contents(part)) for name, part in attributes(argument).items())


def changes(node: Node, path: str, before: Any, argument: Any) -> Iterator[str]:
    """The paths of the containers that the step has changed in place, among those that stand for parts of an argument.

    Of a list it is the list itself, whatever in it has changed; of what cannot be changed, the part in it that has.

    Args:
        before: the contents of the traced argument before the step.
    """
    if isinstance(node, KnownNode):
        node = node.inner
    if not isinstance(node, _STAND_INS) or before == contents(argument):
        return
    if isinstance(argument, tuple):
        parts = elements(argument)
        nodes = node.parts if isinstance(node, SequenceNode) else [node] * len(parts)
        steps = [f"[{k}]" for k in range(len(parts))]
    elif isinstance(node, DataclassNode) and is_frozen(node.kind) and len(before) == len(attributes(argument)):
        parts, before = list(attributes(argument).values()), [part for _, part in before]
        nodes, steps = list(node.parts.values()), [f".{name}" for name in node.parts]
        if any(map(_is_replaced, nodes, before, parts)):
            yield path
            return
    else:
        yield path
        return
    for inner, step, old, part in zip(nodes, steps, before, parts):
        yield from changes(inner, path + step, old, part)


def _is_replaced(node: Node, before: Any, part: Any) -> bool:
    """Whether something else lies where the argument had what has no stand-in of its own."""
    if isinstance(node, StaticNode):
        return part is not node.argument
    return not isinstance(node, (KnownNode, *_STAND_INS)) and bool(before != contents(part))


_STAND_INS = (NumbersNode, SequenceNode, MappingNode, DataclassNode)


def has_grown(before: Any, after: Any) -> bool:
    """Whether a container among the `contents` of an argument has another length, or other keys, than before."""
    if not isinstance(before, (tuple, Numbers)) or not isinstance(after, (tuple, Numbers)):
        return False
    if len(before) != len(after):
        return True
    return isinstance(before, tuple) and isinstance(after, tuple) and any(map(has_grown, before, after))
