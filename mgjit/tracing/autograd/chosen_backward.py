"""`backward()` of a graph in which a traced number has chosen between nodes.

Which node `probs[target]` is decides the order in which a depth-first search visits the others: the chosen node and its
operands come first, and are skipped where the search meets them again.  So the order depends on the target:

1. The search is the usual one (autograd/graph_style.py), over objects; a gathered object (autograd/chosen.py) is a node
   whose operands are themselves gathered, or shared by all candidates.
2. A candidate met after the gathered object that may stand for it is visited on the condition that it is not the chosen
   one.
3. In reverse order, each node contributes to the gradients of its operands; one that was visited on a condition leaves
   them unchanged if the condition does not hold (autograd/chosen_gradients.py).

So every gradient is added up in the order of the search that Python would have made, for every target.

Only nodes that are chosen, or computed from chosen ones, have to be recorded operation by operation.  Below them, where
choices no longer matter, the pass can be symbolic (autograd/symbolic.py): `backward_until_choices`.  What choices add
to the gradients there is what these begin with; or, where it comes after other contributions (as in a recurrent network
with a loss at each time), numbers that are added in their turn.  Where a condition rules one out, -0.0 is added.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from operator import attrgetter
from typing import Any

from ...engine.leaks import PlainCall
from ...errors import TraceError, user_location
from ..record.recorder import Recorder
from .chosen import SELECT_NUMBERS, choice_of, gathered_kinds, is_gathered
from .chosen_gradients import GatheredGradients
from .flow import Edge, Flow, Given
from .graph_style import GraphStyle, depth_first


def backward(style: GraphStyle, root: Any) -> None:
    """Set the gradients of everything that `root` depends on."""
    search = _searched(style, root)
    search.record(root, zip(search.order, search.operands))


def backward_until_choices(style: GraphStyle, root: Any, recorder: Recorder) -> Flow:
    """Set the gradients of what depends on choices, and return the flow of gradients from there on."""
    search = _searched(style, root)
    if not search.chosen:
        root.grad = 0
        return Flow.through(search.order, style, root)
    choosing, others, alternates = search.divided()
    recorder.keeps_neutral = False  # what is recorded from now on is not differentiated
    if alternates:
        given = Given()
        flow = Flow.along(search.record_in_turn(root, {id(node) for node, _ in choosing}, given), given)
    else:
        search.record(root, choosing)
        flow = Flow.through(others, style)
    recorder.keeps_neutral = True
    return flow


def _searched(style: GraphStyle, root: Any) -> _Search:
    search = _Search(style)
    search.order, search.operands = depth_first(root, search.operands_of, search.visited, gathered_kinds, search.enter)
    return search


class _Search:
    def __init__(self, style: GraphStyle) -> None:
        self._style = style
        #: The operands of a node; empty for a leaf.
        self.operands_of: Callable[[Any], Sequence[Any]] = attrgetter(style.operands)
        self.order: list[Any] = []
        self.operands: list[Sequence[Any]] = []  # of each node in that order
        #: For each conditional node, the traced test whether it is the chosen one, which was visited before.
        self.not_if: dict[int, Any] = {}
        self.visited: set[int] = set()
        #: The gathered nodes among those, and whichever have been met.
        self.chosen: list[Any] = []
        self._gathered: set[int] = set()

    def enter(self, node: Any) -> bool:
        """Whether to visit a gathered node."""
        gatherer, candidates, index = choice_of(node)
        self._gathered.add(id(node))
        if not self.operands_of(node):
            return True  # a parameter contributes nothing, so its order does not matter
        visited = [id(candidate) in self.visited and not is_gathered(candidate) for candidate in candidates]
        if all(visited) and not any(id(candidate) in self.not_if for candidate in candidates):
            return False
        if any(visited) or any(id(candidate) in self.not_if for candidate in candidates):
            reason = (
                "two traced indices or tests choose among the same nodes of a graph, or one chooses after some of them "
                "were used: the order of backward() cannot be told"
            )
            if gatherer.chooses_by_test:
                raise PlainCall(reason)
            raise TraceError(f"{user_location()}: {reason}. {SELECT_NUMBERS}")
        for k, candidate in enumerate(candidates):
            self.not_if[id(candidate)] = gatherer.test(index, k)
        self.chosen.append(node)
        return True

    def record(self, root: Any, nodes: Iterable[tuple[Any, Sequence[Any]]]) -> None:
        """Record the contributions of nodes to the gradients of their operands, last node first."""
        gradients = GatheredGradients(self._style, self.chosen, self.not_if)
        gradients.start(root)
        for node, operands in reversed(list(nodes)):
            gradients.contribute(node, operands)
        gradients.finish()

    def divided(self) -> tuple[list[tuple[Any, Sequence[Any]]], list[Any], bool]:
        """The nodes that are chosen, may be chosen, or depend on such nodes, with their operands; and all others.

        Returns:
            Also whether some gradient receives contributions of the former after others.
        """
        choosing: list[tuple[Any, Sequence[Any]]] = []
        others: list[Any] = []
        alternates = False
        found = {*self.not_if, *map(id, self.chosen)}  # nodes of the first kind
        reached: set[int] = set()  # what they contribute to
        near = found | self._gathered  # where it has to be looked at operands
        for node, operands in zip(self.order, self.operands):
            for operand in operands:
                if id(operand) in near:
                    break
            else:
                if id(node) not in found:
                    others.append(node)
                    continue
            targets = operands
            if not self._gathered.isdisjoint(map(id, operands)):
                targets = [one for operand in operands for one in _meant(operand)]
            if id(node) in found or not found.isdisjoint(map(id, operands)):
                choosing.append((node, operands))
                found.add(id(node))
                near.add(id(node))
                reached.update(map(id, targets))
                near.update(map(id, targets))
            else:
                others.append(node)
                alternates = alternates or not reached.isdisjoint(map(id, targets))
        return choosing, others, alternates

    def record_in_turn(self, root: Any, choosing: Container[int], given: Given) -> list[Edge]:
        """Record the contributions that depend on choices to each other.

        Returns:
            All other contributions, in order; `given` is the source of those that depend on choices.
        """
        edges: list[Edge] = []

        def give(operand: Any, contribution: Any) -> None:
            edges.append((given, operand, contribution, False))

        gradients = GatheredGradients(self._style, self.chosen, self.not_if, give, choosing)
        gradients.start(root)
        for node, operands in zip(reversed(self.order), reversed(self.operands)):
            if id(node) in choosing:
                gradients.contribute(node, operands)
            else:
                edges += self._style.edges_of([node])
        gradients.finish()
        return edges


def _meant(operand: Any) -> Sequence[Any]:
    """The nodes that an operand may be."""
    return choice_of(operand)[1] if type(operand) in gathered_kinds else (operand,)
