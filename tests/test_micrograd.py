"""PyPI's micrograd, unmodified: its own classes imported, a decorator around the step.

Its operands are in sets, whose order depends on where objects lie in memory, and with it the order in which gradients
are added up: two runs of one program differ in last bits.  mgjit adds in the reverse of the order in which nodes are
made.  So what is compared bit for bit is (1) everything up to the first gradient, (2) steps in which no gradient has
more than one contribution, for which the order does not matter, and (3) a run in which micrograd's own closures are
called in that order; and (4) runs as they are, closely.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mgjit

engine = pytest.importorskip("micrograd.engine")
nn = pytest.importorskip("micrograd.nn")


@pytest.fixture
def in_order_of_creation(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """micrograd's own closures, called in the reverse of the order in which nodes are made."""
    made: list[Any] = []
    original = engine.Value.__init__

    def remember(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        made.append(self)

    def backward(self: Any) -> None:
        self.grad = 1
        reached = {self}
        for node in reversed(made):
            if node in reached:
                node._backward()
                reached |= node._prev
        made.clear()

    monkeypatch.setattr(engine.Value, "__init__", remember)
    monkeypatch.setattr(engine.Value, "backward", backward)
    yield
    monkeypatch.undo()


def moons(sizes: list[int], regularisation: float = 1e-4) -> tuple[Any, Callable[..., float]]:
    """The step of micrograd's demo: hinge loss, regularisation, descent."""
    random.seed(1337)
    model = nn.MLP(sizes[0], sizes[1:])

    def step(xs: list[list[float]], ys: list[float], rate: float) -> float:
        inputs = [list(map(engine.Value, row)) for row in xs]
        scores = list(map(model, inputs))
        losses = [(1 + -y * score).relu() for y, score in zip(ys, scores)]
        total = sum(losses) * (1.0 / len(losses))
        if regularisation:
            total = total + regularisation * sum(p * p for p in model.parameters())
        model.zero_grad()
        total.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        return total.data  # type: ignore[no-any-return]

    return model, step


def samples(count: int, seed: int) -> tuple[list[list[float]], list[float]]:
    draw = random.Random(seed)
    xs = [[draw.uniform(-1, 1), draw.uniform(-1, 1)] for _ in range(count)]
    return xs, [1.0 if x * x > abs(y) else -1.0 for x, y in xs]


def numbers(model: Any) -> list[Any]:
    return [(p.data, p.grad) for p in model.parameters()]


def test_01_its_closures_in_the_order_of_creation(in_order_of_creation: None) -> None:
    """Several calls of the demo's step: losses, parameters and gradients, bit for bit."""
    mine, undecorated = moons([2, 8, 8, 1])
    wanted = [(undecorated(*samples(5, k), 0.1), numbers(mine)) for k in range(4)]
    assert len({loss for loss, _ in wanted}) == 4


def test_02_equal_to_them_bit_for_bit(request: pytest.FixtureRequest) -> None:
    """The decorated step with micrograd as it is, against that."""
    theirs, plain = moons([2, 8, 8, 1])
    step = mgjit.compile(plain)
    found = [(step(*samples(5, k), 0.1), numbers(theirs)) for k in range(4)]
    assert "symbolically" in step.lower(*samples(5, 9), 0.1).explain()
    request.getfixturevalue("in_order_of_creation")
    mine, undecorated = moons([2, 8, 8, 1])
    wanted = [(undecorated(*samples(5, k), 0.1), numbers(mine)) for k in range(4)]
    assert found == wanted


def test_03_where_the_order_does_not_matter() -> None:
    """One unit, one sample: every gradient has one contribution. micrograd as it is, on both sides."""
    mine, undecorated = moons([2, 1], regularisation=0.0)
    theirs, plain = moons([2, 1], regularisation=0.0)
    step = mgjit.compile(plain)
    for k in range(6):
        assert step(*samples(1, k), 0.1) == undecorated(*samples(1, k), 0.1)
        assert numbers(theirs) == numbers(mine)


def test_04_close_to_any_order() -> None:
    """Calls of the demo's step against a run with whatever order its sets have."""
    mine, undecorated = moons([2, 16, 16, 1])
    theirs, plain = moons([2, 16, 16, 1])
    step = mgjit.compile(plain)
    for k in range(5):
        wanted = undecorated(*samples(4, k), 0.05)
        found = step(*samples(4, k), 0.05)
        assert found == wanted if k == 0 else found == pytest.approx(wanted, rel=1e-9)
    assert [p.data for p in theirs.parameters()] == pytest.approx([p.data for p in mine.parameters()], rel=1e-8)
