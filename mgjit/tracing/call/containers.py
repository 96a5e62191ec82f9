"""The containers among the arguments: lists, tuples, dicts and dataclasses of further parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...base.lookup import variables
from ...memory.live import has_dict
from ..surroundings.shapes import attributes
from .exact import exact_keys
from .node import Frame, MakeNumber, Node, grouped
from .stand_ins import elements, instance, is_rebuilt, sequence


class SequenceNode(Node):
    """A list or tuple, of any class that has stand-ins, of nodes.

    Attributes:
        may_have_attributes: whether others of its class may have attributes, and then are known by their identity.
    """

    def __init__(self, kind: type, parts: list[Node]) -> None:
        self.kind, self.parts = kind, parts
        self.may_have_attributes = has_dict(kind)
        self.key = kind.__name__ if kind in (list, tuple) else kind, tuple([part.key for part in parts])
        self.identified = sum([part.identified for part in parts])

    def pack(self, argument: Any, frame: Frame) -> bool:
        if type(argument) is not self.kind or len(argument) != len(self.parts):  # type: ignore[arg-type]
            return False
        if self.may_have_attributes and not is_rebuilt(argument):
            return False
        return all(part.pack(element, frame) for part, element in zip(self.parts, elements(argument)))

    def containers(self, argument: Any) -> Iterator[tuple[int, str]]:
        yield id(argument), ""
        for part, element in zip(self.parts, elements(argument)):
            yield from part.containers(element)

    def traced(self, make: MakeNumber) -> Any:
        return sequence(self.kind, [part.traced(make) for part in self.parts])

    def children(self) -> Sequence[tuple[str, Node]]:
        return [(f"[{index}]", part) for index, part in enumerate(self.parts)]

    def describe(self) -> str:
        return f"{self.kind.__name__} of length {len(self.parts)}"

    def outline(self) -> str:
        inside = grouped(self.children())
        if self.kind is list:
            return f"[{inside}]"
        return f"({inside})" if self.kind is tuple else f"{self.kind.__name__}({inside})"


class MappingNode(Node):
    """A dict of nodes; the keys are static."""

    def __init__(self, parts: dict[Any, Node]) -> None:
        self.parts = parts
        self.keys = exact_keys(parts)
        self._has_names = set(map(type, parts)) <= {str}
        self.key = "dict", tuple(zip(self.keys, (part.key for part in parts.values())))
        self.identified = sum(part.identified for part in parts.values())

    def pack(self, argument: Any, frame: Frame) -> bool:
        if type(argument) is not dict or not self._has_keys(argument):
            return False
        return all(part.pack(element, frame) for part, element in zip(self.parts.values(), argument.values()))

    def containers(self, argument: Any) -> Iterator[tuple[int, str]]:
        yield id(argument), ""
        for part, element in zip(self.parts.values(), argument.values()):
            yield from part.containers(element)

    def _has_keys(self, argument: dict[Any, Any]) -> bool:
        if self._has_names:
            return list(argument) == list(self.parts) and set(map(type, argument)) <= {str}
        return exact_keys(argument) == self.keys

    def traced(self, make: MakeNumber) -> Any:
        return {key: part.traced(make) for key, part in self.parts.items()}

    def children(self) -> Sequence[tuple[str, Node]]:
        return [(f"[{key!r}]", part) for key, part in self.parts.items()]

    def describe(self) -> str:
        return f"dict with keys {list(self.parts)}"

    def outline(self) -> str:
        return f"{{{grouped(self.children())}}}"


class DataclassNode(Node):
    """A dataclass instance: its fields, and its other attributes."""

    def __init__(self, example: Any, parts: dict[str, Node]) -> None:
        self.kind, self.parts = type(example), parts
        self.example, self._names = example, list(parts)
        self.key = self.kind, tuple((name, part.key) for name, part in parts.items())
        self.identified = sum(part.identified for part in parts.values())

    def pack(self, argument: Any, frame: Frame) -> bool:
        if type(argument) is not self.kind:
            return False
        own = attributes(argument)
        if list(own) != self._names or not is_rebuilt(argument):
            return False
        return all(part.pack(own[name], frame) for name, part in self.parts.items())

    def containers(self, argument: Any) -> Iterator[tuple[int, str]]:
        yield id(argument), ""
        if variables(argument):
            yield id(variables(argument)), ""
        own = attributes(argument)
        for name, part in self.parts.items():
            yield from part.containers(own[name])

    def traced(self, make: MakeNumber) -> Any:
        return instance(self.kind, {name: part.traced(make) for name, part in self.parts.items()})

    def children(self) -> Sequence[tuple[str, Node]]:
        return [(f".{name}", part) for name, part in self.parts.items()]

    def describe(self) -> str:
        return self.kind.__name__
