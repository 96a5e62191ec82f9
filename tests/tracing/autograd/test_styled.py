"""autograd/styled.py: the nodes of a graph of known style, in one pass over its objects."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.tracing.autograd import symbolic
from mgjit.tracing.autograd.styled import StyledGraph
from tests.programs.foreign.running import bits
from tests.tracing.autograd.test_chosen import Node


class Wide(Node):
    """With operations whose derivatives are not the usual ones, or not in the usual form."""

    __slots__ = ()

    def __add__(self, other: Any) -> Wide:
        return Wide(self.data + other.data, (self, other), (1, 1))

    def __mul__(self, other: Any) -> Wide:
        return Wide(self.data * other.data, (self, other), (other.data, self.data))

    def sum3(self, other: Any, third: Any) -> Wide:
        """Of three operands."""
        return Wide(self.data + other.data + third.data, (self, other, third), (1, 1, 1))

    def doubled(self) -> Wide:
        """A derivative that is a constant."""
        return Wide(self.data * 2.0, (self,), (2.0,))

    def bent(self, other: Any) -> Wide:
        """A product with the derivatives of something else."""
        return Wide(self.data * other.data, (self, other), (self.data, other.data))

    def shifted(self, other: Any) -> Wide:
        """A sum with other derivatives than one."""
        return Wide(self.data + other.data, (self, other), (1, 0.5))

    def same(self) -> Wide:
        """An object with the data of another one."""
        return Wide(self.data, (self,), (1.0,))

    def detached(self) -> Wide:
        """A node that gradients do not reach."""
        return Wide(self.data)

    def deaf(self) -> Wide:
        """A node with operands and without derivatives."""
        return Wide(self.data * 3.0, (self,), ())


OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sums and products": lambda a, b, c: a * b + c * a + b * b,
    "three operands": lambda a, b, c: a.sum3(b, c) * a + c,
    "constant derivatives": lambda a, b, c: (a * b).doubled() * c + a.doubled(),
    "other derivatives": lambda a, b, c: (a.bent(b) + c * a).shifted(b) * a.bent(c),
    "data of another node": lambda a, b, c: (a * b).same() * (a * b).same() + (a * c).same() * c,
    "data used twice": lambda a, b, c: (lambda p: p * p.same() + p)(a * b) + c,
    "no gradient": lambda a, b, c: (a * b).detached() * c + a * b.detached() + c.detached() * a.detached(),
    "no derivatives": lambda a, b, c: (a * b).deaf() * c + (a.deaf() + b) * c,
    "an operand twice": lambda a, b, c: (a * a + a) * (b + b) + (a * a) * c,
    "constants on either side": lambda a, b, c: Wide(0.0) + a * b + (c * Wide(-1.0) + Wide(2.0)) * (Wide(0.3) * a * b),
    "other derivatives by constants": lambda a, b, c: a.bent(Wide(0.3)) + Wide(0.4).bent(b) * Wide(2.0).shifted(c * a),
    "constants alone": lambda a, b, c: (lambda two: (two + two) * a * two + two * (two * b) + c)(Wide(2.0)),
    "a constant that depends": lambda a, b, c: Wide(1.5, (a,), (b.data,)) * c + Wide(1.5, (b,), (2.0,)) + a,
    "many contributions": lambda a, b, c: a * b + (a * c + (a * a + (b * a + (c * c + b * c) * a) * a) * b) * a,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_01_bits_are_those_of_the_class(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients of parameters and of computed nodes, below a choice among the results."""
    operation = OPERATIONS[name]

    def made() -> tuple[list[Wide], Callable[[int, float], Any]]:
        draw = random.Random(3)
        weights = [Wide(draw.uniform(-1.5, 1.5)) for _ in range(7)]
        for weight in weights:
            weight.grad = 0.0

        def step(target: int, rate: float) -> Any:
            inner = [operation(*weights[k : k + 3]) for k in range(4)]
            probabilities = [inner[k] * weights[k + 1] for k in range(4)]
            loss = probabilities[target] * weights[0] + inner[0] * weights[6]
            loss.backward()
            gradients = [weight.grad for weight in weights]
            for weight in weights:
                weight.data -= rate * weight.grad * 1e-3
                weight.grad = 0.0
            return loss.data, gradients, inner[0].grad

        return weights, step

    mine, plain = made()
    theirs, decorated = made()
    step = mgjit.compile(decorated, background=False)
    taken: list[str] = []
    monkeypatch.setattr(symbolic, "StyledGraph", lambda *given: [taken.append(name), StyledGraph(*given)][1])
    for call in range(6):
        assert bits(step(call % 4, 0.1 + call)) == bits(plain(call % 4, 0.1 + call))
        assert bits([weight.data for weight in theirs]) == bits([weight.data for weight in mine])
    assert taken
    assert step.stats.calls == 6


def test_02_two_passes_over_shared_nodes() -> None:
    """Records that an earlier pass has gone through are not converted again."""

    def made() -> tuple[list[Node], Callable[[int], Any]]:
        weights = [Node(0.3 * k - 0.7) for k in range(5)]
        for weight in weights:
            weight.grad = 0.0

        def step(target: int) -> Any:
            found = [weights[k] * weights[k + 1] + weights[0] for k in range(4)]
            (found[target] * weights[2]).backward()
            first = [weight.grad for weight in weights]
            again = [weights[k] * weights[k + 1] + Node(found[k].data) for k in range(4)]
            (again[target] * weights[1]).backward()
            second = [weight.grad for weight in weights]
            for weight in weights:
                weight.grad = 0.0
            return first, second

        return weights, step

    _, plain = made()
    _, decorated = made()
    step = mgjit.compile(decorated, background=False)
    for call in range(6):
        assert bits(step(call % 4)) == bits(plain(call % 4))
