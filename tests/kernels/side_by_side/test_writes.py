"""What a step writes: `.loop(threads=)` refuses it, and says what and where."""

from __future__ import annotations

import inspect
from array import array
from typing import Any

import pytest

import mgjit
from mgjit import Value, nn
from mgjit.errors import SharedWriteError


class Node:
    """A scalar of a class of the user's."""

    def __init__(self, data: float) -> None:
        self.data = data
        self.grad = 0.0


class Model:
    """Everything that a step can write."""

    def __init__(self) -> None:
        self.layer, self.node, self.steps = nn.MLP(1, [2, 1], seed=1), Node(1.0), 0
        self.moments, self.history, self.own = mgjit.zeros(3), [1.0, 2.0], [Node(0.1 * k) for k in range(20)]

    @mgjit.compile
    def parameter(self, x: Any) -> Any:
        y = self.layer([x])
        self.layer.layers[1].neurons[0].w[1].data = x * 2.0  # here
        return y

    @mgjit.compile
    def gradient(self, x: Any) -> Any:
        self.layer.layers[0].neurons[0].b.grad += x  # here
        return self.layer([x])

    @mgjit.compile
    def backward(self, x: Any) -> Any:
        y = self.layer([x])
        y.backward()  # here
        return y

    @mgjit.compile
    def state(self, x: Any) -> Any:
        self.moments[1] = x  # here
        return self.layer([x])

    @mgjit.compile
    def count(self, x: Any) -> Any:
        self.steps += 1  # here
        return self.layer([x])

    @mgjit.compile
    def element(self, x: Any) -> Any:
        self.history[1] *= x  # here
        return self.layer([x])

    @mgjit.compile
    def object(self, x: Any) -> Any:
        self.own[3].data = self.own[2].data * x  # here
        return self.layer([x])

    @mgjit.compile
    def argument(self, x: Any) -> Any:
        x[0] = x[1] + 1.0
        return self.layer([x[0]])

    @mgjit.compile
    def reads(self, x: Any) -> Any:
        return self.layer([x]) * self.history[0] + self.steps + self.moments[0] + self.own[1].data


#: For each step, what it writes.
WRITTEN = {
    "parameter": "self.layer.layers[1].neurons[0].w[1].data",
    "gradient": "self.layer.layers[0].neurons[0].b.grad",
    "backward": "the gradients of parameters",
    "state": "self.moments[1]",
    "count": "Model.steps",
    "element": "Model.history[1]",
    "object": "self.own[3].data",
}


@pytest.mark.parametrize("has_run", [False, True])
@pytest.mark.parametrize("name", WRITTEN)
def test_01_what_and_where(name: str, has_run: bool) -> None:
    """The object by its path, the line of the assignment; nothing has changed."""
    model = Model()
    step = getattr(model, name)
    if has_run:
        step(0.0)
    with pytest.raises(SharedWriteError) as caught:
        step.loop([1.0, 2.0, 3.0], threads=2)
    lines, first = inspect.getsourcelines(step._function)
    line = next(first + k for k, text in enumerate(lines) if "# here" in text)
    assert f"{name} writes {WRITTEN[name]} ({__file__}:{line})" in str(caught.value)
    assert "mgjit.ensemble" in str(caught.value)
    assert step.stats.calls == int(has_run)
    expected = Model()
    getattr(expected, name).loop([1.0, 2.0, 3.0])
    step.loop([1.0, 2.0, 3.0], threads=1)
    if not has_run:
        assert [p.data for p in model.layer.parameters()] == [p.data for p in expected.layer.parameters()]


def test_02_an_argument() -> None:
    """An array that the step assigns elements of."""
    with pytest.raises(SharedWriteError, match="argument writes elements of an argument"):
        Model().argument.loop([array("d", [1.0, 2.0])] * 3, threads=2)


def test_03_reading() -> None:
    """Numbers of all kinds may be read, local Values made, and gradients taken that nobody else sees."""
    model = Model()
    assert model.reads.loop([1.0, 2.0, 3.0], threads=2) == model.reads.loop([1.0, 2.0, 3.0])

    @mgjit.compile
    def slope(x: float) -> float:
        v = Value(x)
        (v * v).backward()
        return v.grad

    assert list(slope.loop([1.0, 2.0, 3.0], threads=2)) == [2.0, 4.0, 6.0]


def test_04_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that only reads is not traced again."""
    model = Model()
    model.reads.loop([1.0, 2.0], threads=2)
    monkeypatch.setattr("mgjit.kernels.factory.Maker._trace", None)
    model.reads.loop([1.0, 2.0], threads=2)
