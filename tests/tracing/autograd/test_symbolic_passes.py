"""autograd/symbolic.py: several passes in a step, and what they share with each other and with what was before."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from tests.tracing.autograd import nodes
from tests.tracing.autograd.test_symbolic import RECORDED, SYMBOLIC, check, parameters


class Clearing(nodes.Closures):
    """Sets all gradients to zero first, and tells how many nodes there are."""

    def apart(self, other: Any) -> Any:
        """A product that passes nothing on to `other`, though that is an operand."""
        out = type(self)(self.data * other.data, (self, other))

        def _backward() -> None:
            self.grad += other.data * out.grad

        out._backward = _backward
        return out

    def backward(self) -> Any:
        seen: dict[int, Any] = {}
        pending: list[Any] = [self]
        while pending:
            node = pending.pop()
            if id(node) not in seen:
                seen[id(node)] = node
                pending += node._operands
        for node in seen.values():
            node.grad = 0.0
        super().backward()
        return len(seen)


def passes_in_turn(kind: Any, weights: list[Any], x: float) -> list[Any]:
    """Data of a node is used first without it, then with it; gradients are read in between."""
    a, b, c, d, e, *_ = weights
    made = a * x + b
    first = (kind(made.data) * c + d) * made.data + a * b
    first.backward()
    seen = [w.grad for w in weights]
    second = made * c + made * (d * e)
    second.backward()
    return [*seen, made.grad]


def through_the_same(kind: Any, weights: list[Any], x: float) -> list[Any]:
    a, b, c, d, *_ = weights
    trunk = a * x * b
    first = trunk * c + trunk * trunk
    first.backward()
    seen = [*(w.grad for w in weights), trunk.grad]
    second = trunk * d + trunk
    second.backward()
    return [*seen, trunk.grad]


def cleared_without_an_edge(kind: Any, weights: list[Any], x: float) -> list[Any]:
    a, b, c, *_ = weights
    b.grad += 5.0 * x
    return [((a * x).apart(b) + c).backward()]


def gradients_put_back(kind: Any, weights: list[Any], x: float) -> list[Any]:
    before = [w.grad for w in weights]
    (weights[0] * weights[1] * x + weights[0]).backward()
    found = [w.grad * 2.0 for w in weights]
    for w, old in zip(weights[:3], before):
        w.grad = old
    return found


PASSES = [passes_in_turn, through_the_same, cleared_without_an_edge, gradients_put_back]


@pytest.mark.parametrize("zeroed", [True, False])
@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("kind", [nodes.Closures, Clearing])
def test_01_passes_in_turn(kind: Any, passes: Any, zeroed: bool) -> None:
    """What an earlier pass has used as a number, or gone through, is reached by a later one only."""
    if kind is nodes.Closures and passes in (through_the_same, cleared_without_an_edge):
        return  # what the latter needs, and what is recorded

    def make() -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(kind, 6, seed=15)

        def step(x: float) -> list[Any]:
            result = [*passes(kind, weights, x), *(w.grad for w in weights)]
            for w in weights:
                w.data -= 0.01 * w.grad
                if zeroed:
                    w.grad = 0.0
            return result

        return weights, step

    check(make, SYMBOLIC)


def test_02_gradients_that_are_only_read() -> None:
    """Of nodes that no pass reaches: what the user has put there."""

    def make() -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(nodes.Closures, 4, seed=18)

        def step(x: float) -> list[Any]:
            (weights[0] * x).backward()
            return [w.grad for w in weights]

        return weights, step

    for zero in (0.0, 0):  # an int becomes a float where the user puts one
        weights, step = make()
        for w in weights:
            w.grad = zero
        compiled = mgjit.compile(step)
        for number in (zero, 0.5, -3.0):
            weights[2].grad = number
            weights[0].grad = zero
            assert compiled(1.5) == [1.5, 0.0, number, 0.0]


@pytest.mark.parametrize("zeroed", [True, False])
def test_03_graphs_from_before_the_step(zeroed: bool) -> None:
    """Nodes that the user has computed outside: their gradients go on to what they were computed from."""

    def make() -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(nodes.Closures, 4, seed=16)
        weights.append(weights[0] * weights[1])

        def step(x: float) -> float:
            loss = weights[4] * x + weights[4] * weights[4] * weights[2]
            loss.backward()
            for w in weights:
                w.data -= 0.01 * w.grad
                if zeroed:
                    w.grad = 0.0
            return loss.data  # type: ignore[no-any-return]

        return weights, step

    check(make, RECORDED)


def test_04_gradients_that_are_kept_elsewhere() -> None:
    """What backward() leaves in another attribute is a number like any other."""

    class Remembering(nodes.Closures):
        def __init__(self, data: Any, operands: tuple[Any, ...] = ()) -> None:
            super().__init__(data, operands)
            self.twice = 0.0

        def backward(self) -> None:
            super().backward()
            for node in (self, *self._operands):
                node.twice = node.grad * 2.0

    def sign(w: Any) -> float:
        return 1.0 if w.twice > 0.1 else -1.0

    def root(w: Any) -> float:
        return math.sqrt(w.twice * w.twice)

    for use in (sign, root, lambda w: 0.5, lambda w: w.twice, lambda w: abs(w.twice)):

        def make(use: Any = use) -> tuple[list[Any], Callable[..., Any]]:
            weights = parameters(Remembering, 4, seed=17)

            def step(x: float) -> list[Any]:
                loss = weights[0] * weights[1]
                loss.backward()
                for w in weights:
                    w.data -= 0.01 * use(w)
                    w.grad = 0.0
                return [loss.data * x, loss.twice]

            return weights, step

        check(make, RECORDED)


@pytest.mark.parametrize("zeroed", [True, False])
def test_05_made_before_the_first_pass(zeroed: bool) -> None:
    """A node of a later graph, made of one that the first pass goes through: it is there before the pass is."""

    def make() -> tuple[list[Any], Callable[..., Any]]:
        weights = parameters(Clearing, 4, seed=16)

        def step(x: float) -> list[Any]:
            a, b, c, _ = weights
            trunk = a * x
            later = trunk + trunk
            (trunk * b).backward()
            seen = [w.grad for w in weights]
            (later * c).backward()
            result = [*seen, later.data, trunk.grad, *(w.grad for w in weights)]
            for w in weights:
                w.data -= 0.01 * w.grad
                if zeroed:
                    w.grad = 0.0
            return result

        return weights, step

    check(make, RECORDED)
