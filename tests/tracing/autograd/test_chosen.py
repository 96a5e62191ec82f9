"""Objects that a traced index chooses."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import pytest

import mgjit
from mgjit.errors import IndexRangeError, TraceError
from mgjit.tracing.autograd.node_class import node_class


class Node:
    """An autograd class that keeps operands and local derivatives."""

    __slots__ = ("_derivatives", "_operands", "data", "grad")

    def __init__(self, data: Any, operands: Any = (), derivatives: Any = ()) -> None:
        self.data, self.grad, self._operands, self._derivatives = data, 0, operands, derivatives

    def __add__(self, other: Any) -> Node:
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data + other.data, (self, other), (1, 1))

    def __mul__(self, other: Any) -> Node:
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data * other.data, (self, other), (other.data, self.data))

    __radd__, __rmul__ = __add__, __mul__

    def backward(self) -> None:
        order: list[Node] = []
        visited = set()

        def visit(node: Node) -> None:
            if node not in visited:
                visited.add(node)
                for operand in node._operands:
                    visit(operand)
                order.append(node)

        visit(self)
        self.grad = 1
        for node in reversed(order):
            for operand, derivative in zip(node._operands, node._derivatives):
                operand.grad += derivative * node.grad


class Opaque(Node):
    """The same with operands where nobody finds them."""

    __slots__ = ("hidden",)

    def __mul__(self, other: Any) -> Opaque:
        made = Opaque(self.data * other.data)
        made.hidden = {"left": self, "right": other}
        return made


def model() -> tuple[list[list[Node]], list[list[Node]]]:
    table = [[Node(0.1 * (i + 1) - 0.07 * j) for j in range(3)] for i in range(5)]
    head = [[Node(0.3 - 0.11 * i * j) for j in range(3)] for i in range(5)]
    return table, head


def logits(table: Any, head: Any, token: Any) -> list[Node]:
    return [sum(w * x for w, x in zip(row, table[token])) for row in head]  # type: ignore[misc]


def test_01_an_embedding() -> None:
    """Rows of parameters by a run-time index; the same row twice adds up."""
    table, head = model()
    expected = copy.deepcopy((table, head))

    def make(table: Any, head: Any) -> Any:
        def step(tokens: list[int]) -> Any:
            total = Node(0.0)
            for token in tokens:
                for out in logits(table, head, token):
                    total = total + out * out
            for p in [p for row in table + head for p in row]:
                p.grad = 0
            total.backward()
            for p in [p for row in table + head for p in row]:
                p.data -= 0.01 * p.grad
            return total.data

        return step

    step, plain = mgjit.compile(make(table, head)), make(*expected)
    for tokens in ([0, 1, 2], [4, 4, 4], [3, 0, 3]):
        assert step(tokens) == plain(tokens)
        for ours, theirs in zip((table, head), expected):
            assert [[p.data for p in row] for row in ours] == [[p.data for p in row] for row in theirs]
            assert [[p.grad for p in row] for row in ours] == [[p.grad for p in row] for row in theirs]
    assert step.stats.traces == 1
    with pytest.raises(IndexRangeError):
        step([0, 5, 1])
    assert [[p.data for p in row] for row in table] == [[p.data for p in row] for row in expected[0]]


def test_02_the_order_of_backward_depends_on_the_index() -> None:
    """The chosen node comes first in the search, and its contributions last: bit for bit for every index."""
    table, head = model()
    expected = copy.deepcopy((table, head))

    def make(table: Any, head: Any) -> Any:
        def step(token: int, target: int, third: int) -> Any:
            outs = logits(table, head, token)
            shared = sum(out * 0.37 for out in outs)
            loss = outs[target] * shared + shared * shared * 0.21  # the chosen one first
            more = logits(table, head, third)
            loss = loss + more[third] * sum(more)
            for p in [p for row in table + head for p in row]:
                p.grad = 0
            loss.backward()
            return loss.data

        return step

    step, plain = mgjit.compile(make(table, head)), make(*expected)
    for target in range(5):
        for token in (0, 3):
            assert step(token, target, 4 - target) == plain(token, target, 4 - target)
            for ours, theirs in zip((table, head), expected):
                assert [[p.grad for p in row] for row in ours] == [[p.grad for p in row] for row in theirs], target
    assert step.stats.traces == 1
    assert "backward" in vars(Node)
    assert Node.backward.__qualname__ == "Node.backward"


@pytest.mark.usefixtures("no_paths")
def test_03_a_class_that_is_not_understood() -> None:
    """Its parameters can be looked up; nodes of its graph cannot, and the error says what to write."""
    known = node_class(Opaque)
    assert known is not None
    assert known.kind is Node
    assert known.style is not None
    weights = [Opaque(0.5 * k) for k in range(3)]
    assert mgjit.compile(lambda k: weights[k].data * 2)(2) == 2.0
    with pytest.raises(TraceError, match=r"test_chosen\.py:\d+: which Opaque is meant.*one_hot"):
        mgjit.compile(lambda k: [w * w for w in weights][k].data)(2)


@pytest.mark.usefixtures("no_paths")
def test_04_things_that_are_not_alike() -> None:
    """Rows of different lengths, objects of different classes, dicts."""
    for table in ([[1.0], [1.0, 2.0]], [Node(1.0), 2.0], [{"a": 1.0}, {"a": 2.0}], ["a", "b"]):
        with pytest.raises(TraceError, match=r"test_chosen\.py:\d+"):
            mgjit.compile(lambda k, table=table: table[k])(1)


class Point(NamedTuple):
    x: float
    y: float

    def area(self) -> float:
        return self.x * self.y


class Other(NamedTuple):
    x: float
    z: float


def test_04_tuples_with_names() -> None:
    """They have the names, the methods and the class of those among which an index chooses; others are not alike."""
    points = [Point(0.5 * k, 0.25 + k) for k in range(4)]

    def step(k: int) -> Any:
        p = points[k]
        return p.area() + p[0] - p.y, p._replace(x=p.y), isinstance(p, Point), p

    compiled = mgjit.compile(step)
    assert [repr(compiled(k)) for k in (1, 3, 2)] == [repr(step(k)) for k in (1, 3, 2)]
    assert compiled.stats.traces == 1


@pytest.mark.usefixtures("no_paths")
def test_04_tuples_with_other_names() -> None:
    mixed = [Point(0.5, 1.0), Other(1.0, 2.0)]
    with pytest.raises(TraceError, match="not alike"):
        mgjit.compile(lambda k: mixed[k].x)(1)


def test_05_what_is_the_same_for_all() -> None:
    """Any index gives it."""
    same = object()
    assert mgjit.compile(lambda k: ([same, same][k] is same) * 1.0)(1) == 1.0


def test_06_nodes_that_were_used_before_the_choice() -> None:
    """Where the order cannot be told, a TraceError instead of a wrong last bit."""
    weights = [Node(0.5 * k) for k in range(3)]

    def step(k: int, other: int) -> Any:
        nodes = [w * w for w in weights]
        loss = nodes[k] * nodes[other]
        loss.backward()
        return loss.data

    with pytest.raises(TraceError, match="two traced indices"):
        mgjit.compile(step)(1, 2)


def test_07_choosing_among_what_was_chosen() -> None:
    """Twice among parameters; twice among nodes of a graph is a TraceError."""

    def make() -> tuple[list[list[Node]], Any]:
        table = [[Node(0.1 * i - 0.7 * j) for j in range(3)] for i in range(4)]

        def step(i: int, j: int, x: float) -> Any:
            loss = table[i][j] * x * table[1][j]
            loss.backward()
            for row in table:
                for node in row:
                    node.data -= 0.1 * node.grad
                    node.grad = 0
            return loss.data

        return table, step

    mine, undecorated = make()
    theirs, plain = make()
    step = mgjit.compile(plain)
    for i, j, x in ((0, 0, 1.5), (3, 2, -0.5), (1, 1, 2.0), (1, 2, 0.25)):
        assert step(i, j, x) == undecorated(i, j, x)
        assert [[n.data for n in row] for row in mine] == [[n.data for n in row] for row in theirs]
    with pytest.raises(TraceError, match=r"test_chosen\.py:\d+.*that another one has chosen"):
        mgjit.compile(lambda i, j: [[n * n for n in row] for row in mine][i][j].data)(1, 2)


def test_08_leaves_with_operands_in_sets_and_dicts() -> None:
    """Empty ones are as good as one another, whichever row is meant."""
    for container in (set, frozenset, dict, list, tuple):
        table = [[Node(0.5 * i - 0.3 * j, container(), container()) for j in range(2)] for i in range(3)]
        step = mgjit.compile(lambda k, table=table: [node.data * 2.0 for node in table[k]])
        assert [step(k) for k in (0, 2)] == [[node.data * 2.0 for node in table[k]] for k in (0, 2)]
