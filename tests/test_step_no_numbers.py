"""Other things than numbers, which a program assigns where a kernel has numbers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mgjit


class Node:
    """As people write it; parents are in a tuple, so that their order is the same in each run."""

    def __init__(self, data: Any, parents: tuple[Any, ...] = ()) -> None:
        self.data, self.grad, self._prev = data, 0.0, parents
        self._backward: Callable[[], None] = lambda: None

    def __add__(self, other: Any) -> Node:
        out = Node(self.data + other.data, (self, other))

        def backward() -> None:
            self.grad += out.grad
            other.grad += out.grad

        out._backward = backward
        return out

    def __mul__(self, other: Any) -> Node:
        out = Node(self.data * other.data, (self, other))

        def backward() -> None:
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = backward
        return out

    def backward(self) -> None:
        topo: list[Node] = []

        def build(node: Node) -> None:
            if node not in topo:
                for parent in node._prev:
                    build(parent)
                topo.append(node)

        build(self)
        self.grad = 1.0
        for node in reversed(topo):
            node._backward()


def played(decorate: Callable[[Any], Any], before: int, name: str, other: Any) -> tuple[list[Any], Any]:
    """What a program sees that puts something else in place of a number, and a number again."""
    parameters = [Node(0.1 + 0.1 * k) for k in range(3)]

    def step(x: Any, y: Any) -> Any:
        for p in parameters:
            p.grad = 0.0
        error = parameters[0] * Node(x) + parameters[1] * parameters[2] + Node(-y)
        loss = error * error
        loss.backward()
        for p in parameters:
            p.data -= 0.01 * p.grad
        return loss.data

    call = decorate(step)
    seen: list[Any] = [call(0.1 * k, 0.3) for k in range(before)]
    chosen = parameters[1]
    number = getattr(chosen, name)
    setattr(chosen, name, other)
    seen += [getattr(chosen, name) is other, vars(chosen)[name] is other]
    for _ in range(3):
        try:
            seen.append(call(0.1, 0.3))
        except TypeError as error:
            seen.append(str(error))
        seen += [(p.data, p.grad) for p in parameters]
    setattr(chosen, name, other)
    setattr(chosen, name, number)
    seen += [call(0.1 * k, 0.3) for k in range(20)]
    return seen + [(p.data, p.grad) for p in parameters], call


@pytest.fixture(params=["alone", "another thread"])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whether another thread lives, which might call steps."""
    end = threading.Event()
    other = threading.Thread(target=end.wait)
    if request.param != "alone":
        other.start()
    yield
    end.set()
    if request.param != "alone":
        other.join()


@pytest.mark.filterwarnings("ignore::mgjit.errors.PlainWarning")
@pytest.mark.parametrize("other", [None, "text", [1.0], Node], ids=str)
@pytest.mark.parametrize("name", ["data", "grad"])
@pytest.mark.parametrize("before", [0, 3, 40])
def test_01_as_plain(threads: None, before: int, name: str, other: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    expected, _ = played(lambda step: step, before, name, other)
    got, step = played(lambda step: mgjit.compile(step, background=False), before, name, other)
    assert got == expected
    assert list(map(type, got)) == list(map(type, expected))
    assert step.stats.calls >= before // 2


def test_02_a_call_says_why_it_is_plain() -> None:
    """Only while there is no number."""
    weights = [Node(0.5), Node(0.25)]

    @mgjit.compile(background=False)
    def step(x: Any) -> Any:
        loss = weights[0] * Node(x) + weights[1]
        loss.backward()
        for w in weights:
            w.data -= 0.1 * w.grad
            w.grad = 0.0
        return loss.data

    @mgjit.compile(background=False)
    def reads(x: Any) -> Any:
        return weights[1].data * x if type(weights[0].data) is float else x

    for _ in range(3):
        step(1.0)
    weights[0].data = "text"
    with pytest.warns(mgjit.errors.PlainWarning, match=r"Node\.data is str 'text', where a kernel has a number"):
        assert reads(2.0) == 2.0
    weights[0].data = 0.5
    calls = reads.stats.calls
    assert reads(2.0) == weights[1].data * 2.0
    step(1.0)
    assert reads(2.0) == weights[1].data * 2.0
    assert step.stats.calls == 4
    assert reads.stats.calls > calls
