"""Models of other kinds, exported: look-ups, attention with caches, Adam, tensors, classes of the user's own."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import mgjit
from tests.export.compiling import checked

pytestmark = pytest.mark.once


def memory(folder: Path) -> str:
    return (folder / "net.h").read_text("ascii").split("typedef struct {")[1].split("}")[0]


def test_look_ups_in_a_table_of_parameters(tmp_path: Path) -> None:
    draw = random.Random(1)
    table = [[mgjit.Value(draw.gauss(0.0, 0.3)) for _ in range(4)] for _ in range(9)]
    output = [[mgjit.Value(draw.gauss(0.0, 0.3)) for _ in range(4)] for _ in range(9)]
    parameters = [p for row in table + output for p in row]

    @mgjit.compile
    def step(tokens: Any, rate: Any) -> Any:
        losses = []
        for a, b in zip(tokens, tokens[1:]):
            scores = [mgjit.dot(row, table[a]) for row in output]
            wanted = mgjit.one_hot(b, 9)
            losses.append(sum(((s - y) ** 2 for s, y in zip(scores, wanted)), mgjit.Value(0.0)))
        loss = sum(losses, mgjit.Value(0.0))
        for p in parameters:
            p.grad = 0.0
        loss.backward()
        for p in parameters:
            p.data -= rate * p.grad
        return loss

    step.export(tmp_path, "net", calls=[([0, 5, 3, 8, 5], 0.1), ([1, 1, 2, 8, 0], 0.1)])
    assert "all bits" in checked(tmp_path, "net", "gcc")
    assert "gradients" not in memory(tmp_path)
    assert "INDEX_ERROR" in (tmp_path / "net.c").read_text("ascii")


def test_keys_and_values_that_stay_from_call_to_call(tmp_path: Path) -> None:
    weights = [mgjit.Value(0.1 * k - 0.2) for k in range(8)]
    cache = mgjit.state([0.0] * 16)

    @mgjit.compile
    def attend(token: Any, place: Any) -> Any:
        for k in range(4):
            cache[4 * place + k] = (weights[k] * token).data
        scores = [(weights[4 + k] * cache[4 * t + k]).tanh() for t in range(4) for k in range(4)]
        return sum(scores, mgjit.Value(0.0))

    frozen = mgjit.freeze(attend, 1.0, 0)
    for step in (attend, frozen):
        step.export(tmp_path, "net", calls=[(0.5 * t, t) for t in range(4)])
        assert "all bits" in checked(tmp_path, "net", "gcc")
        assert "state[16]" in memory(tmp_path)


def test_tensors(tmp_path: Path) -> None:
    tensor = mgjit.tensor
    w = tensor.randn((6, 4), requires_grad=True)
    b = tensor.zeros(4, requires_grad=True)

    @mgjit.compile
    def step(x: Any, labels: Any, rate: Any) -> Any:
        loss = -(tensor.log_softmax(x @ w + b) * tensor.one_hot(labels, 4)).sum() / len(x)
        w.zero_grad()
        b.zero_grad()
        loss.backward()
        with mgjit.no_grad():
            for p in (w, b):
                p -= rate * p.grad  # noqa: PLW2901 - in place
        return loss

    call = (tensor.randn((3, 6)), mgjit.Tensor([0, 3, 1]), 0.1)
    step.export(tmp_path, "net", calls=[call] * 3)
    assert "all bits" in checked(tmp_path, "net", "gcc")
    assert "const int64_t labels[3]" in (tmp_path / "net.h").read_text("ascii")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_causal_attention(compiler: str, tmp_path: Path) -> None:
    """Where gcc 12 chooses wrong elements, with AVX, if conditions decide what is read from memory."""
    attention = mgjit.nn.MultiheadAttention(4, 2, batch_first=True)
    x = mgjit.tensor.randn((1, 6, 4))
    frozen = mgjit.freeze(lambda x: attention(x, x, x, is_causal=True)[0], x)
    frozen.export(tmp_path, "net", calls=[(x,)])
    assert "all bits" in checked(tmp_path, "net", compiler, ["-O3", "-march=native"])


class Node:
    """Somebody's scalar autograd class."""

    def __init__(self, data: Any, children: Any = ()) -> None:
        self.data, self.grad, self.children = data, 0.0, children
        self.pull: Any = lambda: None

    def __mul__(self, other: Any) -> Node:
        other = other if isinstance(other, Node) else Node(other)
        made = Node(self.data * other.data, (self, other))

        def pull() -> None:
            self.grad += other.data * made.grad
            other.grad += self.data * made.grad

        made.pull = pull
        return made

    def __add__(self, other: Any) -> Node:
        other = other if isinstance(other, Node) else Node(other)
        made = Node(self.data + other.data, (self, other))

        def pull() -> None:
            self.grad += made.grad
            other.grad += made.grad

        made.pull = pull
        return made

    def backward(self) -> None:
        order: list[Node] = []
        seen = set()

        def visit(node: Node) -> None:
            if id(node) not in seen:
                seen.add(id(node))
                for child in node.children:
                    visit(child)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            node.pull()


def test_classes_of_the_users_own(tmp_path: Path) -> None:
    weights = [Node(0.3 * k - 0.5) for k in range(5)]

    @mgjit.compile
    def step(x: Any, y: Any, rate: Any) -> Any:
        guess = Node(0.0)
        for w, a in zip(weights, x):
            guess = guess + w * a
        error = guess + (-y)
        loss = error * error
        for w in weights:
            w.grad = 0.0
        loss.backward()
        for w in weights:
            w.data -= rate * w.grad
        return loss.data

    step.export(tmp_path, "net", calls=[([0.1, 0.2, 0.3, 0.4, 0.5], 0.5, 0.1), ([0.5, 0.2, 0.3, 0.1, 0.5], -0.5, 0.1)])
    assert "all bits" in checked(tmp_path, "net", "gcc")


@pytest.mark.long
def test_microgpt_with_adam(tmp_path: Path) -> None:
    from bench.workloads import Sources, microgpt

    instance = microgpt(Sources(), width=8, heads=2)
    step = mgjit.compile(instance.step)
    calls = [call for call in instance.calls if len(call[0]) == len(instance.calls[0][0])][:3]
    step.export(tmp_path, "net", calls=calls)
    assert "all bits" in checked(tmp_path, "net", "gcc", ["-O1"])
    assert "gradients" not in memory(tmp_path)
