"""Containers among the arguments: what each packs, what it does not take, what a trace sees in its place."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

from mgjit.tracing.call.containers import DataclassNode, MappingNode, SequenceNode
from mgjit.tracing.call.inputs import NumberNode
from mgjit.tracing.call.node import Frame, Node

Point = namedtuple("Point", "x y")


@dataclass(frozen=True)
class Sample:
    """A dataclass that refuses assignment."""

    a: Any
    b: Any = None


def packed(node: Node, argument: Any, size: int = 4) -> list[float] | None:
    """The packed numbers, None when the argument does not fit."""
    frame = Frame(size, 2, 2)
    return list(frame.packed) if node.pack(argument, frame) else None


def make(place: int, integer: bool) -> tuple[int, bool]:
    """Stands for the number of a trace."""
    return place, integer


def test_08_structures() -> None:
    """Sequences, named tuples, dicts and dataclasses, part by part; everything about them is structure."""
    parts: list[Node] = [NumberNode(0, "x", False), NumberNode(1, "x", False)]
    named: dict[str, Node] = dict(zip("ab", parts))
    cases: list[tuple[Node, Any, list[Any]]] = [
        (SequenceNode(list, parts), [1.0, 2.0], [(1.0, 2.0), [1.0], [1.0, "a"], None]),
        (SequenceNode(Point, parts), Point(1.0, 2.0), [(1.0, 2.0), Point(1.0, 2)]),
        (MappingNode(named), {"a": 1.0, "b": 2.0}, [{"b": 2.0, "a": 1.0}, {"a": 1.0}, OrderedDict(a=1.0, b=2.0)]),
        (DataclassNode(Sample(1.0, 2.0), named), Sample(1.0, 2.0), [Sample(1.0), Point(1.0, 2.0), {"a": 1.0}]),
    ]  # fmt: skip
    for node, fits, others in cases:
        assert packed(node, fits) == [1, 2, 0, 0]
        assert all(packed(node, other) is None for other in others)
        assert [part for _, part in node.children()] == parts
        seen = node.traced(make)
        assert type(seen) is type(fits)
        found = seen.values() if isinstance(seen, dict) else getattr(seen, "__dict__", {}).values() or seen
        assert list(found) == [(0, False), (1, False)]
    names = [[name for name, _ in node.children()] for node, _, _ in cases]
    assert names == [["[0]", "[1]"], ["[0]", "[1]"], ["['a']", "['b']"], [".a", ".b"]]
