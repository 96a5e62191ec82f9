"""Find the containers that a step was given again among the arguments of a later call.

A step that returns one of its arguments, or a part of one, must return that very object, not a copy.  Inside a trace,
the containers are stand-ins; `GivenContainers` knows which container of the arguments each of them stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .containers import DataclassNode, MappingNode, SequenceNode
from .inputs import BufferNode, NumbersNode
from .known import AssignedNode, KnownNode
from .node import Node
from .objects import ObjectNode


class GivenPath(NamedTuple):
    """The path to a container in the arguments: which argument, and the elements and attributes that lead to it.

    Attributes:
        argument: the number of the argument.
        steps: (whether it is an attribute, its name, index or key).
    """

    argument: int
    steps: tuple[tuple[bool, Any], ...]

    def find(self, arguments: Sequence[Any]) -> Any:
        """The container in the arguments of a call."""
        found = arguments[self.argument]
        for is_attribute, name in self.steps:
            found = getattr(found, name) if is_attribute else found[name]
        return found

    def expression(self, names: Sequence[str], name_of: Callable[[Any], str]) -> str:
        """Python source of the same, given the names of the arguments."""
        text = names[self.argument]
        for is_attribute, name in self.steps:
            text += f".{name}" if is_attribute else f"[{name_of(name)}]"
        return text


class GivenContainers:
    """The stand-ins of one trace.

    Args:
        nodes: the structure of the arguments. given: the stand-ins that the step gets.
    """

    def __init__(self, nodes: Sequence[Node], given: Sequence[Any]) -> None:
        self._nodes, self._given = nodes, given
        self._paths: dict[int, GivenPath] | None = None

    def path(self, thing: Any) -> GivenPath | None:
        """Where the container lies for which something stands; None when it stands for none."""
        if self._paths is None:
            self._paths = {}
            for number, (node, argument) in enumerate(zip(self._nodes, self._given)):
                self._note(node, argument, GivenPath(number, ()))
        return self._paths.get(id(thing))

    def _note(self, node: Node, thing: Any, path: GivenPath) -> None:
        paths = self._paths
        assert paths is not None
        parts: Sequence[tuple[bool, Any, Any, Node]] = ()
        if isinstance(node, KnownNode):
            node = node.inner
        if isinstance(node, (NumbersNode, BufferNode)):
            paths.setdefault(id(thing), path)
            rows_are_objects = isinstance(node, NumbersNode) or node.dtype is not None
            if rows_are_objects and len(node.shape) > 1:
                self._note_rows(thing, path, len(node.shape) - 1)
        elif isinstance(node, SequenceNode):
            parts = [(False, k, part, inner) for k, (part, inner) in enumerate(zip(thing, node.parts))]
        elif isinstance(node, MappingNode):
            parts = [(False, key, thing[key], inner) for key, inner in node.parts.items()]
        elif isinstance(node, DataclassNode):
            parts = [(True, name, getattr(thing, name), inner) for name, inner in node.parts.items()]
        elif not isinstance(node, (AssignedNode, ObjectNode)):
            return
        paths.setdefault(id(thing), path)
        for is_attribute, name, part, inner in parts:
            self._note(inner, part, GivenPath(path.argument, (*path.steps, (is_attribute, name))))

    def _note_rows(self, rows: Any, path: GivenPath, depth: int) -> None:
        assert self._paths is not None
        for k, row in enumerate(rows):
            inner = GivenPath(path.argument, (*path.steps, (False, k)))
            self._paths.setdefault(id(row), inner)
            if depth > 1:
                self._note_rows(row, inner, depth - 1)
