"""The containers among the arguments: lists, tuples, dicts and dataclasses of further parts."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from ..lookup import variables
from .exact import exact_keys
from .node import Frame, MakeNumber, Node, grouped


class SequenceNode(Node):
    """A list, tuple or named tuple of nodes."""

    def __init__(self, kind: type, parts: list[Node]) -> None:
        self.kind, self.parts = kind, parts
        self.key = kind.__name__, tuple([part.key for part in parts])
        self.identified = sum([part.identified for part in parts])

    def pack(self, argument: Any, frame: Frame) -> bool:
        elements: Any = argument
        if type(argument) is not self.kind or len(elements) != len(self.parts):
            return False
        return all(part.pack(element, frame) for part, element in zip(self.parts, elements))

    def containers(self, argument: Any) -> Iterator[tuple[int, str]]:
        yield id(argument), ""
        for part, element in zip(self.parts, argument):
            yield from part.containers(element)

    def traced(self, make: MakeNumber) -> Any:
        elements = [part.traced(make) for part in self.parts]
        return self.kind(*elements) if hasattr(self.kind, "_fields") else self.kind(elements)

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
        self.example = example
        self.key = self.kind, tuple((name, part.key) for name, part in parts.items())
        self.identified = sum(part.identified for part in parts.values())

    def pack(self, argument: Any, frame: Frame) -> bool:
        if type(argument) is not self.kind or attributes_of_dataclass(argument) != list(self.parts):
            return False
        return all(part.pack(getattr(argument, name), frame) for name, part in self.parts.items())

    def containers(self, argument: Any) -> Iterator[tuple[int, str]]:
        yield id(argument), ""
        if variables(argument):
            yield id(vars(argument)), ""
        for name, part in self.parts.items():
            yield from part.containers(getattr(argument, name))

    def traced(self, make: MakeNumber) -> Any:
        made = copy.copy(self.example)
        for name, part in self.parts.items():
            object.__setattr__(made, name, part.traced(make))
        return made

    def children(self) -> Sequence[tuple[str, Node]]:
        return [(f".{name}", part) for name, part in self.parts.items()]

    def describe(self) -> str:
        return self.kind.__name__


def attributes_of_dataclass(argument: Any) -> list[str]:
    """The names of the fields of a dataclass instance, and of its other attributes."""
    fields = [f.name for f in dataclasses.fields(argument)]
    return fields + [name for name in variables(argument) if name not in fields]
