"""Steps that share parameters: none is worse for having been built after another, and all compute what Python does."""

from __future__ import annotations

import itertools
import random
from array import array
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.ir.program import Load, Node, Statement, TargetChoice, walk
from mgjit.ir.rewrite import operand_arrays
from mgjit.step.lowering import Lowering
from tests.lowering import bits, numbers

#: A step with the arguments of a call.
Call = tuple[Callable[..., Any], tuple[Any, ...]]


class Number:
    """A small autograd class."""

    __slots__ = ("data", "grad", "local", "operands")

    def __init__(self, data: Any, operands: Any = (), local: Any = ()) -> None:
        self.data, self.grad, self.operands, self.local = data, 0.0, operands, local

    def __add__(self, other: Any) -> Any:
        other = other if isinstance(other, Number) else Number(other)
        return Number(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other: Any) -> Any:
        other = other if isinstance(other, Number) else Number(other)
        return Number(self.data * other.data, (self, other), (other.data, self.data))

    __radd__, __rmul__ = __add__, __mul__

    def backward(self) -> None:
        """The gradients of all nodes."""
        order: list[Any] = []
        seen = set()

        def visit(node: Any) -> None:
            if id(node) not in seen:
                seen.add(id(node))
                for operand in node.operands:
                    visit(operand)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for operand, local in zip(node.operands, node.local):
                operand.grad += local * node.grad


def descend(loss: Any, parameters: list[Any], rate: Any) -> Any:
    """One step of gradient descent."""
    for p in parameters:
        p.grad = 0.0
    loss.backward()
    for p in parameters:
        p.data -= rate * p.grad
    return loss


def perceptron() -> tuple[dict[str, Call], list[Any]]:
    """Over mgjit.nn, called with lists and with arrays."""
    model = nn.MLP(12, [20, 4], seed=2)
    x = numbers(12)

    def train(x: Any, rate: Any) -> Any:
        return descend(sum(s * s for s in model(x)), model.parameters(), rate)

    steps: dict[str, Call] = {"train": (train, (x, 0.01)), "predict": (model.__call__, (x,))}
    return {**steps, "arrays": (train, (array("d", x), 0.01))}, model.parameters()


def own_class() -> tuple[dict[str, Call], list[Any]]:
    """Over a class that is not ours."""
    draw = random.Random(1)
    rows, others = ([[Number(draw.gauss(0.0, 0.3)) for _ in range(n)] for _ in range(m)] for n, m in ((9, 12), (12, 8)))
    parameters = [p for row in [*rows, *others] for p in row]
    x = numbers(9)

    def forward(x: Any) -> list[Any]:
        for matrix in (rows, others):
            x = [sum((w * v for w, v in zip(row, x)), Number(0.0)) for row in matrix]
        return x  # type: ignore[no-any-return]

    def train(x: Any, rate: Any) -> Any:
        return descend(sum((s * s for s in forward(x)), Number(0.0)), parameters, rate).data

    def predict(x: Any) -> list[Any]:
        return [s.data for s in forward(x)]

    return {
        "train": (train, (x, 0.01)),
        "predict": (predict, (x,)),
        "arrays": (train, (array("d", x), 0.01)),
    }, parameters


def two_heads() -> tuple[dict[str, Call], list[Any]]:
    """Two networks that share a layer; what the second adds lies behind a gap."""
    base, heads = nn.MLP(10, [16], seed=3), [nn.MLP(16, [n], seed=n) for n in (8, 9)]
    parameters = [p for part in (base, *heads) for p in part.parameters()]

    def network(head: nn.MLP) -> Call:
        def train(x: Any, rate: Any) -> Any:
            return descend(sum(s * s for s in head(base(x))), base.parameters() + head.parameters(), rate)

        return train, (numbers(10), 0.01)

    return {"one": network(heads[0]), "other": network(heads[1])}, parameters


def momentum() -> tuple[dict[str, Call], list[Any]]:
    """With state beside each parameter, whose order is fixed."""
    model = nn.MLP(12, [20, 4], seed=2)
    state = mgjit.zeros(len(model.parameters()))
    x = numbers(12)

    def train(x: Any, rate: Any) -> Any:
        loss = sum(s * s for s in model(x))
        model.zero_grad()
        loss.backward()
        for k, p in enumerate(model.parameters()):
            state[k] = 0.9 * state[k] + p.grad
            p.data -= rate * state[k]
        return loss

    return {"train": (train, (x, 0.01)), "predict": (model.__call__, (x,))}, model.parameters()


def embedding() -> tuple[dict[str, Call], list[Any]]:
    """A table that one step looks up in, and another sums over; the other step chooses the layout if it comes first."""
    draw = random.Random(4)
    table = [[mgjit.Value(draw.gauss(0.0, 0.5)) for _ in range(6)] for _ in range(10)]
    parameters = [p for row in table for p in row]
    x = numbers(6)

    def scores(x: Any) -> list[Any]:
        return [mgjit.dot(row, x) for row in table]

    def train(token: Any, rate: Any) -> Any:
        return descend(sum(s * s for s in scores(mgjit.take(table, token))), parameters, rate)

    return {"train": (train, (3, 0.01)), "predict": (scores, (x,))}, parameters


MODELS = [perceptron, own_class, two_heads, momentum, embedding]
ORDERS = [
    pytest.param(make, order, id=f"{make.__name__}: {', then '.join(order)}")
    for make in MODELS
    for order in itertools.permutations(make()[0])
]


def flat(result: Any) -> list[bytes]:
    """The bits of all numbers of a result."""
    if isinstance(result, (list, tuple)):
        return [one for part in result for one in flat(part)]
    return [bits(getattr(result, "data", result))]


@pytest.mark.parametrize(("make", "order"), ORDERS)
def test_01_the_numbers_of_plain_python(make: Any, order: tuple[str, ...]) -> None:
    """Built in any order and then called in turns, while Python changes the parameters, too."""
    backend = ("python", "auto")[[one.values[1] for one in ORDERS if one.values[0] is make].index(order) % 2]
    (plain, expected), (steps, found) = make(), make()
    compiled = {
        name: (mgjit.compile(backend=backend, background=False)(step), given) for name, (step, given) in steps.items()
    }
    for turn in range(4):
        for name in order:
            results = [step(*given) for step, given in (plain[name], compiled[name])]
            assert flat(results[0]) == flat(results[1]), (turn, name)
            for parameters in (expected, found):
                parameters[turn].data += 0.125
            assert [bits(p.data) for p in expected] == [bits(p.data) for p in found], (turn, name)
            assert [bits(p.grad) for p in expected] == [bits(p.grad) for p in found], (turn, name)
    for name in order:
        assert compiled[name][0].stats.traces == 1
        assert not compiled[name][0].stats.mismatches


def lowered(make: Any, order: tuple[str, ...]) -> Lowering:
    """The last step of an order, lowered after the others have been called."""
    steps, _ = make()
    for name in order[:-1]:
        step, given = steps[name]
        mgjit.compile(backend="python", background=False, verify="never")(step)(*given)
    step, given = steps[order[-1]]
    return mgjit.compile(step).lower(*given)  # type: ignore[no-any-return]


def tables(nodes: list[Node]) -> int:
    """How many operands and targets are parameters or gradients at places that no formula gives."""
    found = 0
    for node in walk(nodes):
        for operand in node.operands if isinstance(node, Statement) else ():
            own = [array for array in operand_arrays(operand) if array.space in ("parameter", "gradient")]
            if own and not (isinstance(operand, Load) and operand.reference.index.table is None):
                found += 1
        found += isinstance(node, Statement) and isinstance(node.target, TargetChoice)
    return found


@pytest.mark.once
@pytest.mark.parametrize(("make", "order"), [one for one in ORDERS if one.values[0] is not momentum])
def test_02_as_many_statements_as_alone(make: Any, order: tuple[str, ...]) -> None:
    """A step that is built later has the loops that it has alone, but for those that are cut between storages."""
    alone, after = lowered(make, order[-1:]).lowered, lowered(make, order).lowered
    phases = [[node for _, phase in one.program.phases for node in phase] for one in (alone, after)]
    assert tables(phases[1]) <= tables(phases[0])
    assert after.statements <= alone.statements + (20 if make in (two_heads, embedding) else 0)


def test_03_parameters_that_were_left_out() -> None:
    """A step that uses every second row first leaves gaps for the one that uses all: its loops are cut there."""
    model = nn.MLP(6, [40], seed=5)
    layer = model.layers[0].neurons
    first = mgjit.compile(backend="python", background=False)(lambda x: [n(x) for n in layer[:9] + layer[30:]])
    first(numbers(6))
    parameters = model.parameters()

    def clear(rate: Any) -> None:
        for p in parameters:
            p.data -= rate * p.data

    step = mgjit.compile(backend="python", background=False)(clear)
    found = step.lower(0.5).lowered
    assert tables([node for _, phase in found.program.phases for node in phase]) == 0
    before = [p.data for p in parameters]
    step(0.5)
    assert [p.data for p in parameters] == [number - 0.5 * number for number in before]
