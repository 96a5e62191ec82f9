"""autograd/graph_style.py: classes whose backward() is the usual search and sum, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

import mgjit
from mgjit.errors import TraceError
from mgjit.tracing.autograd.graph_style import depth_first
from mgjit.tracing.autograd.node_class import node_class
from tests.tracing.autograd import nodes


class Own(nodes.Factors):
    """Computes objects of derived classes."""

    __slots__ = ()

    def __mul__(self, other: Any) -> Any:
        other = other if isinstance(other, Own) else type(self)(other)
        return type(self)(self.value * other.value, (self, other), (other.value, self.value))

    def __add__(self, other: Any) -> Any:
        other = other if isinstance(other, Own) else type(self)(other)
        return type(self)(self.value + other.value, (self, other), (1, 1))


class Limited(Own):
    """Limits gradients, at a number that small expressions do not reach."""

    __slots__ = ()

    def backward(self) -> None:
        order, _ = depth_first(self, lambda node: node.operands)
        self.grad = 1
        for node in reversed(order):
            for operand, derivative in zip(node.operands, node.derivatives):
                operand.grad += max(-1e3, min(1e3, derivative * node.grad))


class Returning(Own):
    """Tells how many operands the root has."""

    __slots__ = ()

    def backward(self) -> Any:
        super().backward()
        return len(self.operands)


def test_01_the_usual_one() -> None:
    """Operands and local derivatives in tuples, a depth-first search: the names of the attributes."""
    for kind in (nodes.Factors, Own):
        known = node_class(kind)
        assert known is not None
        style = known.style
        assert style is not None
        assert (style.operands, style.derivatives, style.seed) == ("operands", "derivatives", 1)


@pytest.mark.parametrize("kind", [nodes.Closures, nodes.Tape, nodes.Plain, Limited, Returning])
def test_02_others(kind: Any) -> None:
    """Closures; what does more than the usual, even where that makes no difference to a small expression."""
    known = node_class(kind)
    assert (known is None) == (kind is nodes.Plain)
    assert known is None or known.style is None
    assert nodes.TAPE == []


@pytest.mark.usefixtures("no_paths")
def test_03_a_choice_among_nodes_that_limit_gradients() -> None:
    """An error, because nobody can tell what the class's own backward() would do."""
    weights = [Limited(2.0), Limited(3.0)]

    @mgjit.compile
    def step(target: int) -> float:
        outputs = [w * 900.0 for w in weights]
        loss = outputs[target] * outputs[target]
        loss.backward()
        return loss.value  # type: ignore[no-any-return]

    with pytest.raises(TraceError, match="does not keep its graph in a way that is known"):
        step(1)
    assert [(w.value, w.grad) for w in weights] == [(2.0, 0), (3.0, 0)]
