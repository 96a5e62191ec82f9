"""Gradients that are due are there for whoever looks, as after plain calls."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.compiler.toolchain import compilers
from mgjit.memory.buffers import ParameterStorage, bind
from mgjit.memory.late import Late, LateStorage, late_gradients, use_gradients

ROWS, COLUMNS = 40, 80  # so many that the update is fused with what it needs

native = pytest.mark.skipif(compilers.find() is None, reason="no C compiler: gradients are computed at once")


class Layer:
    """A layer that is trained on one sample, compiled or not."""

    def __init__(self, is_compiled: bool) -> None:
        self.rows = [[mgjit.Value(0.01 * ((7 * k + 3 * j) % 11 - 5)) for j in range(COLUMNS)] for k in range(ROWS)]
        self.parameters = [w for row in self.rows for w in row]

        def step(xs: Any, rate: Any) -> Any:
            loss = sum(sum(w * x for w, x in zip(row, xs)) ** 2 for row in self.rows)
            for p in self.parameters:
                p.grad = 0.0
            loss.backward()
            for p in self.parameters:
                p.data -= rate * p.grad
            return loss

        def norm(factor: Any) -> Any:
            return sum(p.grad * p.grad for p in self.parameters) * factor

        def loss(xs: Any) -> Any:
            return sum(sum(w * x for w, x in zip(row, xs)) ** 2 for row in self.rows)

        made: Callable[[Any], Any] = mgjit.compile(background=False) if is_compiled else (lambda function: function)
        self.step, self.norm, self.loss, self.plain = made(step), made(norm), made(loss), step

    def gradients(self) -> list[float]:
        return [p.grad for p in self.parameters[::97]]


def inputs(seed: int) -> list[float]:
    return [((5 * k + seed) % 7 - 3) * 0.1 for k in range(COLUMNS)]


@pytest.fixture
def both() -> tuple[Layer, Layer]:
    """A compiled layer whose gradients are late, and a plain one."""
    ours, plain = Layer(True), Layer(False)
    for number in range(6):
        for layer in (ours, plain):
            layer.step(inputs(number), 0.01)
    for number in range(40):  # until calls are quick, however long they take
        ours.step(inputs(number), 0.0)
    return ours, plain


def is_due(layer: Layer) -> bool:
    storage = layer.parameters[0]._storage
    return isinstance(storage, LateStorage) and bool(storage.late.words[0])


@native
def test_01_looks(both: tuple[Layer, Layer]) -> None:
    """Gradients are due after a call until somebody looks, writes, copies, or runs the step in another way."""
    ours, plain = both

    def write(layer: Layer) -> Any:
        layer.parameters[5].grad = 0.5
        return layer.gradients(), layer.parameters[5].grad

    def copied(layer: Layer) -> Any:
        return copy.deepcopy(layer.parameters[7]).grad

    def in_a_thread(layer: Layer) -> Any:
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(layer.gradients()))
        thread.start()
        thread.join()
        return found

    def undecorated(layer: Layer) -> Any:
        return layer.plain(inputs(1), 0.02).data, layer.gradients()

    for look in (Layer.gradients, write, copied, in_a_thread, undecorated):
        for layer in both:
            layer.step(inputs(3), 0.01)
        assert is_due(ours)
        assert look(ours) == look(plain)
        assert not is_due(ours)
    assert ours.gradients() == plain.gradients()


@native
def test_02_a_loop_and_a_call_without_gradients(both: tuple[Layer, Layer]) -> None:
    """A loop leaves those of its last row; a step that only computes a loss leaves them due."""
    ours, plain = both
    for number in range(3):  # the first one is traced, which looks at everything
        for layer in both:
            layer.step(inputs(number), 0.01)
        assert ours.loss(inputs(1)).data == plain.loss(inputs(1)).data
    assert is_due(ours)
    rows = [inputs(number) for number in range(3)]
    ours.step.loop(rows, [0.01] * 3)
    for row in rows:
        plain.step(row, 0.01)
    assert not is_due(ours)
    assert ours.gradients() == plain.gradients()
    assert [p.data for p in ours.parameters] == [p.data for p in plain.parameters]


@native
def test_03_another_kernel(both: tuple[Layer, Layer]) -> None:
    """Once another one works on them, gradients are computed at once."""
    ours, plain = both
    for _ in range(6):
        for layer in both:
            layer.step(inputs(4), 0.01)
        assert ours.norm(0.5) == plain.norm(0.5)
    assert not is_due(ours)
    for layer in both:
        layer.step(inputs(5), 0.01)
    assert not is_due(ours)
    assert ours.gradients() == plain.gradients()


class Kernel:
    """Stands for one."""


def test_04_who_may_be_late() -> None:
    """The only kernel of a storage; not where objects know the arrays."""
    storage, user = bind([mgjit.Value(1.0)], [0], 1), Kernel()
    use_gradients(storage, user)
    late = late_gradients([storage], user)
    assert isinstance(late, Late)
    computed: list[float] = []

    def compute() -> None:
        computed.append(1.0)
        late.words[0] = 0

    late.compute = compute
    assert storage.grad[0] == 0.0
    late.words[0] = 1
    storage.grad[0] = 2.0
    assert (computed, storage.grad[0]) == ([1.0], 2.0)
    late.words[0] = 1
    other = Kernel()
    use_gradients(storage, other)
    assert (computed, list(late.words)) == ([1.0, 1.0], [0, 0])
    assert late_gradients([storage], other) is None
    held = ParameterStorage(1)
    held.has_homes = True
    use_gradients(held, user)
    assert late_gradients([held], user) is None
