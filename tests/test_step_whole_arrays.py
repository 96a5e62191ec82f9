"""Steps over whole numpy arrays run as plain Python, and the first call says why."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import mgjit
from mgjit.errors import PlainWarning

numpy = pytest.importorskip("numpy")


class Tensor:
    def __init__(self, data: Any, children: Any = ()) -> None:
        self.data, self.children = data, children
        self.grad: Any = numpy.zeros_like(data)
        self.pull: Any = lambda: None

    def __matmul__(self, other: Tensor) -> Tensor:
        out = Tensor(self.data @ other.data, (self, other))

        def pull() -> None:
            self.grad = self.grad + out.grad @ other.data.T
            other.grad = other.grad + self.data.T @ out.grad

        out.pull = pull
        return out

    def backward(self) -> None:
        self.grad = numpy.ones_like(self.data)
        pending = [self]
        for node in pending:
            node.pull()
            pending += node.children


class Layer:
    def __init__(self) -> None:
        self.weights = {"w": Tensor(numpy.arange(6.0).reshape(2, 3))}


def _make(decorate: Any) -> tuple[Any, Layer]:
    layer = Layer()

    def step(x: Any, rate: float) -> Any:
        w = layer.weights["w"]
        w.grad = numpy.zeros_like(w.data)
        out = Tensor(x) @ w
        out.backward()
        w.data -= rate * w.grad
        return out.data.sum()

    return decorate(step), layer


def test_engines_over_arrays() -> None:
    plain, wanted = _make(lambda f: f)
    compiled, got = _make(mgjit.compile)
    x = numpy.ones((4, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(20):
            assert compiled(x, 0.1) == plain(x, 0.1)
    assert (got.weights["w"].data == wanted.weights["w"].data).all()
    assert [w.category for w in caught] == [PlainWarning]
    assert "objects of class Tensor hold numpy arrays" in str(caught[0].message)
    assert compiled.stats.traces == 0


@pytest.mark.filterwarnings("ignore::mgjit.errors.BackendWarning")
@pytest.mark.parametrize(
    "function",
    [lambda a, b: (a @ b).sum(), lambda a, b: a + 1, numpy.dot, lambda a, b: numpy.exp(a).T,
     lambda a, b: a.mean(), lambda a, b: -a * 2.0],
)  # fmt: skip
def test_functions_of_whole_arrays(function: Any) -> None:
    def step(a: Any, b: Any) -> Any:
        return function(a, b)

    compiled = mgjit.compile(step)
    for k in range(5):
        a, b = numpy.arange(4.0).reshape(2, 2) + k, numpy.ones((2, 2))
        assert numpy.array_equal(compiled(a, b), step(a, b))
    assert compiled.stats.plain_calls == 5


def test_classes_that_hold_single_numbers_are_compiled() -> None:
    class Node:
        def __init__(self, data: Any) -> None:
            self.data = data

        def backward(self) -> None:
            pass

    node, table = Node(numpy.float64(2.0)), numpy.arange(3.0)

    @mgjit.compile
    def step(x: float) -> Any:
        return node.data * x + float(table[1])

    assert [step(float(k)) for k in range(4)] == [1.0, 3.0, 5.0, 7.0]
    assert step.stats.plain_calls == 0
