"""Models and lists of parameters as arguments: known by identity at first, like captured ones."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import pytest

import mgjit
from mgjit import Value
from mgjit.tracing.call.known import KnownNode

COUNT = 40


class Node:
    """An autograd class as people write it."""

    def __init__(self, data: Any, children: Any = (), grads: Any = ()) -> None:
        self.data, self.grad, self._children, self._grads = data, 0.0, children, grads

    def __add__(self, other: Any) -> Node:
        return Node(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other: Any) -> Node:
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data * other.data, (self, other), (other.data, self.data))

    def backward(self) -> None:
        order: list[Node] = []
        seen: set[Node] = set()

        def visit(node: Node) -> None:
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


@dataclasses.dataclass
class Model:
    weights: list[Any]
    name: str = "model"


def _step(model: Any, x: float) -> Any:
    parts = model.weights if isinstance(model, Model) else model.values() if isinstance(model, dict) else model
    total = sum((p * x for p in parts), type(next(iter(parts)))(0.0))
    for p in parts:
        p.grad = 0.0
    total.backward()
    for p in parts:
        p.data -= 0.1 * p.grad
    return total.data


FORMS: list[Callable[[list[Any]], Any]] = [
    list,
    tuple,
    Model,
    lambda values: {f"w{k}": value for k, value in enumerate(values)},
]


@pytest.mark.parametrize("kind", [Value, Node])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fresh", [False, True])
def test_they_are_as_in_python(kind: Any, form: Callable[[list[Any]], Any], fresh: bool) -> None:
    outcomes = []
    for step in (_step, mgjit.compile(_step)):
        values = [kind(0.5 * k) for k in range(COUNT)]
        model = form(values)
        seen = [step(form(values) if fresh else model, 0.5 + k) for k in range(8)]
        outcomes.append((seen, [(v.data, v.grad) for v in values]))
    assert outcomes[0] == outcomes[1]
    assert step.stats.traces == 1
    assert isinstance(step._kernels.last.plan.nodes[0], KnownNode)


@pytest.mark.parametrize("form", FORMS[:1] + FORMS[2:])
def test_parameters_that_are_replaced_are_noticed(form: Callable[[list[Any]], Any]) -> None:
    outcomes = []
    for step in (_step, mgjit.compile(_step)):
        values = [Value(0.5 * k) for k in range(COUNT)]
        model = form(values)
        seen = [step(model, 0.5)]
        parts = model.weights if isinstance(model, Model) else model
        key = "w3" if isinstance(parts, dict) else 3
        parts[key] = Value(7.0)
        seen.append(step(model, 0.5))
        seen.append(step(form([Value(1.0) for _ in range(COUNT)]), 0.5))
        seen.append(step(form([Value(1.0) for _ in range(COUNT + 1)]), 0.5))
        outcomes.append(seen)
    assert outcomes[0] == outcomes[1]


def test_constants_in_a_model_are_compared_as_well() -> None:
    @mgjit.compile
    def step(model: Any, x: float) -> Any:
        return (sum((p * x for p in model.weights), Value(0.0)).data, model.name)

    values = [Value(0.5 * k) for k in range(COUNT)]
    model = Model(values)
    assert [step(model, 1.0)[1], step(Model(values, "other"), 1.0)[1], step(model, 1.0)[1]] == [
        "model",
        "other",
        "model",
    ]
    model.name = "third"
    assert step(model, 1.0)[1] == "third"


def test_columns_of_one_model() -> None:
    step = mgjit.compile(_step)
    wanted, got = [[Value(0.5 * k) for k in range(COUNT)] for _ in range(2)]
    expected = [_step(wanted, x) for x in (1.0, 2.0, 3.0)]
    assert list(step.loop([got] * 3, [1.0, 2.0, 3.0])) == expected
    assert [v.data for v in got] == [v.data for v in wanted]


def test_a_list_that_the_step_returns_is_the_one_of_the_call() -> None:
    @mgjit.compile
    def step(model: Any, x: float) -> Any:
        return model, model[0].data * x

    values = [Value(0.5 * k) for k in range(COUNT)]
    for _ in range(5):
        model = list(values)
        assert step(model, 1.0)[0] is model
