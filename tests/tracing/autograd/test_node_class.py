"""autograd/node_class.py: what is recognised as a class of nodes, and what is found out about it."""

from __future__ import annotations

from typing import Any

import pytest

from mgjit.tracing.autograd.node_class import node_class
from tests.tracing.autograd import nodes


@pytest.mark.parametrize("kind", [nodes.Closures, nodes.Factors, nodes.Sets, nodes.Tape, nodes.Doubled])
def test_01_classes_of_nodes(kind: Any) -> None:
    """By what they do: names of attributes do not matter."""
    known = node_class(kind)
    assert known is not None
    assert known.kind is kind
    assert (known.data.name, known.gradient.name) == ("value" if kind is nodes.Factors else "data", "grad")
    thing = kind(0.75)
    assert known.data.read(thing) == 0.75
    assert known.gradient.read(thing) == 0


def test_02_operands_in_sets_come_in_any_order() -> None:
    """Which is known, because the order of additions is free then."""
    ordered, unordered = node_class(nodes.Closures), node_class(nodes.Sets)
    assert ordered is not None
    assert ordered.is_ordered
    assert unordered is not None
    assert not unordered.is_ordered


def test_06_operands_in_a_set_and_in_a_tuple() -> None:
    """It cannot be told which of them backward() goes through: the order that is seen counts."""

    class Both(nodes.Sets):
        def __init__(self, data: Any, operands: tuple[Any, ...] = ()) -> None:
            super().__init__(data, operands)
            self.sequence = operands

    known = node_class(Both)
    assert known is not None
    assert known.is_ordered


def test_03_other_classes() -> None:
    """Numbers beside a method backward() do not make a node; nor does a class that cannot be made of a number."""

    class Pair:
        def __init__(self, a: float, b: float) -> None:
            self.data, self.grad = a, b

        def backward(self) -> None: ...

    for kind in (nodes.Plain, Pair, int, dict, type("Nothing", (), {})):
        assert node_class(kind) is None


def test_04_derived_classes_are_as_their_base() -> None:
    """A parameter class whose products are plain nodes."""

    class Parameter(nodes.Factors):
        pass

    known = node_class(Parameter)
    assert known is not None
    assert known.kind is nodes.Factors


def test_05_trying_leaves_counters_as_they_were() -> None:
    """An attempt makes objects; what the class counts is put back."""

    class Counted(nodes.Closures):
        made = 0

        def __init__(self, data: Any, operands: tuple[Any, ...] = ()) -> None:
            super().__init__(data, operands)
            Counted.made += 1

    Counted(1.0)
    assert node_class(Counted) is not None
    assert Counted.made == 1
