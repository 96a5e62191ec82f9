"""autograd/flow.py: what a backward pass adds to which gradient."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest

from mgjit.tracing.autograd.flow import Flow, NoFlow, observe
from mgjit.tracing.autograd.node_class import NodeClass, node_class
from tests.tracing.autograd import nodes


def class_of(kind: Any) -> NodeClass:
    known = node_class(kind)
    assert known is not None
    return known


def observed(root: Any) -> Flow:
    return observe(root, [class_of(type(root))], root.backward)


def graph(kind: Any) -> tuple[list[Any], Any]:
    """Leaves and root of an expression in which the order of additions shows."""
    a, b, c, d = (kind(number) for number in (0.1, -1.7, 0.9, 3.3e-3))
    e = a * b + c
    f = (e * d + a * e) * (b + e * c)
    return [a, b, c, d], f * e + a * f + c * 0.3


def replayed(flow: Flow) -> dict[int, float]:
    """The gradients that a flow gives."""
    gradients = {id(flow.root): float(flow.seed)}
    for source, target, factor, divides in flow.edges:
        gradient, key = gradients[id(source.thing)], id(target.thing)
        gradients[key] = gradients.get(key, 0.0) + (gradient / factor if divides else factor * gradient)
    return gradients


@pytest.mark.parametrize("kind", [nodes.Closures, nodes.Factors, nodes.Sets, nodes.Tape, nodes.Doubled])
def test_01_a_flow_is_what_the_class_does(kind: Any) -> None:
    """Edge by edge in its order, the same bits as the class's own gradients."""
    class_of(kind)  # which tries the class out, with a graph on its tape
    leaves, root = graph(kind)
    flow = observed(root)
    assert all(leaf.grad == 0 for leaf in leaves)  # observed, and not done
    found = replayed(flow)
    if kind is nodes.Tape:  # whose tape is empty by now
        leaves_again, root = graph(kind)
        root.backward()
        assert [found[id(leaf)] for leaf in leaves] == [leaf.grad for leaf in leaves_again]
        return
    root.backward()
    assert [found[id(leaf)] for leaf in leaves] == [leaf.grad for leaf in leaves]


def test_02_the_class_is_as_before() -> None:
    """With dicts and with slots, and after a refusal."""
    for kind in (nodes.Closures, nodes.Factors, nodes.Clipped):
        before = dict(vars(kind))
        a = kind(2.0)
        root = a * a
        try:
            observed(root)
        except NoFlow:
            assert kind is nodes.Clipped
        assert dict(vars(kind)) == before
        root.grad = 5
        assert root.grad == 5


def exchanged(self: Any, out: Any) -> None:
    """As `self.grad, other.grad = self.grad + ..., other.grad + ...`, where both are the same node."""
    first, second = self.grad + out.grad, self.grad + 2.0 * out.grad
    self.grad = first
    self.grad = second


def refused() -> Iterator[tuple[str, Any]]:
    """Things that a backward pass may do with gradients, and that no flow can express."""
    yield "clips", lambda self, out: setattr(self, "grad", max(self.grad, out.grad))
    yield "divides", lambda self, out: setattr(self, "grad", self.grad + 1.0 / out.grad)
    yield "multiplies twice", lambda self, out: setattr(self, "grad", self.grad + 2.0 * out.grad * 3.0)
    yield "squares", lambda self, out: setattr(self, "grad", self.grad + out.grad * out.grad)
    yield "asks", lambda self, out: setattr(self, "grad", self.grad + out.grad if out.grad else self.grad)
    yield "compares", lambda self, out: setattr(self, "grad", self.grad if out.grad == 0.0 else out.grad)
    yield "assigns", lambda self, out: setattr(self, "grad", 3.0 * out.grad)
    yield "assigns a number", lambda self, out: setattr(self, "grad", 3.0)
    yield "assigns another's", lambda self, out: setattr(self, "grad", out.grad + out.grad)
    yield "calls float", lambda self, out: setattr(self, "grad", self.grad + float(out.grad))
    yield "calls a function", lambda self, out: setattr(self, "grad", self.grad + math.sqrt(out.grad))
    yield "uses it as a key", lambda self, out: {out.grad: 1}
    yield "keeps an old one", exchanged
    yield "doubles its own", lambda self, out: setattr(self, "grad", self.grad + self.grad)
    yield "raises to a power", lambda self, out: setattr(self, "grad", self.grad + out.grad**2)
    yield "prints", lambda self, out: f"{out.grad}"
    yield "clears late", lambda self, out: (setattr(self, "grad", self.grad + out.grad), setattr(self, "grad", 0.0))


@pytest.mark.parametrize(("name", "action"), list(refused()), ids=[name for name, _ in refused()])
def test_03_what_is_no_flow(name: str, action: Any) -> None:
    """Anything but products with numbers, added up."""

    class Odd(nodes.Closures):
        def odd(self) -> Any:
            out = Odd(self.data, (self,))
            out._backward = lambda: action(self, out)
            return out

    root = Odd(0.5).odd() * 1.0
    with pytest.raises(NoFlow):
        observed(root)


def test_04_ways_to_write_an_addition() -> None:
    """In place, from the left, from the right, subtracted, two at once."""

    class Written(nodes.Closures):
        def through(self, action: Any) -> Any:
            out = Written(self.data, (self,))
            out._backward = lambda: setattr(self, "grad", action(self.grad, out.grad))
            return out

    ways = [
        (lambda old, g: old + g, [1.0]), (lambda old, g: g + old, [1.0]), (lambda old, g: 3.0 * g + old, [3.0]),
        (lambda old, g: old - g, [-1.0]), (lambda old, g: old + -(2.0 * g), [-2.0]), (lambda old, g: old - g * 2, [-2]),
        (lambda old, g: old + g * 0.5 + g * True, [0.5, True]), (lambda old, g: +old + +g, [1.0]),
        (lambda old, g: old + g / 4, [4]), (lambda old, g: old - g / 4.0, [-4.0]),
    ]  # fmt: skip
    for action, factors in ways:
        leaf = Written(0.5)
        flow = observed(leaf.through(action))
        assert [factor for _, _, factor, _ in flow.edges] == factors
        assert all(target.thing is leaf for _, target, _, _ in flow.edges)


def test_05_zeroes_before() -> None:
    """Some classes clear the gradients of all nodes first."""

    class Clearing(nodes.Closures):
        def backward(self) -> None:
            for node in (a, b):
                node.grad = 0.0
            super().backward()

    a, b = Clearing(2.0), Clearing(3.0)
    a.grad = 9.0
    flow = observed(a * b)
    assert set(flow.zeroed) == {id(a), id(b)}
    assert replayed(flow)[id(a)] == 3.0


def test_06_a_backward_pass_without_a_seed() -> None:
    """It is not one."""

    class Seedless(nodes.Closures):
        def backward(self) -> None:
            self._backward()

    with pytest.raises(NoFlow, match="gradient of 1"):
        observe(Seedless(1.0) * 2.0, [class_of(nodes.Closures)], lambda: None)


def test_07_nodes_that_the_root_does_not_depend_on() -> None:
    """A tape may hold others; adding zero times infinity is not nothing."""
    class_of(nodes.Tape)  # which tries the class out, with a graph on its tape
    a = nodes.Tape(2.0)
    a * 3.0
    root = a * 5.0
    with pytest.raises(NoFlow, match="does not depend on"):
        observed(root)
    nodes.TAPE.clear()


def test_08_random_graphs() -> None:
    """The flow gives the gradients of the class, bit for bit."""
    draw = random.Random(8)
    for _ in range(200):
        kind = draw.choice([nodes.Closures, nodes.Factors])
        leaves = [kind(draw.uniform(-2, 2)) for _ in range(3)]
        made = list(leaves)
        for _ in range(draw.randrange(1, 25)):
            x, y = draw.choice(made), draw.choice(made)
            made.append(draw.choice([x + y, x * y, x * draw.uniform(-1, 1)]))
        root = made[-1]
        if root in leaves:
            continue
        found = replayed(observed(root))
        root.backward()
        assert [found.get(id(leaf), 0.0) for leaf in leaves] == [leaf.grad for leaf in leaves]


def test_09_what_backward_returns() -> None:
    """Is returned, but for gradients."""

    class Returning(nodes.Closures):
        def backward(self, what: str = "data") -> Any:
            super().backward()
            return getattr(self, what)

    assert observed(Returning(0.5) * 3.0).returned == 1.5
    root = Returning(0.5) * 3.0
    with pytest.raises(NoFlow, match="returns a gradient"):
        observe(root, [class_of(Returning)], lambda: root.backward("grad"))


def test_10_a_root_that_is_cleared_afterwards() -> None:
    """Its gradient is 0 then, and not the 1 that a flow begins with."""

    class Cleared(nodes.Closures):
        def backward(self) -> None:
            super().backward()
            if final:
                self.grad = 0.0

    final: list[int] = []
    observed(Cleared(0.5) * 3.0)
    final.append(1)
    with pytest.raises(NoFlow):
        observed(Cleared(0.5) * 3.0)


def test_20_errors_that_backward_catches() -> None:
    """What a class does when it cannot multiply gradients is not what it does with numbers."""

    class Catching(nodes.Closures):
        def doubled(self) -> Any:
            out = Catching(self.data * 2.0, (self,))

            def _backward() -> None:
                try:
                    self.grad += out.grad * out.grad
                except BaseException:
                    self.grad += 2.0 * out.grad

            out._backward = _backward
            return out

    root = Catching(1.0).doubled() * 1.0
    with pytest.raises(NoFlow, match="goes on"):
        observed(root)
