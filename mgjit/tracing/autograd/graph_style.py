"""Recognise node classes whose `backward()` is the usual one, so that its order is known.

Objects of such a class keep their operands in one attribute and the local derivatives in another, and `backward()` is a
depth-first search over the operands in order, after which every node, in reverse order, adds `local * node.grad` to the
gradient of each operand, and nothing else.  This is checked on a small expression: what `backward()` does there is
observed (autograd/flow.py), and must match edge by edge.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ..surroundings.shapes import attributes
from .flow import Edge, NoFlow, observe

if TYPE_CHECKING:
    from .node_class import NodeClass


@dataclass(frozen=True)
class GraphStyle:
    """How a class keeps its graph.

    Attributes:
        operands, derivatives: the names of the attributes.
        seed: the gradient that `backward()` gives to its root.
    """

    operands: str
    derivatives: str
    seed: Any

    def operands_of(self, node: Any) -> Sequence[Any]:
        """The operands of a node; empty for a leaf."""
        return getattr(node, self.operands)  # type: ignore[no-any-return]

    def edges_of(self, nodes: Iterable[Any]) -> list[Edge]:
        """What nodes contribute to the gradients of their operands, one after the other."""
        operands_of, derivatives_of = attrgetter(self.operands), attrgetter(self.derivatives)
        return [
            (node, operand, factor, False)
            for node in nodes
            for operand, factor in zip(operands_of(node), derivatives_of(node))
        ]


def style_of(known: NodeClass) -> GraphStyle | None:
    """The style of a class; None if it is not known."""
    try:
        style = _guessed(known.kind) if known.gradient.name == "grad" else None
        return style if style is not None and _is_all(known, style) else None
    except (Exception, NoFlow):
        return None


def _is_all(known: NodeClass, style: GraphStyle) -> bool:
    """Whether the `backward()` of a class does what the style says, and nothing else."""
    root = _expression(known.kind)
    flow = observe(root, [known], root.backward)
    edges = list(flow.edges)
    order, _ = depth_first(root, style.operands_of)
    expected = style.edges_of(reversed(order))
    same = len(edges) == len(expected) and all(map(_are_alike, edges, expected))
    return same and not flow.zeroed and flow.returned is None


def _are_alike(a: Edge, b: Edge) -> bool:
    """Whether an edge between nodes and one between objects are the same."""
    return a[0].thing is b[0] and a[1].thing is b[1] and repr(a[2:]) == repr(b[2:])


def _guessed(kind: Any) -> GraphStyle | None:
    a, b = kind(0.5), kind(0.25)
    node = a * b
    operands = [n for n, part in attributes(node).items() if type(part) in (tuple, list) and list(part) == [a, b]]
    derivatives = [
        n for n, part in attributes(node).items() if type(part) in (tuple, list) and list(part) == [0.25, 0.5]
    ]
    node.backward()
    return GraphStyle(operands[0], derivatives[0], node.grad) if operands and derivatives else None


def _expression(kind: Any) -> Any:
    """The root of an expression in which different orders of visiting can be distinguished."""
    a, b, c, d = (kind(number) for number in (0.1, -1.7, 0.9, 3.3e-3))
    e = a * b + c
    f = (e * d + a * e) * (b + e * c)
    return f * e + a * f + c


def depth_first(
    root: Any,
    operands_of: Callable[[Any], Sequence[Any]],
    visited: set[int] | None = None,
    asked: Container[type] = (),
    enter: Callable[[Any], bool] = lambda node: True,
) -> tuple[list[Any], list[Sequence[Any]]]:
    """Visit a graph in the order of the usual recursive function, without recursion.

    Args:
        visited: gets the identities of the nodes that have been met.
        asked: the classes of nodes for which `enter` tells whether they are to be visited.

    Returns:
        The visited nodes, each after all of its operands; and the operands of each.
    """
    order: list[Any] = []
    operands_in_order: list[Sequence[Any]] = []
    leave, leave_operands = order.append, operands_in_order.append
    visited = set() if visited is None else visited
    see = visited.add
    see(id(root))
    if type(root) in asked:
        enter(root)
    node, operands = root, operands_of(root)
    rest = iter(operands)
    pending: list[tuple[Any, Sequence[Any], Any]] = []
    while True:
        for operand in rest:
            identity = id(operand)
            if identity in visited:
                continue
            see(identity)
            if type(operand) in asked and not enter(operand):
                continue
            its_operands = operands_of(operand)
            if its_operands:
                pending.append((node, operands, rest))
                node, operands = operand, its_operands
                rest = iter(operands)
                break
            leave(operand)
            leave_operands(its_operands)
        else:
            leave(node)
            leave_operands(operands)
            if not pending:
                return order, operands_in_order
            node, operands, rest = pending.pop()
