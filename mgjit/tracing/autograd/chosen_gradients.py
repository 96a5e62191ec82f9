"""The gradients of nodes of which a traced index chooses one, while a backward pass is recorded.

Each candidate has two gradients: one for runs in which it is the chosen node, and one for all other runs.

1. Contributions from a node that is always visited go to both.
2. Contributions through the gathered object go to the first; since they are the same for all candidates, they are kept
   once for all, until something else is added to one of them.
3. Contributions from a candidate of the same index, which is visited only in the other runs, go to the second; they
   need no condition, because the second is not read in runs where they would be wrong.
4. When the chosen node passes its gradient on, that of the chosen candidate is looked up.

So conditions are needed only where different rows meet: in what they share, and in parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from .chosen import Gatherer, choice_of
from .graph_style import GraphStyle


class GatheredGradients:
    """The gradients in one backward pass.

    Args:
        style: how the class keeps its graph.
        chosen: the gathered nodes.
        not_if: for candidates that are visited unless they are chosen, the test whether they are, by identity.
        give: adds to the gradient of an operand that is added up elsewhere, and not here.
        here: the identities of those that are added up here; None for all.
    """

    def __init__(
        self,
        style: GraphStyle,
        chosen: list[Any],
        not_if: dict[int, Any],
        give: Callable[[Any, Any], None] = lambda operand, contribution: None,
        here: Container[int] | None = None,
    ) -> None:
        self._style, self._not_if, self._give, self._here = style, not_if, give, here
        self._choices = {id(node): _Choice(*choice_of(node)) for node in chosen}
        self._member_of = {
            id(candidate): (choice, k)
            for choice in self._choices.values()
            for k, candidate in enumerate(choice.candidates)
        }

    def start(self, root: Any) -> None:
        """Give the root its gradient."""
        choice = self._choices.get(id(root))
        if choice is None:
            root.grad = self._style.seed
        else:
            choice.for_all = self._style.seed

    def contribute(self, node: Any, operands: Sequence[Any]) -> None:
        """Add the contributions of a node to the gradients of its operands."""
        choices, not_if, condition = self._choices, self._not_if, self._not_if.get(id(node))
        gradient = choices[id(node)].gradient() if id(node) in choices else node.grad
        for operand, derivative in zip(operands, getattr(node, self._style.derivatives)):
            contribution, key = derivative * gradient, id(operand)
            if key in choices:
                choice = choices[key]
                choice.for_all = _sum(choice.gradient(), contribution, condition)
            elif key in self._member_of:
                if condition is not None and condition is not_if.get(key):
                    operand.grad = operand.grad + contribution
                else:
                    choice, k = self._member_of[key]
                    own = choice.own()
                    own[k] = _sum(own[k], contribution, condition)
                    operand.grad = _sum(operand.grad, contribution, condition)
            elif self._here is None or key in self._here:
                operand.grad = _sum(operand.grad, contribution, condition)
            else:  # adding -0.0 changes no number
                self._give(
                    operand, contribution if condition is None else condition._select(condition, -0.0, contribution)
                )

    def finish(self) -> None:
        """Assign the final gradients to the candidates."""
        for choice in self._choices.values():
            choice.show()


class _Choice:
    """The gradient of the chosen one of some candidates.

    Attributes:
        for_all: the gradient as long as it is the same for all candidates.
    """

    def __init__(self, gatherer: Gatherer, candidates: list[Any], index: Any) -> None:
        self._gatherer, self.candidates, self._index = gatherer, candidates, index
        initial = [candidate.grad for candidate in candidates]
        self._own: list[Any] | None = None if all(type(x) in (int, float) and x == 0 for x in initial) else initial
        self.for_all: Any = initial[0]

    def gradient(self) -> Any:
        """The gradient of the chosen one."""
        if self._own is not None:
            self.for_all, self._own = self._gatherer.choose(self._own, self._index), None
        return self.for_all

    def own(self) -> list[Any]:
        """By candidate, its gradient for the case that it is the chosen one."""
        if self._own is None:
            self._own = [self.for_all] * len(self.candidates)
        return self._own

    def show(self) -> None:
        """Assign each candidate a gradient that is right in all cases, and worked out only if it is read."""
        for k, candidate in enumerate(self.candidates):
            mine = self.for_all if self._own is None else self._own[k]
            candidate.grad = self._gatherer.when_used(self._shown(k, mine, candidate.grad))

    def _shown(self, k: int, mine: Any, otherwise: Any) -> Callable[[], Any]:
        gatherer, index = self._gatherer, self._index  # and not the candidates, which will hold this
        return lambda: gatherer.test(index, k)._select(gatherer.test(index, k), mine, otherwise)


def _sum(old: Any, contribution: Any, condition: Any) -> Any:
    """`old + contribution`, or `old` if there is a condition and it holds."""
    return old + contribution if condition is None else condition._select(condition, old, old + contribution)
