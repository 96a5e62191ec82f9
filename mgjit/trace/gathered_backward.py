"""`backward()` of a graph in which a traced number has chosen between nodes.

Which node `probs[target]` is decides in which order a depth-first search meets the others: the chosen one and its
operands come first, and are skipped where the search meets them again.  So the order depends on the target:

1. The search is the usual one (trace/graph_style.py), over objects; a gathered object (trace/gathered.py) is a node
   whose operands are gathered in turn, or shared by all candidates.
2. A candidate that is met after a gathered object that may be it, is visited on condition that it is not the one.
3. In reverse order, each node contributes to the gradients of its operands; one that was visited on a condition
   leaves them as they are where the condition does not hold.

So every gradient is added up in the order of the search that Python would have made, for every target.
"""

from __future__ import annotations

from typing import Any

from ..errors import TraceError, user_location
from .gathered import choice_of, is_gathered
from .graph_style import GraphStyle, depth_first


def backward(style: GraphStyle, root: Any) -> None:
    """Set the gradients of everything that `root` depends on."""
    search = _Search(style)
    depth_first(root, style.operands_of, search.enter, search.order.append)
    root.grad = style.seed
    for node in reversed(search.order):
        condition = search.not_if.get(id(node))
        if condition is None:
            style.contribute(node)
        else:
            _contribute_unless(condition, style, node)


class _Search:
    def __init__(self, style: GraphStyle) -> None:
        self._style = style
        self.order: list[Any] = []
        #: By node: the number that is true where it is the chosen one, and was visited as such.
        self.not_if: dict[int, Any] = {}
        self._entered: set[int] = set()

    def enter(self, node: Any) -> bool:
        if not is_gathered(node):
            self._entered.add(id(node))
            return True
        gatherer, candidates, index = choice_of(node)
        if not self._style.operands_of(node):
            return True  # a parameter contributes nothing, in whatever order
        visited = [id(candidate) in self._entered for candidate in candidates]
        if all(visited) and not any(id(candidate) in self.not_if for candidate in candidates):
            return False
        if any(visited) or any(id(candidate) in self.not_if for candidate in candidates):
            raise TraceError(
                f"{user_location()}: two traced indices choose among the same nodes of a graph, or one chooses after some "
                "of them were used: the order of backward() cannot be told. Select numbers instead, with a sum of "
                "products with mgjit.one_hot(index, n)."
            )
        for k, candidate in enumerate(candidates):
            self.not_if[id(candidate)] = gatherer.test(index, k)
        return True


def _contribute_unless(condition: Any, style: GraphStyle, node: Any) -> None:
    operands = list({id(operand): operand for operand in style.operands_of(node)}.values())
    before = [operand.grad for operand in operands]
    style.contribute(node)
    for operand, old in zip(operands, before):
        operand.grad = condition._select(condition, old, operand.grad)
