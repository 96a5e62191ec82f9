"""autograd/replaced.py: the `backward()` of the user's classes is replaced while a step is traced, and only then."""

from __future__ import annotations

from typing import Any

import pytest

import mgjit
from mgjit.errors import TraceError
from tests.tracing.autograd import nodes
from tests.tracing.autograd.test_symbolic import parameters


def test_01_trying_a_class_out_leaves_no_trace() -> None:
    """A global tape with nodes of the user's, counters, gradients: all as before the first call."""

    class Fresh(nodes.Closures):
        made = 0

        def __init__(self, data: Any, operands: tuple[Any, ...] = ()) -> None:
            super().__init__(data, operands)
            Fresh.made += 1
            if operands:
                nodes.TAPE.append(self)

        def backward(self) -> None:
            self.grad = 1.0
            for node in reversed(nodes.TAPE):
                node._backward()
            del nodes.TAPE[:]

    weights = parameters(Fresh, 3)
    older = weights[0] * weights[1]
    older.grad = 2.0
    tape, made = list(nodes.TAPE), Fresh.made

    def step(x: float) -> float:
        total = sum(w.data * w.grad for w in weights) * x
        for weight in weights:
            weight.grad = 0.0
        return total  # type: ignore[no-any-return]

    lowering = mgjit.compile(step).lower(1.0)
    assert lowering.lowered.records
    assert (nodes.TAPE, Fresh.made) == (tape, made)
    assert [w.grad for w in weights] == [0.0, 0.0, 0.0]
    nodes.TAPE.clear()


@pytest.mark.parametrize("kind", [nodes.Closures, nodes.Factors, nodes.Clipped, nodes.Sets])
def test_02_classes_get_their_own_methods_back(kind: Any) -> None:
    """After a trace, after one that was made again, after errors of mgjit's and of the step's own."""
    weights = parameters(kind, 20)
    before = dict(vars(kind))

    def step(x: float, fails: int = 0) -> Any:
        loss = sum((w * w * x for w in weights), kind(0.0))
        loss.backward()
        if fails == 1:
            raise KeyError("mine")
        if fails == 2:
            return 1.0 if loss > 0.0 else bool(x)  # type: ignore[operator]
        return weights[3].grad * 1.0

    decorated = mgjit.compile(step, static=("fails",))
    with pytest.raises(KeyError, match="mine"):
        decorated(0.5, 1)
    assert dict(vars(kind)) == before
    with pytest.raises((TraceError, TypeError)):
        decorated(0.5, 2)
    assert dict(vars(kind)) == before
    assert decorated(0.5) == 2 * 0.5 * (weights[3].value if kind is nodes.Factors else weights[3].data)
    assert dict(vars(kind)) == before


def test_03_a_method_that_is_inherited() -> None:
    """A derived class does not get a method of its own."""

    class Derived(nodes.Closures):
        pass

    weights = parameters(Derived, 20)

    def step(x: float) -> Any:
        loss = sum((w * x for w in weights), Derived(0.0))
        loss.backward()
        return loss.data

    assert "symbolically" in mgjit.compile(step).lower(0.5).explain()
    assert "backward" not in vars(Derived)
