"""Recognise classes whose objects are nodes of an autograd graph, by what they do.

A class is recognised when its objects keep their operands in one attribute and the local derivatives in another, and
`backward()` does with them what is written below: a depth-first search over operands in their order, then every node
in reverse order adding `local * node.grad` to the gradient of each operand.  That is tried out: a small expression,
in which the order of additions shows in the last bits, must get the same gradients both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .draws import undrawn
from .functions import attributes

#: Numbers whose sums of products depend on the order.
_NUMBERS = (0.1, -1.7, 0.9, 3.3e-3)

_styles: dict[type, GraphStyle | None] = {}


@dataclass(frozen=True)
class GraphStyle:
    """How a class keeps its graph.

    Attributes:
        operands, derivatives: the names of the attributes.
        seed: the gradient that `backward` gives its root.
    """

    operands: str
    derivatives: str
    seed: Any

    def operands_of(self, node: Any) -> Sequence[Any]:
        """The operands of a node; empty for a leaf."""
        return getattr(node, self.operands)  # type: ignore[no-any-return]

    def contribute(self, node: Any) -> None:
        """Add what a node contributes to the gradients of its operands."""
        for operand, derivative in zip(self.operands_of(node), getattr(node, self.derivatives)):
            operand.grad += derivative * node.grad


def style_of(kind: type) -> GraphStyle | None:
    """The style of a class; None when it has none that is known."""
    if kind not in _styles:
        try:
            _styles[kind] = undrawn(kind, lambda: _tried(kind))
        except Exception:
            _styles[kind] = None
    return _styles[kind]


def _tried(kind: Any) -> GraphStyle | None:
    style = _guessed(kind)
    if style is None:
        return None
    expected, found = _leaves_and_root(kind), _leaves_and_root(kind)
    expected[-1].backward()
    _backward(style, found[-1])
    same = all(repr(a.grad) == repr(b.grad) and a.grad != 0 for a, b in zip(expected, found))
    return style if same else None


def _guessed(kind: Any) -> GraphStyle | None:
    a, b = kind(0.5), kind(0.25)
    node = a * b
    operands = [n for n, part in attributes(node).items() if type(part) in (tuple, list) and list(part) == [a, b]]
    derivatives = [
        n for n, part in attributes(node).items() if type(part) in (tuple, list) and list(part) == [0.25, 0.5]
    ]
    node.backward()
    return GraphStyle(operands[0], derivatives[0], node.grad) if operands and derivatives else None


def _leaves_and_root(kind: Any) -> list[Any]:
    a, b, c, d = (kind(number) for number in _NUMBERS)
    e = a * b + c
    f = (e * d + a * e) * (b + e * c)
    return [a, b, c, d, e, f * e + a * f + c]


def _backward(style: GraphStyle, root: Any) -> None:
    order: list[Any] = []
    depth_first(root, style.operands_of, lambda node: True, order.append)
    root.grad = style.seed
    for node in reversed(order):
        style.contribute(node)


def depth_first(
    root: Any,
    operands_of: Callable[[Any], Sequence[Any]],
    enter: Callable[[Any], bool],
    leave: Callable[[Any], Any],
) -> None:
    """Visit a graph as the usual recursive function does, without recursion.

    Args:
        enter: whether a node that has not been visited is to be visited.
        leave: is told each visited node after all of its operands.
    """
    visited = {id(root)}
    enter(root)
    pending = [(root, iter(operands_of(root)))]
    while pending:
        node, rest = pending[-1]
        for operand in rest:
            if id(operand) not in visited:
                visited.add(id(operand))
                if enter(operand):
                    pending.append((operand, iter(operands_of(operand))))
                    break
        else:
            pending.pop()
            leave(node)
