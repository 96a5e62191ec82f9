"""frozen/forward.py: what is left of a trace without training, for classes of all kinds; what cannot be told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.errors import FreezeError
from tests.frozen.models import XS, mlp, numbers, training
from tests.tracing.autograd.nodes import Clipped, Closures, Doubled, Sets


def test_01_nothing_of_backward_is_lowered() -> None:
    """The Program of a frozen training step is that of its forward function, and it says what was left out."""
    model = mlp()
    step = mgjit.freeze(training(model), XS, [1.0, 0.0], 0.1)
    lowering = step.lower(XS, [1.0, 0.0], 0.1)
    assert "backward" not in lowering.graph

    def forward(xs: Any, ys: Any) -> Any:
        scores = model(xs)
        return sum((s - y) ** 2 for s, y in zip(scores, ys)), [s.data for s in scores]

    other = mgjit.freeze(forward, XS, [1.0, 0.0]).lower(XS, [1.0, 0.0])
    assert lowering.lowered.records == other.lowered.records
    assert "records belong to training" in lowering.explain()
    assert "32 numbers as they were when it was frozen" in repr(step)
    assert "later changes of it do not reach this step" in step.explain()


@pytest.mark.parametrize("count", [3, 20])
@pytest.mark.parametrize("kind", [Closures, Sets, Clipped, Doubled])
def test_02_classes_of_other_people(kind: Any, count: int) -> None:
    """Numbers of few objects are copied, those of many move; of some classes, backward() is recorded step by step."""
    nodes = [kind(0.02 * k - 0.1) for k in range(count)]
    xs, calls = [0.03 * k + 0.1 for k in range(count)], [0.0]

    def forward(xs: Any) -> Any:
        total = kind(0.0)
        for node, x in zip(nodes, xs):
            total = total + node * kind(x)
        return total.tanh().data

    @mgjit.compile(background=False, verify="never")
    def train(xs: Any, rate: float) -> Any:
        total = kind(0.0)
        for node, x in zip(nodes, xs):
            total = total + node * kind(x)
        loss = total.tanh()
        loss.backward()
        calls[0] += 1.0
        for node in nodes:
            node.data -= rate * node.grad
            node.grad = 0.0
        return loss.data

    expected, shorter = forward(xs), forward(xs[:2])
    frozen, step = mgjit.freeze(forward, xs), mgjit.freeze(train, xs, 0.1)
    before = [(node.data, node.grad) for node in nodes], list(calls)
    assert [step(xs, 0.1) for _ in range(3)] == [expected] * 3
    assert ([(node.data, node.grad) for node in nodes], calls) == before
    for _ in range(5):
        train(xs, 0.1)
        assert frozen(xs) == step(xs, 0.1) == expected
    assert frozen(xs[:2]) == shorter
    assert forward(xs) != expected


class _Body:
    """An object with two numbers, of which neither is a gradient."""

    def __init__(self, k: int) -> None:
        self.mass, self.place = 0.5 * k + 1.0, 0.25 * k


def test_03_objects_with_several_numbers() -> None:
    """All of them are weights, in few objects and in many."""
    for count in (3, 20):
        bodies = [_Body(k) for k in range(count)]

        def centre(x: float, bodies: Any = bodies) -> float:
            return sum(b.mass * (b.place - x) for b in bodies) / sum(b.mass for b in bodies)

        frozen = mgjit.freeze(centre, 0.5)
        expected = centre(0.5)
        for body in bodies:
            body.place = 9.0
        assert frozen(0.5) == expected != centre(0.5)


def test_04_results_of_training_are_refused() -> None:
    """Gradients, updated parameters, updates by hand; the message names the line and the advice works."""
    model = mlp()

    def gradient(xs: Any) -> Any:
        loss = model(xs)[0]
        loss.backward()
        return loss, model.parameters()[0].grad

    def updated(xs: Any) -> Any:
        loss = model(xs)[0]
        loss.backward()
        for p in model.parameters():
            p.data -= 0.1 * p.grad
        return model(xs)[0]

    def by_hand(xs: Any) -> Any:
        model.parameters()[0].data -= 0.1 * xs[0]
        return model(xs)[0]

    for function, text in ((gradient, "number 2 of the 2"), (updated, "its result"), (by_hand, "without a call of")):
        with pytest.raises(FreezeError, match=text) as caught:
            mgjit.freeze(function, XS)
        assert f"{Path(__file__).name}:{function.__code__.co_firstlineno}" in str(caught.value)
    assert numbers(mgjit.freeze(lambda xs: model(xs)[0], XS)(XS)) == numbers(model(XS)[0])
