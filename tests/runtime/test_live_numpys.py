"""Numbers in a kernel's memory that are of numpy's type float64 in plain Python."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest

import mgjit

numpy = pytest.importorskip("numpy")


class Node:
    def __init__(self, data: Any, parts: Any = ()) -> None:
        self.data, self.grad, self.parts = data, 0.0, parts

    def __add__(self, other: Any) -> Node:
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data + other.data, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other: Any) -> Node:
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data * other.data, ((self, other.data), (other, self.data)))

    def backward(self, gradient: Any = 1.0) -> None:
        self.grad = self.grad + gradient
        for part, factor in self.parts:
            part.backward(gradient * factor)


def shown(things: list[Node]) -> list[str]:
    return [f"{thing.data!r} {thing.grad!r}" for thing in things]


def run(decorate: Any) -> tuple[list[Any], Any]:
    nodes = [Node(0.1 * (k + 1)) for k in range(40)]

    def step(row: Any, y: Any) -> Any:
        loss = Node(0.0)
        for node, x in zip(nodes, row):
            loss = loss + node * x
        loss = (loss + -y) * (loss + -y)
        for node in nodes:
            node.grad = 0.0
        loss.backward()
        for node in nodes:
            node.data = node.data - 0.001 * node.grad
        return loss.data

    compiled = decorate(step)
    rows, seen = numpy.linspace(-1, 1, 400).reshape(10, 40), []
    for k in range(4):
        compiled(rows[k], rows[k, 0])
    for k in range(4):
        seen += [repr(compiled(rows[k], rows[k, 0])), shown(nodes), repr(sum(node.grad**2 for node in nodes))]
    seen += [shown(copy.deepcopy(nodes)), repr(vars(nodes[3])["data"])]
    for node in nodes[::2]:
        node.grad = 0.0
    seen.append(shown(nodes))
    seen += [repr(compiled(rows[5].astype("float32"), 1.0)), shown(nodes)]  # rounds to fewer bits what is no float64
    seen += [repr(compiled(rows[6], 1.0)), shown(nodes)]
    return seen, compiled


def test_they_are_read_as_in_plain_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also by a step that finds its code in the cache, where the same one has been compared before."""
    for name in ("MGJIT_REFUSE", "MGJIT_VERIFY"):  # the comparison with plain Python sees which numbers are numpy's
        monkeypatch.delenv(name)
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path))
    wanted, _ = run(lambda step: step)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, step = run(mgjit.compile(background=False))
        assert found == wanted
        assert step.stats.calls >= 5


def test_floats_stay_floats() -> None:
    nodes = [Node(0.1 * (k + 1)) for k in range(40)]

    @mgjit.compile(background=False)
    def step(row: list[float]) -> Any:
        for node, x in zip(nodes, row):
            node.data = node.data - x

    for _ in range(4):
        step([0.5] * 40)
    assert {type(node.data) for node in nodes} == {float}
    nodes[0].data = numpy.float64(2.0)
    assert type(nodes[0].data) is numpy.float64
    nodes[0].data = 1.5
    assert type(nodes[0].data) is float
