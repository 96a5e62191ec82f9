"""Nodes of an autograd graph that are made for one call and passed as arguments."""

from __future__ import annotations

from typing import Any, Callable

import pytest

import mgjit
from mgjit import Value


class Tuples:
    """Operands and local derivatives in tuples."""

    def __init__(self, data: Any, children: Any = (), grads: Any = ()) -> None:
        self.data, self.grad, self._children, self._grads = data, 0.0, children, grads

    def __add__(self, other: Any) -> Tuples:
        other = other if isinstance(other, Tuples) else Tuples(other)
        return Tuples(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other: Any) -> Tuples:
        other = other if isinstance(other, Tuples) else Tuples(other)
        return Tuples(self.data * other.data, (self, other), (other.data, self.data))

    def backward(self) -> None:
        order: list[Tuples] = []
        seen: set[Tuples] = set()

        def visit(node: Tuples) -> None:
            if node not in seen:
                seen.add(node)
                for child in node._children:
                    visit(child)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for child, grad in zip(node._children, node._grads):
                child.grad += grad * node.grad


class Closures:
    """As micrograd, with operands in a tuple."""

    def __init__(self, data: Any, children: Any = (), label: str = "") -> None:
        self.data, self.grad = data, 0.0
        self._prev, self.label = tuple(children), label
        self._backward: Callable[[], None] = lambda: None

    def __add__(self, other: Closures) -> Closures:
        out = Closures(self.data + other.data, (self, other))

        def _backward() -> None:
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out

    def __mul__(self, other: Closures) -> Closures:
        out = Closures(self.data * other.data, (self, other))

        def _backward() -> None:
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def backward(self) -> None:
        order: list[Closures] = []
        visited = set()

        def build(node: Closures) -> None:
            if node not in visited:
                visited.add(node)
                for child in node._prev:
                    build(child)
                order.append(node)

        build(self)
        self.grad = 1.0
        for node in reversed(order):
            node._backward()


class Slots(Tuples):
    __slots__ = ()


CLASSES = [Value, Tuples, Closures, Slots]
CALLS = 80


def _play(kind: Any, make_step: Callable[[list[Any]], Any], arguments: Callable[..., Any]) -> mgjit.runtime.stats.Stats:
    """Call a step plain and compiled with fresh nodes at every call; compare all numbers; returns the statistics."""
    outcomes = []
    for decorate in (lambda f: f, mgjit.compile):
        parameters = [kind(0.5 + k) for k in range(4)]
        step = decorate(make_step(parameters))
        seen: list[Any] = []
        for k in range(CALLS):
            given = arguments(k, kind, parameters)
            result = step(*given)
            nodes = [node for part in given for node in (part if isinstance(part, list) else [part])]
            seen.append(result.data if hasattr(result, "data") else result)
            seen.append([(n.data, n.grad) for n in nodes if hasattr(n, "grad")])
            seen.append([(p.data, p.grad) for p in parameters])
        outcomes.append([repr(part) for part in seen])
    assert outcomes[0] == outcomes[1]
    stats: Any = step.stats
    return stats


def _forward(parameters: list[Any]) -> Any:
    def step(xs: Any) -> Any:
        return xs[0] * xs[1] + xs[0]

    return step


def _backward(parameters: list[Any]) -> Any:
    def step(xs: Any) -> Any:
        y = xs[0] * xs[1] + xs[0]
        y.backward()
        return y

    return step


def _train(parameters: list[Any]) -> Any:
    def step(xs: Any, rate: float) -> Any:
        y = parameters[0] * xs[0]
        for p, x in zip(parameters[1:], xs[1:]):
            y = y + p * x
        for p in parameters:
            p.grad = 0.0
        y.backward()
        for p in parameters:
            p.data -= rate * p.grad
        return y

    return step


def _train_given(_: list[Any]) -> Any:
    def step(parameters: Any, xs: Any, rate: float) -> Any:
        return _train(parameters)(xs, rate)

    return step


def _assign(parameters: list[Any]) -> Any:
    def step(x: Any, y: Any, number: float) -> Any:
        z = x * y
        x.data = z.data + number
        y.data, y.grad = x.data, number
        return z.data

    return step


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("make_step", [_forward, _backward])
def test_fresh_nodes(kind: Any, make_step: Any) -> None:
    assert _play(kind, make_step, lambda k, kind, _: ([kind(k + 0.5), kind(1.0)],)).traces <= 3


@pytest.mark.parametrize("kind", CLASSES)
def test_beside_captured_parameters(kind: Any) -> None:
    stats = _play(kind, _train, lambda k, kind, _: ([kind(k + j + 0.5) for j in range(4)], 0.01))
    assert stats.traces <= 3


@pytest.mark.parametrize("kind", CLASSES)
def test_beside_parameters_that_are_arguments(kind: Any) -> None:
    stats = _play(kind, _train_given, lambda k, kind, ps: (ps, [kind(k + j + 0.5) for j in range(4)], 0.01))
    assert stats.traces <= 3


@pytest.mark.parametrize("kind", CLASSES)
def test_their_numbers_are_assigned(kind: Any) -> None:
    assert _play(kind, _assign, lambda k, kind, _: (kind(k + 0.5), kind(1.0), 0.25)).traces <= 3


@pytest.mark.parametrize("kind", CLASSES)
def test_one_node_twice_and_parameters_among_them(kind: Any) -> None:
    def arguments(k: int, kind: Any, parameters: list[Any]) -> Any:
        one = kind(k + 0.5)
        return [(one, one, 0.25), (parameters[k % 2], kind(2.0), 0.5), (one, kind(k + 1.5), 0.75)][k % 3]

    _play(kind, _assign, arguments)


@pytest.mark.parametrize("kind", [Tuples, Closures])
def test_ints_stay_ints(kind: Any) -> None:
    """Once it is known that there are others in every call; the first ones live in the memory of a kernel."""
    stats = _play(kind, _backward, lambda k, kind, _: ([kind(k), kind(3)] if k > 1 else [kind(0.5), kind(1.5)],))
    assert stats.traces <= 3


@pytest.mark.parametrize("kind", [Tuples, Closures])
@pytest.mark.parametrize("reads", [False, True])
def test_a_captured_node_among_them(kind: Any, reads: bool) -> None:
    def make(parameters: list[Any]) -> Any:
        p = parameters[0]

        def step(node: Any, x: float) -> Any:
            if not reads:
                p.data += x
            y = node * p
            node.grad = p.grad = 0.0
            y.backward()
            node.data -= 0.1 * node.grad
            return y.data, p.data

        return step

    def arguments(k: int, kind: Any, parameters: list[Any]) -> Any:
        return ([parameters[0], parameters[1], kind(3.0)][k % 3] if k != 4 else parameters[0], 0.5)

    _play(kind, make, arguments)


def test_labels_and_kinds_of_numbers_are_parts_of_the_structure() -> None:
    def make(parameters: list[Any]) -> Any:
        def step(x: Any) -> Any:
            return (x * x).data, x.label

        return step

    kinds = [0.5, 2, 1.5]
    stats = _play(Closures, make, lambda k, kind, _: (kind(kinds[k % 3], (), "ab"[k % 2]),))
    assert stats.traces <= 6


def test_a_node_that_is_returned_is_the_argument() -> None:
    @mgjit.compile
    def step(x: Any) -> Any:
        x.data = x.data * 2.0
        return [x, x.data]

    for k in range(10):
        node = Tuples(k + 0.5)
        returned, number = step(node)
        assert returned is node or k == 0
        assert node.data == number == 2 * k + 1.0


def test_rows_of_nodes() -> None:
    @mgjit.compile
    def step(x: Any, y: float) -> Any:
        z = x * Tuples(y)
        z.backward()
        return z.data

    for _ in range(3):
        nodes = [Tuples(k + 0.5) for k in range(5)]
        assert list(step.loop(nodes, [2.0] * 5)) == [1.0, 3.0, 5.0, 7.0, 9.0]
        assert [node.grad for node in nodes] == [2.0] * 5


def test_nodes_with_a_graph_behind_them_are_known_by_identity() -> None:
    @mgjit.compile(limit=3)
    def step(x: Any) -> Any:
        return (x * x).data

    product = Tuples(2.0) * Tuples(3.0)
    assert [step(product) for _ in range(5)] == [36.0] * 5
